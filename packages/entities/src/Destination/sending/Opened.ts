import { Effect, Scope } from "effect"
import type { Sender, SessionSender, SessionServices } from "@tidegate/connectors/Connector"
import type { NotObtained } from "../../tokens/TokenAnswers.ts"
import type { Token } from "../../tokens/KnownToken.ts"
import { makeTokens } from "../../tokens/Tokens.ts"
import type { DestinationState } from "../DestinationState.ts"
import type { TokenStore } from "../../tokens/TokenStore.ts"
import { HeldSession } from "./Sessions.ts"

/** A sender that is ready: with its session, and with the token that it sends. */
export interface Opened {
  readonly sender: Sender
  readonly session: HeldSession | null
  /** Null: it needs none. */
  readonly token: string | null
  /** Until when it may be used (Unix ms). */
  readonly until: number
}

/**
 * The sender of a destination. It is opened with the destination's settings, and again with every new token where it needs one.
 * `scope`: of the destination's actor. A sender that has been replaced starts no more sends; those under way run to their end.
 */
export const makeOpening = Effect.fnUntraced(function* (
  scope: Scope.Scope,
  mayAsk: () => boolean,
  tokenStore: TokenStore
) {
  const tokens = yield* makeTokens(mayAsk, tokenStore)
  const services = yield* Effect.context<SessionServices>()
  let state: DestinationState | null = null
  let opened: Opened | null = null

  const held = (sender: SessionSender) => HeldSession.make(sender).pipe(Scope.provide(scope), Effect.provide(services))

  /** Null: the settings have changed meanwhile. */
  const openWith = Effect.fnUntraced(function* (of: DestinationState, token: Token) {
    if (state === of && opened?.token === token.value) return (opened = { ...opened, until: token.until })
    const sender = of.bearer!.open(token.value)
    const session = sender.kind === "session" ? yield* held(sender) : null
    if (state !== of) {
      session?.release()
      return null
    }
    opened?.session?.release()
    return (opened = { sender, session, token: token.value, until: token.until })
  })

  return {
    tokens,
    /** The sender to use now; null: a token has to be obtained first, or there is no sender. */
    current: (now: number): Opened | null => (opened !== null && now < opened.until ? opened : null),
    /** Whether it still uses these settings. */
    goesBy: (of: DestinationState): boolean => state === of,
    /** Prepares the sender for these settings. They apply when the returned function is called. */
    prepare: Effect.fnUntraced(function* (next: DestinationState | null) {
      const sender = next?.sender ?? null
      const session = sender?.kind === "session" ? yield* held(sender) : null
      return (): void => {
        state = next
        tokens.configure(next?.bearer?.credential ?? null)
        opened?.session?.release()
        opened = sender === null ? null : { sender, session, token: null, until: Number.POSITIVE_INFINITY }
      }
    }),
    /** Waits for a token. */
    obtain: (of: DestinationState): Effect.Effect<Opened | null, NotObtained> =>
      Effect.flatMap(tokens.obtain(of.bearer!.credential), (token) => openWith(of, token)),
    /** The sender with another token than this one, which the target has refused; null: there is no other. */
    renew: (of: DestinationState, refused: string): Effect.Effect<Opened | null, NotObtained> =>
      Effect.flatMap(tokens.renewed(of.bearer!.credential, refused), (token) =>
        token === null ? Effect.succeed(null) : openWith(of, token)
      ),
    cancel: (): void => opened?.session?.cancel()
  }
})

export type Opening = Effect.Success<ReturnType<typeof makeOpening>>
