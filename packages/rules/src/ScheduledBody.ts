import { Result, type Schema } from "effect"
import { compileMapping, maxResolvedLength, type MappingInvalid } from "@tidegate/interpolation/Mapping"
import { jsonLengthWithin } from "@tidegate/interpolation/JsonLength"

/** The body of a request that a schedule makes: JSON whose texts can contain tokens like `{{scheduled_at}}`. Pure. */

/** What tokens can read, and the body when none is written. */
export interface ScheduledFacts {
  /** The time for which the request is made, as ISO 8601. */
  readonly scheduled_at: string
  readonly cron: string
  readonly timezone: string
  readonly source: { readonly id: string; readonly name: string }
}

/** The longest body as it is written, in characters of compact JSON, and the tokens in it. */
export const longestScheduledBody = 32_768
export const maxScheduledTokens = 100

export type ScheduledBody = (facts: ScheduledFacts) => Schema.Json

const someFacts: ScheduledFacts = {
  scheduled_at: "2026-01-01T03:00:00.000Z",
  cron: "0 3 * * *",
  timezone: "UTC",
  source: { id: "src_", name: "source" }
}
const roots = Object.keys(someFacts)

const refuse = (message: string, path = "") => Result.fail({ path, message })

/** Compiles a body that is written; null means the facts themselves. A token that can read nothing is refused. */
export const compileScheduledBody = (written: Schema.Json): Result.Result<ScheduledBody, MappingInvalid> => {
  if (written === null) return Result.succeed((facts) => ({ ...facts }))
  if (jsonLengthWithin(written, longestScheduledBody) === null) {
    return refuse(`must be at most ${longestScheduledBody} characters of JSON`)
  }
  return Result.flatMap(compileMapping(written, roots), ({ references, resolve }) => {
    if (references.length > maxScheduledTokens) return refuse(`must have at most ${maxScheduledTokens} tokens`)
    const tried = resolve({ ...someFacts })
    const missing = tried.kind === "resolved" ? tried.missing : []
    if (missing.length > 0) {
      const known = "scheduled_at, cron, timezone, source.id and source.name"
      return refuse(`has a token that finds nothing: there are ${known}`, missing[0])
    }
    return Result.succeed((facts: ScheduledFacts) => {
      const resolved = resolve({ ...facts })
      // A hundred tokens with short values cannot reach the limit.
      if (resolved.kind === "too_large") throw new Error(`a body exceeds ${maxResolvedLength} characters`)
      return resolved.value
    })
  })
}
