import { Clock, Effect } from "effect"
import type { Egress } from "@tidegate/egress/Egress"
import { Echoes } from "@tidegate/redaction/Echoes"
import { signer } from "@tidegate/outbound-auth/AwsSignature"
import { keyAsToken } from "@tidegate/outbound-auth/types/AwsSigV4"
import type { AssumedRole } from "@tidegate/outbound-auth/types/Grant"
import {
  failed,
  isToken,
  largestAnswer,
  lineOf,
  NotObtained,
  type Obtained,
  patienceMs,
  waitOf
} from "./TokenAnswers.ts"

/** For how long a key is asked for: every role allows this. */
const lifeSeconds = 3_600

const formOf = ({ externalId, roleArn, sessionName }: AssumedRole): string =>
  Object.entries({
    Action: "AssumeRole",
    Version: "2011-06-15",
    RoleArn: roleArn,
    RoleSessionName: sessionName,
    DurationSeconds: String(lifeSeconds),
    ...(externalId === null ? {} : { ExternalId: externalId })
  })
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join("&")

/** The text in the first element of a name; empty: there is none. */
const elementIn = (document: string, name: string): string => {
  const start = document.indexOf(`<${name}>`)
  const end = document.indexOf(`</${name}>`, start)
  return start < 0 || end < 0 ? "" : document.slice(start + name.length + 2, end).trim()
}

/** Error codes that say nothing about the key and the role. */
const passing =
  /^(?:Throttling|RequestLimitExceeded|RequestExpired|InternalFailure|ServiceUnavailable|IDPCommunicationError)/

/** Asks Amazon's `sts` for the key of a role: once, within limits. `mayStart` is called when the request is about to be written. */
export const askForRole = (
  { deliver }: Pick<Egress["Service"], "deliver">,
  endpoint: string,
  role: AssumedRole,
  mayStart: () => boolean
): Effect.Effect<Obtained, NotObtained> =>
  Effect.gen(function* () {
    const askedAt = yield* Clock.currentTimeMillis
    const unsigned = {
      method: "POST",
      url: endpoint,
      headers: ["content-type", "application/x-www-form-urlencoded"],
      body: Buffer.from(formOf(role))
    }
    const answer = yield* Effect.promise(async () => {
      const signed = await signer(role.key, { region: role.region, service: "sts" })(unsigned, {
        timestampSeconds: Math.floor(askedAt / 1_000)
      })
      const headers = [...signed.headers, "user-agent", "event-gateway/1"]
      return deliver({ ...signed, headers, timeoutMs: patienceMs, captureBytes: largestAnswer, mayStart })
    })
    const { errorCode, status } = answer
    if (errorCode !== null || status === null) {
      return yield* failed(`the role could not be asked for: ${errorCode ?? "UNKNOWN"}`)
    }
    const document = answer.body.toString("latin1")
    if (status !== 200) {
      const hidden = Echoes.of([role.key.secretAccessKey, role.key.sessionToken ?? ""])
      const code = lineOf(elementIn(document, "Code"), hidden)
      const words = lineOf(elementIn(document, "Message"), hidden)
      return yield* new NotObtained({
        message: `the role was not given: HTTP ${status}${code === "" ? "" : ` (${code})`}${words === "" ? "" : `: ${words}`}`,
        refused: code !== "" && status < 500 && status !== 429 && !passing.test(code),
        waitMs: waitOf(answer)
      })
    }
    const [accessKeyId, secretAccessKey, sessionToken] = (
      ["AccessKeyId", "SecretAccessKey", "SessionToken"] as const
    ).map((name) => elementIn(document, name)) as [string, string, string]
    if (![accessKeyId, secretAccessKey, sessionToken].every(isToken)) {
      return yield* failed("the answer holds no key of a role")
    }
    // By the answer's own date, so that two clocks need not agree.
    const lasts = Date.parse(elementIn(document, "Expiration")) - Date.parse(String(answer.headers["date"]))
    const lifeMs = Number.isNaN(lasts) ? lifeSeconds * 1_000 : Math.min(Math.max(0, lasts), lifeSeconds * 1_000)
    const access = keyAsToken({ accessKeyId, secretAccessKey, sessionToken })
    return { access, expiresAt: askedAt + lifeMs, refresh: null, scope: null }
  })
