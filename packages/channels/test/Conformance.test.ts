import { describe, expect, it } from "@effect/vitest"
import { cpuMillis } from "@tidegate/runtime/EventLoopBudget"
import { Effect, Result } from "effect"
import { createHmac } from "node:crypto"
import type { CallbackMessage, Notification, ProviderError, Subscription } from "../src/Adapter.ts"
import type { Trigger } from "../src/SourceProvider.ts"
import { sourceProviders } from "../src/SourceProviders.ts"
import { leastMs, timesSlower } from "../../../test/support/LoopHeld.ts"
import { Channel } from "./Channel.ts"

/** What every trigger must keep to, against the fake provider. A new trigger is held to it by being in the list. */
const triggers: ReadonlyArray<readonly [name: string, trigger: Trigger]> = sourceProviders.flatMap((provider) =>
  provider.triggers.map((trigger) => [`${provider.key} ${trigger.key}`, trigger] as const)
)
const instant = triggers.filter(([, { adapter }]) => adapter !== null)

/** Processor time (ms) for which a callback may hold the event loop. */
const boundMs = (): number => 50 * timesSlower()

const idsOf = (items: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> => items.map(({ id }) => id)

const kindsOf = (got: ReadonlyArray<Notification>) => got.map(({ kind }) => kind)

/** Status, code, whether it is permanent, and the wait that is asked for (ms). */
const statuses = [
  [401, "ACCOUNT_UNAUTHORIZED", true, null],
  [403, "PROVIDER_FORBIDDEN", true, null],
  [403, "PROVIDER_RATE_LIMITED", false, 30_000],
  [404, "PROVIDER_NOT_FOUND", true, null],
  [410, "PROVIDER_NOT_FOUND", true, null],
  [429, "PROVIDER_RATE_LIMITED", false, 30_000],
  [500, "PROVIDER_UNAVAILABLE", false, 30_000],
  [418, "PROVIDER_REFUSED", false, null]
] as const

const repeated = (text: string, bytes: number): string => text.repeat(Math.ceil(bytes / text.length))

const mebibytes = (count: number): number => count * 1_048_576

/** Bodies that cost much if they are read without bounds. */
const hostile: ReadonlyArray<readonly [name: string, body: () => string]> = [
  ["10 MiB of zeros", () => "\0".repeat(mebibytes(10))],
  ["10 MiB of brackets", () => "[".repeat(mebibytes(10))],
  ["500 KB of brackets", () => "[".repeat(500_000)],
  ["1 MiB of elements in each other", () => `<rss>${repeated("<a>", mebibytes(1) - 10)}`],
  [
    "entities in entities",
    () =>
      `<!DOCTYPE rss [<!ENTITY a "${"x".repeat(1_000)}">${Array.from({ length: 20 }, (_, level) => `<!ENTITY a${level} "${repeated(`&a${level - 1};`, 100)}">`).join("")}]><rss><channel><item><guid>1</guid><title>&a19;</title></item></channel></rss>`
  ],
  ["100,000 entries", () => `<rss><channel>${repeated("<item><guid>1</guid></item>", 1_000_000).slice(0, 1_000_000)}`],
  ["100,000 notifications", () => `{"value":[${repeated("{},", 300_000)}{}]}`],
  ["a million attributes", () => `<rss><channel ${repeated('a="" ', 1_000_000)}>`]
]

/** The message of a holder of the secret: only such bodies are read at all. */
const genuine = (key: string, { id, secret }: Subscription, body: string, now: number): Partial<CallbackMessage> => {
  const sign = (text: string) => `sha256=${createHmac("sha256", secret).update(text).digest("hex")}`
  const sentAt = new Date(now).toISOString()
  const headers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    websub: { "x-hub-signature": sign(body) },
    watch: { "x-goog-channel-id": id, "x-goog-channel-token": secret, "x-goog-resource-state": "exists" },
    eventsub: {
      "twitch-eventsub-message-id": "1",
      "twitch-eventsub-message-timestamp": sentAt,
      "twitch-eventsub-message-type": "notification",
      "twitch-eventsub-message-signature": sign(`1${sentAt}${body}`)
    },
    repo_webhook: { "x-github-event": "push", "x-hub-signature-256": sign(body) }
  }
  return { headers: headers[key] ?? {}, body: Buffer.from(body) }
}

