import { Clock, Effect } from "effect"
import type { Egress } from "@tidegate/egress/Egress"
import type { Grant } from "@tidegate/signatures/outbound/Grant"
import type { StepError } from "@tidegate/workflows/StepKind"
import { settingsKey } from "../../Destination/tokens/Held.ts"
import { askForTokens } from "../../Destination/tokens/TokenEndpoint.ts"

/** Kept of one process. */
const mostTokens = 256
/** One that is over sooner is asked for anew (ms). */
const leastLeft = 60_000

/**
 * Bearer tokens for the calls of actions, by what they are asked with: of a process, and lost with it, because what they are asked with is
 * good for any number of them. Fails closed: without a token nothing is sent.
 */
export const makeTokens = (egress: Pick<Egress["Service"], "deliver">, origins: (origin: string) => string) => {
  const held = new Map<string, { readonly value: string; readonly until: number }>()
  return Effect.fnUntraced(function* (grant: Grant, scope: string | null): Effect.fn.Return<string, StepError> {
    const url = new URL(grant.tokenUrl)
    const request = { grant, scope: grant.scope ?? scope, endpoint: origins(url.origin) + url.pathname + url.search }
    const key = settingsKey(request)
    const now = yield* Clock.currentTimeMillis
    const known = held.get(key)
    if (known !== undefined && now < known.until) return known.value
    const { how } = grant
    const ask =
      how.kind === "refresh_token"
        ? ({ kind: "refresh", refreshToken: how.refreshToken } as const)
        : ({ kind: "own" } as const)
    const { access, expiresAt } = yield* Effect.mapError(
      askForTokens(egress, request, ask, () => true),
      ({ message, waitMs }): StepError => ({
        code: "OAUTH2_HANDSHAKE_FAILED",
        message,
        ...(waitMs === null ? {} : { retry_after_ms: waitMs })
      })
    )
    held.delete(key)
    if (held.size >= mostTokens) held.delete(held.keys().next().value!)
    held.set(key, { value: access, until: expiresAt - leastLeft })
    return access
  })
}
