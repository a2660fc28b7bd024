import { Cause, Context, Effect, Layer, Queue, Schema, type Scope, Stream } from "effect"

/** What a subscriber is told. */
export type Told =
  | { readonly kind: "message"; readonly text: string }
  /** Messages may be missing from here on: it reads what there is, if it matters. */
  | { readonly kind: "gap" }

/** The subscriber has read too slowly, and is told nothing more: it comes again, or it does not. */
export class TooSlow extends Schema.TaggedError<TooSlow>()("TooSlow", {}) {}

/** A longer message (in bytes) is not sent: its subscribers are told of a gap. */
export const longestMessage = 64 * 1024

/** What waits for one subscriber: beyond either it is dropped. */
const maxWaiting = 256
const maxWaitingBytes = 1024 * 1024

/**
 * Tells whoever listens at that moment, in all processes where there is a Redis, else in this one. What it tells may be
 * lost, and is told without waiting: what has to be known is in SQL, and a message is a hint to read it, or saves that. Without
 * an answering Redis the subscribers of the same process are still told.
 */
export class Feed extends Context.Service<
  Feed,
  {
    /** Never fails and never waits. */
    readonly publish: (channel: string, message: string) => Effect.Effect<void>
    /**
     * What is published from now on, as long as the scope is open: who reads from SQL after this misses nothing. It
     * waits for at most a quarter of a second; a gap is told when messages of other processes come only from then on.
     */
    readonly subscribe: (channel: string) => Effect.Effect<Stream.Stream<Told, TooSlow>, never, Scope.Scope>
  }
>()("@tidegate/coordination/Feed") {
  /** Of this process alone. */
  static readonly layerMemory: Layer.Layer<Feed> = Layer.sync(Feed, () => {
    const subscribers = new Subscribers()
    return Feed.of({
      publish: (channel, message) => Effect.sync(() => subscribers.tell(channel, toldOf(message))),
      subscribe: (channel) => subscribers.add(channel)
    })
  })
}

/** What is told of a message. */
export const toldOf = (message: string): Told =>
  Buffer.byteLength(message) > longestMessage ? { kind: "gap" } : { kind: "message", text: message }

const sizeOf = (told: Told): number => (told.kind === "message" ? Buffer.byteLength(told.text) : 0)

/** Those of one process, by channel. */
export class Subscribers {
  private readonly byChannel = new Map<string, Set<(told: Told) => void>>()

  /** The channels that somebody listens to. */
  channels(): ReadonlyArray<string> {
    return [...this.byChannel.keys()]
  }

  has(channel: string): boolean {
    return this.byChannel.has(channel)
  }

  tell(channel: string, told: Told): void {
    for (const tell of this.byChannel.get(channel) ?? []) tell(told)
  }

  add(channel: string): Effect.Effect<Stream.Stream<Told, TooSlow>, never, Scope.Scope> {
    return Effect.map(
      Effect.acquireRelease(
        Effect.gen({ self: this }, function* () {
          const queue = yield* Queue.make<Told, TooSlow>({ capacity: maxWaiting, strategy: "dropping" })
          let waiting = 0
          const tell = (told: Told): void => {
            const size = sizeOf(told)
            if (waiting + size <= maxWaitingBytes && Queue.offerUnsafe(queue, told)) {
              waiting += size
              return
            }
            this.remove(channel, tell)
            Queue.failCauseUnsafe(queue, Cause.fail(new TooSlow()))
          }
          const taken = (told: Told): void => {
            waiting -= sizeOf(told)
          }
          const all = this.byChannel.get(channel) ?? new Set()
          this.byChannel.set(channel, all.add(tell))
          return { queue, taken, tell }
        }),
        ({ queue, tell }) =>
          Effect.suspend(() => {
            this.remove(channel, tell)
            return Queue.shutdown(queue)
          })
      ),
      ({ queue, taken }) => Stream.tap(Stream.fromQueue(queue), (told) => Effect.sync(() => taken(told)))
    )
  }

  private remove(channel: string, tell: (told: Told) => void): void {
    const all = this.byChannel.get(channel)
    if (all?.delete(tell) === true && all.size === 0) this.byChannel.delete(channel)
  }
}