describe.each(triggers)("Polling of %s", (_, trigger) => {
  it.effect("The first poll emits nothing, and later ones what is new, oldest first", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      channel.change()
      channel.change()
      expect((yield* channel.poll()).items).toEqual([])
      expect((yield* channel.poll()).items).toEqual([])
      // A list of streams has only the newest one, and a list of branches the newest commit of each.
      const isLatest = trigger.key === "stream.online" || trigger.key === "push"
      const changed = [channel.change(), channel.change()].slice(isLatest ? 1 : 0)
      expect(idsOf((yield* channel.poll()).items)).toEqual(changed)
      expect((yield* channel.poll()).items).toEqual([])
    })
  )

  it.effect("An item has a JSON body with the members that the definition promises", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      yield* channel.poll()
      channel.change()
      const { items } = yield* channel.poll()
      const body = JSON.parse(items[0]!.body) as object
      expect(Object.keys(body)).toEqual(
        expect.arrayContaining([...((trigger.output["required"] ?? []) as ReadonlyArray<string>)])
      )
      expect(items[0]!.id.length).toBeLessThanOrEqual(1_024)
    })
  )

  it.effect("A cursor fits into 64 KiB, also when a thousand things have happened", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      yield* channel.poll()
      for (let count = 0; count < 1_200; count++) channel.change()
      const polled = yield* trigger.poller.poll(channel.context, channel.cursor)
      expect(polled.items.length).toBeLessThanOrEqual(1_000)
      expect(JSON.stringify(polled.cursor).length).toBeLessThanOrEqual(65_536)
    })
  )

  it.effect.each(statuses)("HTTP $0 is $1", ([status, code, permanent, retryAfterMs]) =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      channel.fake.refuse(status, { headers: retryAfterMs === null ? {} : { "retry-after": "30" } })
      const failure = yield* Effect.flip(channel.poll())
      expect(failure).toMatchObject({ code, permanent, status, retryAfterMs })
      expect(failure.message).not.toContain("t0ken")
    })
  )
})

const withCursors = triggers.filter(([, { key }]) =>
  ["calendar.event.changed", "drive.changed", "message.created", "drive_item.changed"].includes(key)
)

describe.each(withCursors)("A cursor of %s that is not known any more", (_, trigger) => {
  it.effect("is replaced by a bounded list, in which nothing is missing", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      yield* channel.poll()
      const missed = [channel.change(), channel.change(), channel.change()]
      channel.fake.forgetCursors()
      const polled = yield* channel.poll()
      expect(polled.cursorReset).toBe(true)
      expect(idsOf(polled.items)).toEqual(expect.arrayContaining(missed))
      const changed = channel.change()
      const next = yield* channel.poll()
      expect(next.cursorReset).toBe(false)
      expect(idsOf(next.items)).toEqual([changed])
    })
  )

  it.effect("is replaced by at most 1,000 items, and the next poll goes on", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      yield* channel.poll()
      for (let count = 0; count < 1_500; count++) channel.change()
      channel.fake.forgetCursors()
      const polled = yield* channel.poll()
      expect(polled.items.length).toBeLessThanOrEqual(1_000)
      expect(polled.items.length).toBeGreaterThan(700)
      const changed = channel.change()
      expect(idsOf((yield* channel.poll()).items)).toEqual([changed])
    })
  )
})

