import { describe, expect, it } from "@effect/vitest"
import { AwsV4Signer } from "aws4fetch"
import { Effect, Result } from "effect"
import { TestClock } from "effect/testing"
import { Egress } from "@tidegate/egress/Egress"
import { compileOutboundAuth, validateOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import { askForTokens } from "../src/tokens/TokenEndpoint.ts"
import { makeTokens } from "../src/tokens/Tokens.ts"
import { inMemory } from "../src/tokens/TokenStore.ts"

/** The key of a role, asked for at a service of the test's, by a clock of the test's. */

const auth = {
  access_key_id: "AKIDEXAMPLE",
  secret_access_key: "of-the-destination",
  region: "eu-central-1",
  service: "execute-api",
  role_arn: "arn:aws:iam::123456789012:role/path/gateway",
  external_id: "e/1+2"
}
const { grant } = compileOutboundAuth(Result.getOrThrow(validateOutboundAuth("AWS_SIGV4", auth)))
const endpoint = "https://sts.eu-central-1.amazonaws.com/"
const of = { owner: { id: "des_1", team_id: "tm_1" }, grant: grant!, endpoint, scope: null }
const start = Date.UTC(2026, 0, 2, 3, 4, 5)

const given = (number: number, expiration: string) => `<AssumeRoleResponse><AssumeRoleResult><Credentials>
  <AccessKeyId>ASIA${number}</AccessKeyId><SecretAccessKey>secret+${number}</SecretAccessKey>
  <SessionToken>token/${number}==</SessionToken><Expiration>${expiration}</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>`
const refusal = (code: string, message: string) =>
  `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`

type Call = Parameters<Egress["Service"]["deliver"]>[0]

/** A service that answers with this, and what it was asked. */
const service = (
  answer: (number: number) => { readonly status?: number | null; readonly body?: string; readonly headers?: object }
) => {
  const calls: Array<Call> = []
  const deliver = (call: Call) => {
    calls.push(call)
    const { body = "", headers = {}, status = 200 } = answer(calls.length)
    const errorCode = status === null ? ("TARGET_NOT_ALLOWED" as const) : null
    return Promise.resolve({
      status,
      headers: { ...headers },
      body: Buffer.from(body),
      bodyTruncated: false,
      errorCode,
      errorMessage: null,
      sentAt: 0,
      respondedAt: 0
    })
  }
  return { calls, egress: { deliver } as Pick<Egress["Service"], "deliver"> as Egress["Service"] }
}

const asked = (egress: Egress["Service"]) => askForTokens(egress, of, { kind: "own" }, () => true)
const failureOf = (egress: Egress["Service"]) => Effect.flip(asked(egress))

/** An hour by the answer's own date, whose clock is a day ahead. */
const anHour = { date: "Sat, 03 Jan 2026 03:04:05 GMT" }
const expiration = "2026-01-03T04:04:05Z"

describe("Assumed role", () => {
  it.effect("is asked for by a request whose signature another implementation makes, too", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(start)
      const { calls, egress } = service(() => ({ body: given(1, expiration), headers: anHour }))
      expect(yield* asked(egress)).toEqual({
        access: "ASIA1 secret+1 token/1==",
        expiresAt: start + 3_600_000,
        refresh: null,
        scope: null
      })
      const { body, headers = [], url } = calls[0]!
      expect(Object.fromEntries(new URLSearchParams(String(body)))).toEqual({
        Action: "AssumeRole",
        Version: "2011-06-15",
        RoleArn: auth.role_arn,
        RoleSessionName: "event-gateway",
        DurationSeconds: "3600",
        ExternalId: auth.external_id
      })
      const other = yield* Effect.promise(() =>
        new AwsV4Signer({
          method: "POST",
          url,
          headers: { "content-type": "application/x-www-form-urlencoded" },
          body: String(body),
          accessKeyId: auth.access_key_id,
          secretAccessKey: auth.secret_access_key,
          region: auth.region,
          service: "sts",
          datetime: "20260102T030405Z",
          allHeaders: true
        }).sign()
      )
      const authorization = headers[headers.indexOf("authorization") + 1]
      expect(authorization).toBe(other.headers.get("authorization")!.replaceAll(/,\s*/g, ", "))
    })
  )

  it.effect("is asked for once by many callers at once, and again before its key expires", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(start)
      const { calls, egress } = service((number) => ({ body: given(number, expiration), headers: anHour }))
      const tokens = yield* makeTokens(() => true, inMemory()).pipe(Effect.provideService(Egress, egress))
      tokens.configure(of)
      const all = yield* Effect.all(
        Array.from({ length: 100 }, () => tokens.obtain(of)),
        { concurrency: "unbounded" }
      )
      expect([new Set(all.map(({ value }) => value)), calls.length]).toEqual([new Set(["ASIA1 secret+1 token/1=="]), 1])
      yield* TestClock.adjust("58 minutes")
      expect([(yield* tokens.obtain(of)).value, calls.length]).toEqual([all[0]!.value, 1])
      yield* TestClock.adjust("1 minute")
      expect([(yield* tokens.obtain(of)).value, calls.length]).toEqual(["ASIA2 secret+2 token/2==", 2])
    })
  )

  it.effect("that is refused is named with code and message, without the destination's key", () =>
    Effect.gen(function* () {
      const denied = service(() => ({ status: 403, body: refusal("AccessDenied", `not by ${auth.secret_access_key}`) }))
      expect(yield* failureOf(denied.egress)).toMatchObject({
        message: "the role was not given: HTTP 403 (AccessDenied): not by ****tion",
        refused: true
      })
      const throttled = service(() => ({ status: 400, body: refusal("Throttling", "Rate exceeded") }))
      expect((yield* failureOf(throttled.egress)).refused).toBe(false)
      const down = service(() => ({ status: 503, body: "no XML", headers: { "retry-after": "7" } }))
      expect(yield* failureOf(down.egress)).toMatchObject({
        message: "the role was not given: HTTP 503",
        refused: false,
        waitMs: 7_000
      })
      const unreached = service(() => ({ status: null }))
      expect((yield* failureOf(unreached.egress)).message).toBe("the role could not be asked for: TARGET_NOT_ALLOWED")
    })
  )

  it.effect.each([
    ["nothing", ""],
    ["a member that never ends", `<AccessKeyId>${"a".repeat(60_000)}`],
    ["a key with a line break", given(1, expiration).replace("secret+1", "a\r\nx-injected: 1")],
    ["a token that is too long to be one", given(1, expiration).replace("token/1==", "a".repeat(20_000))]
  ] as const)("from an answer with %s is none", ([, body]) =>
    Effect.gen(function* () {
      expect((yield* failureOf(service(() => ({ body })).egress)).message).toBe("the answer holds no key of a role")
    })
  )
})
