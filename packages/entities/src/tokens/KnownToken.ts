import { Effect } from "effect"
import type { Credential } from "./Credential.ts"
import { type Held, nextAsk, renewAt } from "./Held.ts"
import { NotObtained } from "./TokenAnswers.ts"

/** A token, and until when it is used. */
export interface Token {
  readonly value: string
  readonly until: number
}

export const failure = (message: string, waitMs: number | null = null): NotObtained =>
  new NotObtained({ message, refused: false, waitMs })

export const noConsent = failure("nobody has consented yet, or what they have consented to is used up: start a consent")

/**
 * What is known without asking the provider: a token, or why there is none; null: the provider has to be asked.
 * `refusedByTarget`: the token that the target has refused.
 */
export const known = (
  of: Credential,
  held: Held,
  refusedByTarget: string | null,
  now: number
): Effect.Effect<Token, NotObtained> | null => {
  const access = held.access?.token === refusedByTarget ? null : held.access
  if (access !== null && now < renewAt(access)) return Effect.succeed({ value: access.token, until: renewAt(access) })
  /** The current token if it is still valid, when no new one can be obtained. */
  const lastingOr = (why: NotObtained): Effect.Effect<Token, NotObtained> =>
    access === null || now >= access.expires_at
      ? Effect.fail(why)
      : Effect.succeed({
          value: access.token,
          until: Math.min(access.expires_at, held.failure?.until ?? access.expires_at)
        })
  if (held.failure !== null && now < held.failure.until) {
    const { message, refused, until } = held.failure
    return lastingOr(new NotObtained({ message, refused, waitMs: until - now }))
  }
  return nextAsk(of, held) === null ? lastingOr(noConsent) : null
}
