import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { parseTime } from "@tidegate/model/Timestamp"
import { every, fieldError, type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"
import { printable, setting, Storable, text } from "./Members.ts"

/** The body of a new share. */

const day = 86_400
const minSeconds = 60
const maxSeconds = 30 * day
const usualSeconds = 7 * day
const maxNames = 100

const Title = Storable(120).check(printable).annotate({ description: "A title, shown to everyone who opens the link" })

const Seconds = Schema.Int.annotate({
  message: "must be a whole number",
  description: `Seconds until the link expires; at most ${maxSeconds}, and higher values count as that`
}).check(
  Schema.makeFilter((seconds: number) => seconds >= minSeconds || `must be at least ${minSeconds}`, {
    toJsonSchema: () => ({
      minimum: minSeconds,
      default: usualSeconds
    })
  })
)

const Names = Schema.Array(text.check(Characters.upTo(200))).check(
  Schema.isMaxLength(maxNames, { message: `must be at most ${maxNames} names` })
)

const ShareWrite = Schema.Struct({
  title: setting(Title),
  label: setting(Title.annotate({ description: "Alias of title" })),
  expires_in_seconds: setting(Seconds),
  ttl_seconds: setting(Seconds.annotate({ description: "Alias of expires_in_seconds" })),
  ttl: setting(Seconds.annotate({ description: "Alias of expires_in_seconds" })),
  expires_at: setting(
    text.annotate({
      description: "When it expires, ISO 8601; with a number of seconds as well, the earlier time counts"
    })
  ),
  redact_keys: setting(
    Names.annotate({
      description:
        "Further names of headers, parameters and members whose values are masked; case, `-` and `_` are ignored"
    })
  ),
  include_body: setting(Schema.Boolean.annotate({ message: "must be true or false", description: "Default: true" }))
}).annotate({ identifier: "ShareWrite" })

export interface ShareInput {
  readonly title: string | null
  readonly expiresAt: Date
  readonly secretNames: ReadonlyArray<string>
  readonly includeBody: boolean
}

const names = [
  ["expires_in_seconds", "ttl_seconds", "ttl"],
  ["title", "label"]
] as const

/** Different values under the two names of one member. */
const contradictions = (input: typeof ShareWrite.Type): Result.Result<void, FieldErrors> => {
  const faults = names.flatMap((all) => {
    const [first, ...others] = all.filter((name) => (input[name] ?? null) !== null)
    const other = others.find((name) => first !== undefined && input[name] !== input[first])
    return other === undefined ? [] : [{ path: other, message: `is an alias of ${first}, which has another value` }]
  })
  return faults.length === 0 ? Result.void : Result.fail(faults)
}

const endOf = (input: typeof ShareWrite.Type, now: number): Result.Result<number, FieldErrors> => {
  const { expires_at, expires_in_seconds, ttl, ttl_seconds } = input
  const seconds = expires_in_seconds ?? ttl_seconds ?? ttl ?? null
  const written = expires_at ?? null
  const at = written === null ? null : parseTime(written, now)
  if (written !== null && at === null) return fieldError("expires_at", "must be ISO 8601")
  if (at !== null && at < now + minSeconds * 1_000) {
    return fieldError("expires_at", `must be at least ${minSeconds} seconds from now`)
  }
  const given = [...(seconds === null ? [] : [now + seconds * 1_000]), ...(at === null ? [] : [at])]
  return Result.succeed(
    Math.min(...(given.length === 0 ? [now + usualSeconds * 1_000] : given), now + maxSeconds * 1_000)
  )
}

export const shareBody = {
  described: ShareWrite,
  judge: (written: Members, now: number): Result.Result<ShareInput, GatewayError> =>
    orInvalid(
      judgeBody(ShareWrite, written, (input) =>
        Result.map(every({ names: contradictions(input), expires_at: endOf(input, now) }), ({ expires_at }) => ({
          title: input.title ?? input.label ?? null,
          expiresAt: new Date(expires_at),
          secretNames: input.redact_keys ?? [],
          includeBody: input.include_body ?? true
        }))
      )
    )
}

export const example = { title: "Bug 12", expires_in_seconds: 3600, redact_keys: ["customer_email"] } as const
