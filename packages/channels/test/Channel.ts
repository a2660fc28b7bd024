import { completed, type Config } from "@tidegate/connectors/Settings"
import { Effect, Result, type Schema } from "effect"
import { receive } from "./receive.ts"
import type {
  Adapter,
  CallbackMessage,
  Context,
  Item,
  Notification,
  Polled,
  ProviderError,
  Subscription
} from "../src/Adapter.ts"
import type { Trigger } from "../src/SourceProvider.ts"
import { callsTo, type Deliver, deliverAll } from "./fake/FakeCalls.ts"
import { type CallbackAnswer, type FakeCallback, FakeProvider, type FakeTrigger } from "./fake/FakeProvider.ts"

/** A subscription and what came to it. */
interface Live {
  subscription: Subscription
  readonly callback: string
  readonly got: Array<Notification>
}

/**
 * What the gateway does with a trigger, without storage: it creates subscriptions at a fake provider, takes callbacks, and polls. The
 * clock stands until a test moves it.
 */
export class Channel {
  now = Date.parse("2026-03-01T12:00:00.000Z")
  readonly fake: FakeProvider
  readonly trigger: Trigger
  readonly inputs: Schema.JsonObject
  readonly live: Array<Live> = []
  cursor: Schema.Json = null

  constructor(trigger: Trigger, inputs: Config = {}) {
    this.trigger = trigger
    this.fake = new FakeProvider({ origin: "https://provider.test", now: () => this.now, token: "t0ken" })
    const written = trigger.key === "entry.added" ? { url: `${this.fake.origin}/feeds/news.atom` } : {}
    const list = trigger.key === "item.added" ? { url: `${this.fake.origin}/lists/orders` } : {}
    this.inputs = Result.getOrThrow(
      completed(trigger.inputs, { ...(trigger.sample.inputs as Config), ...written, ...list, ...inputs })
    ) as Schema.JsonObject
  }

  get adapter(): Adapter {
    if (this.trigger.adapter === null) throw new Error(`${this.trigger.key} has no notifications`)
    return this.trigger.adapter
  }

  get context(): Context {
    const { fake, inputs, now } = this
    return { call: callsTo(fake, this.#deliver), baseUrl: fake.origin, inputs, now }
  }

  /** Something happens at the provider; the time goes on by a second. Returns the item's id. */
  change(more?: Readonly<Record<string, unknown>>): string {
    this.now += 1_000
    return this.fake.change(this.trigger.key as FakeTrigger, undefined, more)
  }

  /** Creates a subscription for the first target. */
  provision(): Effect.Effect<Live, ProviderError> {
    const number = this.live.length + 1
    const live: Live = {
      subscription: {
        id: `chn_${String(number).padStart(26, "0")}`,
        target: this.adapter.targets(this.inputs)[0]!.key,
        secret: `s3cret${number}`.padEnd(43, "x"),
        externalChannelId: null,
        externalResourceId: null,
        expiresAt: null,
        lastMessageNumber: null
      },
      callback: `https://gateway.test/channels/token${number}`,
      got: []
    }
    this.live.push(live)
    return Effect.map(this.adapter.provision(this.context, live.subscription, live.callback), (provisioned) => {
      const { expiresAt, externalChannelId, externalResourceId } = provisioned
      live.subscription = { ...live.subscription, expiresAt, externalChannelId, externalResourceId }
      return live
    })
  }

  /** Delivers the callbacks that wait. */
  readonly deliver = (): Effect.Effect<number> => deliverAll(this.fake, this.#deliver)

  /** Creates a subscription, and lets the provider verify it. */
  readonly subscribed = (): Effect.Effect<Live, ProviderError> =>
    Effect.flatMap(this.provision(), (live) => Effect.as(this.deliver(), live))

  stop(live: Live): Effect.Effect<void, ProviderError> {
    live.subscription = { ...live.subscription, ended: true }
    return this.adapter.stop(this.context, live.subscription, live.callback)
  }

  /** One request to a callback. */
  receive(live: Live, message: Partial<CallbackMessage>): Notification {
    const notification = receive(this.adapter, live.subscription, this.inputs, {
      method: "POST",
      query: "",
      headers: {},
      body: new Uint8Array(),
      receivedAt: this.now,
      ...message
    })
    live.got.push(notification)
    const { lastMessageNumber } = live.subscription
    if (notification.kind === "dirty" && notification.messageNumber !== null) {
      live.subscription = {
        ...live.subscription,
        lastMessageNumber: Math.max(notification.messageNumber, lastMessageNumber ?? 0)
      }
    }
    if (notification.kind === "handshake" && notification.accepted && notification.expiresAt !== undefined) {
      live.subscription = { ...live.subscription, expiresAt: notification.expiresAt }
    }
    return notification
  }

  /** Polls until there is no more, from the stored cursor, at most 20 times. */
  poll(left = 20): Effect.Effect<Polled, ProviderError> {
    if (left === 0) return Effect.die(new Error("there is always more"))
    return Effect.suspend(() =>
      Effect.flatMap(this.trigger.poller.poll(this.context, this.cursor), (polled) => {
        this.cursor = polled.cursor
        return polled.more
          ? Effect.map(this.poll(left - 1), (rest) => ({
              ...rest,
              items: [...polled.items, ...rest.items],
              cursorReset: polled.cursorReset || rest.cursorReset
            }))
          : Effect.succeed(polled)
      })
    )
  }

  /** Takes what notifications brought: their items, or those of the poll that they ask for. Each item once. */
  taken(live: Live): Effect.Effect<ReadonlyArray<Item>, ProviderError> {
    return Effect.gen({ self: this }, function* () {
      const items = live.got.flatMap((one) => (one.kind === "items" ? one.items : []))
      const polled = live.got.some(({ kind }) => kind === "dirty") ? (yield* this.poll()).items : []
      return [...new Map([...items, ...polled].map((item) => [item.id, item])).values()]
    })
  }

  readonly #deliver: Deliver = ({ body, headers, method, url }: FakeCallback) =>
    Effect.sync((): CallbackAnswer => {
      const live = this.live.find(({ callback }) => url.startsWith(callback))
      if (live === undefined) return { status: 404, body: "" }
      const { reply } = this.receive(live, {
        method,
        query: url.slice(live.callback.length).replace(/^\?/, ""),
        headers,
        body: Buffer.from(body)
      })
      return { status: reply.status, body: reply.body }
    })
}
