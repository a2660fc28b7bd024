import { Cause, Context, Effect, Layer, Queue, Schema, type Scope, Stream } from "effect"

/** What a subscriber receives. */
export type Received =
  | { readonly kind: "message"; readonly text: string }
  /** Messages may have been lost before this point: the subscriber reads the present state if it needs it. */
  | { readonly kind: "gap" }

/** The subscriber has read too slowly and receives no more: it has to subscribe again. */
export class TooSlow extends Schema.TaggedError<TooSlow>()("TooSlow", {}) {}

/** Bytes. A longer message is not sent: its subscribers receive a gap. */
export const longestMessage = 64 * 1024

/** Limits of the queue of one subscriber: above either, the subscriber is dropped. */
const maxWaiting = 256
const maxWaitingBytes = 1024 * 1024

/**
 * Sends messages to all present subscribers: in all processes if there is a Redis, else in this one. Messages may be lost, and sending never
 * waits: the data is in SQL, and a message is only a wake-up notification to read it, or saves that read. If Redis does not
 * answer, subscribers of the same process still receive messages.
 */
export class Feed extends Context.Service<
  Feed,
  {
    /** Never fails and never waits. */
    readonly publish: (channel: string, message: string) => Effect.Effect<void>
    /**
     * Everything that is published from now on, while the scope is open: a subscriber that reads from SQL after this misses nothing. It
     * waits for at most a quarter of a second; if messages of other processes start later than that, a gap is sent then.
     */
    readonly subscribe: (channel: string) => Effect.Effect<Stream.Stream<Received, TooSlow>, never, Scope.Scope>
  }
>()("@tidegate/coordination/Feed") {
  /** For this process alone. */
  static readonly layerMemory: Layer.Layer<Feed> = Layer.sync(Feed, () => {
    const subscribers = new Subscribers()
    return Feed.of({
      publish: (channel, message) => Effect.sync(() => subscribers.notify(channel, receivedOf(message))),
      subscribe: (channel) => subscribers.add(channel)
    })
  })
}

/** What subscribers receive for a message. */
export const receivedOf = (message: string): Received =>
  Buffer.byteLength(message) > longestMessage ? { kind: "gap" } : { kind: "message", text: message }

const sizeOf = (received: Received): number => (received.kind === "message" ? Buffer.byteLength(received.text) : 0)

/** The subscribers of one process, by channel. */
export class Subscribers {
  private readonly byChannel = new Map<string, Set<(received: Received) => void>>()

  /** The channels with subscribers. */
  channels(): ReadonlyArray<string> {
    return [...this.byChannel.keys()]
  }

  has(channel: string): boolean {
    return this.byChannel.has(channel)
  }

  notify(channel: string, received: Received): void {
    for (const receive of this.byChannel.get(channel) ?? []) receive(received)
  }

  add(channel: string): Effect.Effect<Stream.Stream<Received, TooSlow>, never, Scope.Scope> {
    return Effect.map(
      Effect.acquireRelease(
        Effect.gen({ self: this }, function* () {
          const queue = yield* Queue.make<Received, TooSlow>({ capacity: maxWaiting, strategy: "dropping" })
          let waiting = 0
          const receive = (received: Received): void => {
            const size = sizeOf(received)
            if (waiting + size <= maxWaitingBytes && Queue.offerUnsafe(queue, received)) {
              waiting += size
              return
            }
            this.remove(channel, receive)
            Queue.failCauseUnsafe(queue, Cause.fail(new TooSlow()))
          }
          const taken = (received: Received): void => {
            waiting -= sizeOf(received)
          }
          const all = this.byChannel.get(channel) ?? new Set()
          this.byChannel.set(channel, all.add(receive))
          return { queue, taken, receive }
        }),
        ({ queue, receive }) =>
          Effect.suspend(() => {
            this.remove(channel, receive)
            return Queue.shutdown(queue)
          })
      ),
      ({ queue, taken }) => Stream.tap(Stream.fromQueue(queue), (received) => Effect.sync(() => taken(received)))
    )
  }

  private remove(channel: string, receive: (received: Received) => void): void {
    const all = this.byChannel.get(channel)
    if (all?.delete(receive) === true && all.size === 0) this.byChannel.delete(channel)
  }
}
