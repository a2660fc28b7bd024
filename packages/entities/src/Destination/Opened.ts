import { Effect, Scope } from "effect"
import type { Sender, SessionSender, SessionServices } from "@tidegate/connectors/Connector"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/Secrets"
import type { DestinationState } from "./DestinationState.ts"
import { HeldSession } from "./Sessions.ts"
import type { NotObtained } from "./tokens/TokenEndpoint.ts"
import { makeTokens, type Token } from "./tokens/Tokens.ts"

/** A sender that is ready: with its session, and with the token that it sends. */
export interface Opened {
  readonly sender: Sender
  readonly session: HeldSession | null
  /** Null: it needs none. */
  readonly token: string | null
  /** Until when it is used (Unix ms). */
  readonly until: number
}

/**
 * The sender of a destination, opened by its settings, and anew with every token where it has them. `scope`: of the destination's actor.
 * What is opened no more takes no more sends; those under way are let finish.
 */
export const makeOpening = Effect.fnUntraced(function* (scope: Scope.Scope, mayAsk: () => boolean) {
  const tokens = yield* makeTokens(mayAsk)
  const services = yield* Effect.context<SessionServices>()
  let state: DestinationState | null = null
  let opened: Opened | null = null

  const held = (sender: SessionSender) => HeldSession.make(sender).pipe(Scope.provide(scope), Effect.provide(services))

  const open = Effect.fnUntraced(function* (sender: Sender, token: Token | null) {
    const session = sender.kind === "session" ? yield* held(sender) : null
    opened?.session?.release()
    opened = { sender, session, token: token?.value ?? null, until: token?.until ?? Number.POSITIVE_INFINITY }
    return opened
  })

  /** By the settings of who asked: they may be others by now, and a token is sent nowhere else than where it was asked for. */
  const openWith = Effect.fnUntraced(function* (of: DestinationState, token: Token) {
    if (state === of && opened?.token === token.value) return (opened = { ...opened, until: token.until })
    const sender = of.bearer!.open(token.value)
    if (state === of) return yield* open(sender, token)
    const session = sender.kind === "session" ? yield* held(sender) : null
    session?.release()
    return { sender, session, token: token.value, until: token.until }
  })

  return {
    tokens,
    /** What delivers now; null: it is to be obtained, or there is none. */
    current: (now: number): Opened | null => (opened !== null && now < opened.until ? opened : null),
    /** Goes by these settings from now on. */
    apply: Effect.fnUntraced(function* (next: DestinationState | null) {
      state = next
      tokens.configure(next?.bearer?.settings ?? null)
      opened?.session?.release()
      opened = null
      if (next !== null && next.sender !== null) yield* open(next.sender, null)
    }),
    /** Waits for a token. */
    obtain: (of: DestinationState): Effect.Effect<Opened, NotObtained, Database | Secrets> =>
      Effect.flatMap(tokens.obtain, (token) => openWith(of, token)),
    /** The same with another token than this one, which the target has refused; null: there is no other. */
    renew: (of: DestinationState, refused: string): Effect.Effect<Opened | null, NotObtained, Database | Secrets> =>
      Effect.flatMap(tokens.renewed(refused), (token) =>
        token === null || token.value === refused ? Effect.succeed(null) : openWith(of, token)
      ),
    cancel: (): void => opened?.session?.cancel()
  }
})

export type Opening = Effect.Success<ReturnType<typeof makeOpening>>
