import { Effect } from "effect"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import { Egress } from "@tidegate/egress/Egress"
import { weighing } from "@tidegate/runtime/HeldBytes"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import type { Grant } from "@tidegate/outbound-auth/types/Grant"
import type { StepError } from "@tidegate/workflows/StepKind"
import { settingsKey } from "../../Destination/tokens/Held.ts"
import { keptInMemory } from "../../Destination/tokens/Keeping.ts"
import type { NotObtained } from "../../Destination/tokens/TokenEndpoint.ts"
import { makeTokens, type Token, type Tokens, type TokenSettings } from "../../Destination/tokens/Tokens.ts"

/** The number of credentials whose tokens a process keeps. */
const most = 256

/** The tokens of an action's credentials. */
export interface ActionTokens {
  readonly obtain: Effect.Effect<string, StepError>
  /**
   * A new token instead of `refused`, which the target has rejected; null: there is none, or it is too early to request one
   * again.
   */
  readonly renewed: (refused: string) => Effect.Effect<string | null, StepError>
  /** The target has not rejected the token. */
  readonly accepted: () => void
}

const errorOf = ({ message, waitMs }: NotObtained): StepError => ({
  code: "OAUTH2_HANDSHAKE_FAILED",
  message,
  ...(waitMs === null ? {} : { retry_after_ms: waitMs })
})

const tokensOf = (tokens: Tokens, settings: TokenSettings): ActionTokens => ({
  obtain: Effect.mapBoth(tokens.obtain(settings), { onFailure: errorOf, onSuccess: ({ value }) => value }),
  renewed: (refused) =>
    Effect.mapBoth(tokens.renewed(settings, refused), {
      onFailure: errorOf,
      onSuccess: (token: Token | null) => (token === null || token.value === refused ? null : token.value)
    }),
  accepted: tokens.accepted
})

/**
 * Bearer tokens for the calls of actions. They are kept as those of destinations are, but by team and token settings instead of
 * by destination. They are kept in this process only, because the same settings can obtain any number of tokens. Fails closed:
 * without a token nothing is sent.
 */
export const makeActionTokens = Effect.gen(function* () {
  const egress = yield* Egress
  const origins = yield* ApiOrigins
  const held = new WeighedCache<string, ActionTokens>(most)
  return Effect.fnUntraced(function* (
    owner: TokenSettings["owner"],
    grant: Grant,
    usualScope: string | null
  ): Effect.fn.Return<ActionTokens> {
    const url = new URL(grant.tokenUrl)
    const endpoint = origins(url.origin) + url.pathname + url.search
    const settings = { owner, grant, endpoint, scope: grant.scope ?? usualScope }
    const key = `${owner.team_id} ${settingsKey(settings)}`
    const known = held.get(key)
    if (known !== undefined) return known
    const tokens = yield* makeTokens(() => true, keptInMemory()).pipe(Effect.provideService(Egress, egress))
    tokens.configure(settings)
    // Another fiber may have made them meanwhile.
    return (
      held.get(key) ??
      held.set(key, tokensOf(tokens, settings), { owner: owner.team_id, bytes: runToEnd(weighing(settings)) })
    )
  })
})