describe.each(instant)("Notifications of %s", (_, trigger) => {
  const { adapter } = trigger as Trigger & { readonly adapter: NonNullable<Trigger["adapter"]> }

  it.effect("A subscription is created, verified and notified", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      yield* channel.poll()
      const live = yield* channel.subscribed()
      expect(channel.fake.active).toHaveLength(1)
      expect(channel.fake.active[0]!.secret).toBe(live.subscription.secret)
      const { expiresAt, externalChannelId } = live.subscription
      expect(externalChannelId).not.toBeNull()
      if (expiresAt !== null) expect(expiresAt).toBeGreaterThan(channel.now)
      const changed = channel.change()
      yield* channel.deliver()
      expect(idsOf(yield* channel.taken(live))).toEqual([changed])
      expect(channel.fake.answers.every(({ answer }) => answer.status < 300)).toBe(true)
    })
  )

  it.effect("A poll finds the item of a notification by the same id", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      yield* channel.poll()
      const before = channel.cursor
      const live = yield* channel.subscribed()
      channel.change()
      yield* channel.deliver()
      const notified = yield* channel.taken(live)
      channel.cursor = before
      expect(idsOf((yield* channel.poll()).items)).toEqual(idsOf(notified))
    })
  )

  it.effect("Messages that come twice or late bring each item once", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      yield* channel.poll()
      const live = yield* channel.subscribed()
      channel.fake.faults.notifications = "duplicate"
      const first = channel.change()
      yield* channel.deliver()
      channel.fake.faults.notifications = "reorder"
      const rest = [channel.change({ branch: "one" }), channel.change({ branch: "two" })]
      yield* channel.deliver()
      const taken = idsOf(yield* channel.taken(live))
      expect(taken).toHaveLength(new Set(taken).size)
      if (trigger.key !== "push") expect([...taken].sort()).toEqual([first, ...rest].sort())
      expect(taken).toHaveLength(3)
    })
  )

  it.effect("A wrong signature or token is rejected, and brings nothing", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      const live = yield* channel.subscribed()
      live.got.length = 0
      channel.fake.faults.signature = "wrong"
      channel.change()
      yield* channel.deliver()
      expect(kindsOf(live.got)).toEqual(["rejected"])
      expect(channel.receive(live, {}).kind).toBe("rejected")
    })
  )

  if (adapter.key !== "repo_webhook") {
    it.effect("A handshake of another topic or with another token is refused", () =>
      Effect.gen(function* () {
        const channel = new Channel(trigger)
        channel.fake.faults.handshake = "wrong"
        const provisioned = yield* Effect.result(channel.provision())
        yield* channel.deliver()
        const handshakes = channel.live[0]!.got.filter(({ kind }) => kind === "handshake")
        // Graph sees the wrong answer itself, and refuses the subscription.
        if (adapter.key === "graph") expect(Result.isFailure(provisioned)).toBe(true)
        else expect(handshakes).toMatchObject([{ accepted: false }])
        expect(channel.fake.active.filter(({ protocol }) => protocol !== "watch")).toEqual([])
      })
    )
  }

  it.effect("A handshake that comes late is accepted", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      channel.fake.faults.handshake = "delay"
      const provisioned = yield* Effect.result(channel.provision())
      expect(yield* channel.deliver()).toBe(0)
      // Graph waits for the answer only while it creates the subscription.
      if (adapter.key === "graph") {
        expect(Result.isFailure(provisioned)).toBe(true)
        return
      }
      channel.fake.releaseHandshakes()
      yield* channel.deliver()
      expect(channel.fake.active).toHaveLength(1)
    })
  )

  it.effect("A subscription outlives its first end by a renewal, or is replaced without a gap", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      yield* channel.poll()
      channel.fake.faults.life = 3_600_000
      const live = yield* channel.subscribed()
      const end = live.subscription.expiresAt
      channel.now += 3_000_000
      if (adapter.renew === null) {
        const next = yield* channel.subscribed()
        yield* channel.stop(live)
        yield* channel.deliver()
        if (end !== null) expect(next.subscription.expiresAt).toBeGreaterThan(end)
        expect(channel.fake.active).toHaveLength(1)
      } else {
        const renewed = yield* adapter.renew(channel.context, live.subscription, live.callback)
        if (renewed.state === "active") live.subscription = { ...live.subscription, ...renewed }
        yield* channel.deliver()
        expect(live.subscription.expiresAt).toBe(channel.now + 3_600_000)
      }
      channel.now += 3_000_000
      const changed = channel.change()
      yield* channel.deliver()
      expect(idsOf(yield* channel.taken(channel.live.at(-1)!))).toEqual([changed])
    })
  )

  it.effect("A stopped subscription is not notified any more, and stopping it again succeeds", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      const live = yield* channel.subscribed()
      yield* channel.stop(live)
      yield* channel.deliver()
      expect(channel.fake.subscriptions.size).toBe(0)
      live.got.length = 0
      channel.change()
      expect(yield* channel.deliver()).toBe(0)
      yield* channel.stop(live)
    })
  )

  it.effect("A subscription that was created before a crash is found again, and is stopped", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      const live = yield* channel.subscribed()
      // The row was stored before the call, the answer was not.
      const lost = { ...live.subscription, externalChannelId: null, externalResourceId: null, expiresAt: null }
      const again = yield* Effect.result(adapter.provision(channel.context, lost, live.callback))
      yield* channel.deliver()
      // A channel of the same id is refused, and ends within a week: a new one takes its place.
      if (adapter.key === "watch") {
        expect(again).toMatchObject({ failure: { code: "PROVIDER_REFUSED", permanent: false } })
        return
      }
      if (adapter.key === "eventsub" || adapter.key === "repo_webhook") {
        expect(again).toMatchObject({ success: { externalChannelId: live.subscription.externalChannelId } })
      }
      if (adapter.key === "websub") return
      live.subscription = lost
      yield* channel.stop(live)
      expect(channel.fake.subscriptions.size).toBe(0)
    })
  )

  it.effect("Stopping a subscription that was never created succeeds", () =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      channel.fake.refuse(500, { times: 10 })
      yield* Effect.flip(channel.provision())
      channel.fake.recover()
      yield* channel.stop(channel.live[0]!)
      expect(channel.fake.subscriptions.size).toBe(0)
    })
  )

  it.effect.each(statuses)("HTTP $0 to a creation is $1", ([status, code, permanent, retryAfterMs]) =>
    Effect.gen(function* () {
      const channel = new Channel(trigger)
      channel.fake.refuse(status, { headers: retryAfterMs === null ? {} : { "retry-after": "30" } })
      const failure: ProviderError = yield* Effect.flip(channel.provision())
      expect(failure).toMatchObject({ code, permanent, status, retryAfterMs })
      expect(failure.message).not.toContain(channel.live[0]!.subscription.secret)
    })
  )

  if (["websub", "graph", "eventsub"].includes(adapter.key)) {
    it.effect("A revocation ends the subscription", () =>
      Effect.gen(function* () {
        const channel = new Channel(trigger)
        const live = yield* channel.subscribed()
        live.got.length = 0
        channel.fake.revoke()
        yield* channel.deliver()
        const what = adapter.key === "websub" ? "denied" : "revoked"
        expect(live.got).toMatchObject([{ kind: "lifecycle", what }])
      })
    )
  }

  describe("Hostile callbacks", () => {
    it.effect.each(hostile)("$0 are answered quickly, and bring at most 1,000 items", ([, body]) =>
      Effect.gen(function* () {
        const channel = new Channel(trigger)
        const live = yield* channel.subscribed()
        const message = genuine(adapter.key, live.subscription, body(), channel.now)
        const receiving = (): number => {
          const before = cpuMillis()
          const got = channel.receive(live, message)
          const took = cpuMillis() - before
          if (got.kind === "items") expect(got.items.length).toBeLessThanOrEqual(1_000)
          expect(["items", "dirty", "rejected", "ping"]).toContain(got.kind)
          return took
        }
        expect(yield* leastMs(boundMs, Effect.sync(receiving))).toBeLessThan(boundMs())
      })
    )
  })
})
