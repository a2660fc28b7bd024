import { describe, expect, it } from "vitest"
import { Random } from "../../entities/test/Random.ts"
import type { ProviderRequest } from "../src/Adapter.ts"
import { dayMs, hourMs, lifeOf, minuteMs } from "../src/machine/Times.ts"
import type { SourceProvider, Trigger } from "../src/SourceProvider.ts"
import { sourceProviders } from "../src/SourceProviders.ts"
import { calm } from "./ChannelWorld.ts"
import { ProviderWorld } from "./ProviderWorld.ts"

/*
 * What a channel does over sixty days, scenario by scenario, with the adapters and pollers of each trigger at the fake provider. The clock
 * is the test's.
 */

type Instant = Trigger & { readonly adapter: NonNullable<Trigger["adapter"]> }

const instant = sourceProviders.flatMap((provider) =>
  provider.triggers.flatMap((trigger): ReadonlyArray<readonly [string, SourceProvider, Instant]> =>
    trigger.adapter === null ? [] : [[`${provider.key} ${trigger.key}`, provider, trigger as Instant]]
  )
)

const start = Date.UTC(2026, 0, 1)
const end = start + 60 * dayMs

const begin = (provider: SourceProvider, trigger: Trigger, autoFallback = true): ProviderWorld =>
  new ProviderWorld(provider, trigger, { random: new Random(1), faults: calm, startAt: start, autoFallback })

/** Whether a request creates or renews a subscription. */
const subscribes = ({ body, method, url }: ProviderRequest): boolean =>
  method === "PATCH" ||
  (method === "POST" && !url.endsWith("/stop") && !String(body ?? "").includes("hub.mode=unsubscribe"))

const stops = ({ body, method, url }: ProviderRequest): boolean =>
  method === "DELETE" || url.endsWith("/stop") || String(body ?? "").includes("hub.mode=unsubscribe")

/** One item a day, until the sixty days are over. `each` looks at the world after each day. */
const live = async (world: ProviderWorld, each: () => void = () => {}): Promise<void> => {
  while (world.now < end) {
    world.item()
    await world.run(world.now + dayMs)
    each()
  }
  expect(world.missing).toEqual([])
  expect(world.strange).toEqual([])
  expect(world.leftBehind).toEqual([])
  expect(world.deaf).toEqual([])
}

const minutesBetween = (times: ReadonlyArray<number>): ReadonlyArray<number> =>
  times.slice(1).map((at, index) => Math.round((at - times[index]!) / minuteMs))

const timesOf = (world: ProviderWorld, kind: string): ReadonlyArray<number> =>
  world.events.flatMap((event) => (event.kind === kind ? [event.at] : []))

describe.each(instant)("Over sixty days a channel of %s", (_, provider, trigger) => {
  const { adapter } = trigger

  it("renews its subscription in time, and the provider always has one", async () => {
    const world = begin(provider, trigger)
    await world.run(start + minuteMs)
    const [{ expires_at, ...first } = { expires_at: null }] = world.active
    const life = expires_at === null ? null : lifeOf({ ...world.active[0]!, ...first })!
    await live(world, () => {
      expect(world.fake.active.length).toBeGreaterThan(0)
      expect(world.alerts).toEqual([])
    })
    const renewals = timesOf(world, "renewal_succeeded")
    if (life === null) expect(renewals).toEqual([])
    else {
      // A fifth of the life before the end, and up to a twentieth earlier; a handshake and its poll take some seconds.
      expect(renewals.length).toBeGreaterThanOrEqual(Math.floor((60 * dayMs) / life))
      for (const minutes of minutesBetween([start, ...renewals])) {
        expect(minutes * minuteMs).toBeGreaterThanOrEqual(0.74 * life)
        expect(minutes * minuteMs).toBeLessThanOrEqual(0.8 * life + 2 * minuteMs)
      }
    }
    const kinds = new Set(world.events.map(({ kind }) => kind))
    expect([...kinds].filter((kind) => /failed|expired|fallback|silence/.test(kind))).toEqual([])
    // Without renewals a new subscription has replaced the old one, which is stopped afterwards.
    expect(timesOf(world, "stopped").length).toBe(adapter.renew === null ? renewals.length : 0)
  })

  it("takes an item once that two subscriptions notify during a renewal", async () => {
    if (adapter.key !== "watch") return
    const world = begin(provider, trigger)
    world.refuses = (request) => (stops(request) ? 500 : null)
    await world.run(start + 7 * dayMs - hourMs)
    expect(world.fake.active.length).toBe(2)
    world.item()
    await world.run(world.now + minuteMs)
    expect(world.stored.size).toBe(1)
    expect(world.missing).toEqual([])
    expect(world.strange).toEqual([])
  })

  it("is polled while the provider refuses subscriptions, and is instant again after that", async () => {
    const world = begin(provider, trigger)
    world.refuses = (request) => (subscribes(request) ? 500 : null)
    await world.run(start + 3 * dayMs)
    // The third failure opens the alert, and polling takes over: after 5 and 30 seconds.
    expect(world.channel.state.fallback).toMatchObject({ active: true, reason: "provision_failed" })
    expect(world.alerts).toEqual(["channel_provision_failed"])
    expect(timesOf(world, "fallback_activated").map((at) => at - start)).toEqual([35_000])
    // Restores are 30 minutes apart first, then twice as far each time, up to a day.
    const restores = minutesBetween([start, ...timesOf(world, "restore_attempted")])
    expect(restores.slice(0, 6)).toEqual([31, 60, 120, 240, 480, 960])
    world.item()
    await world.run(world.now + 4 * hourMs + minuteMs)
    expect(world.missing).toEqual([])
    world.refuses = () => null
    await world.run(world.now + dayMs)
    expect(world.channel.state.fallback.active).toBe(false)
    expect(world.alerts).toEqual([])
    const before = world.polls.length
    world.item()
    await world.run(world.now + minuteMs)
    expect(world.missing).toEqual([])
    expect(world.polls.slice(before).every(({ reason }) => reason === "notification")).toBe(true)
    await live(world)
    expect(timesOf(world, "fallback_restored")).toHaveLength(1)
  })

  it("opens an alert at once when the provider forbids it", async () => {
    const world = begin(provider, trigger, false)
    world.refuses = (request) => (subscribes(request) ? 403 : null)
    await world.run(start + minuteMs)
    expect(world.alerts).toEqual(["channel_provision_failed"])
    await world.run(start + 12 * hourMs)
    // Then it tries once an hour.
    expect(minutesBetween(timesOf(world, "provision_failed"))).toEqual(Array.from({ length: 11 }, () => 60))
    world.refuses = () => null
    await live(world)
    expect(world.alerts).toEqual([])
  })

  if (["websub", "watch", "eventsub"].includes(adapter.key)) {
    it("tries again when the handshake does not come, and opens an alert after the third time", async () => {
      const world = begin(provider, trigger, false)
      world.fake.faults.handshake = "skip"
      await world.run(start + 10 * minuteMs)
      expect(world.alerts).toEqual(["channel_provision_failed"])
      // Sixty seconds of waiting, and then 5 s, 30 s and 2 minutes. A hub is asked anew each time and has again sixty seconds; the other
      // services refuse a repetition at once, so that another subscription takes the place of the first one.
      const [first = 0, ...failed] = timesOf(world, "provision_failed").map((at) => at - start)
      expect([first, ...failed].slice(0, 4)).toEqual(
        adapter.key !== "websub" ? [60_000, 65_000, 155_000, 275_000] : [60_000, 125_000, 215_000, 395_000]
      )
      world.fake.faults.handshake = "right"
      await world.run(start + 2 * hourMs)
      await live(world)
      expect(world.alerts).toEqual([])
    })
  }

  it("finds what was not notified, reports the silence, and gets a new subscription", async () => {
    const world = begin(provider, trigger)
    await world.run(start + hourMs)
    world.item()
    await world.run(start + 2 * hourMs)
    world.drop()
    const dropped = world.now
    while (world.kindsFrom(dropped).every((kind) => kind !== "silence_detected")) {
      expect(world.now).toBeLessThan(dropped + 2 * dayMs)
      world.item()
      await world.run(world.now + 6 * hourMs)
      expect(world.missing.length).toBeLessThanOrEqual(1)
    }
    expect(world.kindsFrom(dropped)).toContain("fallback_activated")
    expect(world.polls.some(({ quiet }) => quiet)).toBe(true)
    await live(world)
    expect(world.kindsFrom(dropped)).toEqual(expect.arrayContaining(["fallback_restored", "silence_cleared"]))
    expect(world.alerts).toEqual([])
  })

  it("reports no silence when nothing was missed, and looks less often", async () => {
    const world = begin(provider, trigger)
    await world.run(start + hourMs)
    world.item()
    await world.run(start + 6 * dayMs)
    expect(world.alerts).toEqual([])
    // After a day, and then after half a day more each time.
    const quiet = world.polls.flatMap((poll) => (poll.quiet ? [poll.at] : []))
    expect(minutesBetween([start + hourMs, ...quiet]).map((minutes) => Math.round(minutes / 60))).toEqual([
      24, 12, 12, 12, 12, 12, 12, 12, 12, 12
    ])
    await live(world)
  })

  it("opens an alert when a subscription cannot be stopped, and resolves it when it can", async () => {
    const world = begin(provider, trigger)
    await world.run(start + hourMs)
    world.refuses = (request) => (stops(request) ? 500 : null)
    world.touch({ disabled: true })
    await world.run(world.now + hourMs)
    expect(world.alerts).toEqual(["channel_stop_failed"])
    expect(minutesBetween(timesOf(world, "stop_failed")).slice(0, 4)).toEqual([0, 1, 2, 10])
    world.refuses = () => null
    await world.run(world.now + 2 * hourMs)
    expect(world.alerts).toEqual([])
    expect(world.fake.active).toEqual([])
    world.touch({ disabled: false })
    await live(world)
  })

  it("is polled by the grid of its schedule, which neither drifts nor bursts after an outage", async () => {
    const world = begin(provider, trigger)
    world.setMode("polling")
    // Answers take up to 40 seconds.
    world.faults = { ...calm, delayed: 1 }
    const interval = 4 * hourMs
    const gridOf = (times: ReadonlyArray<number>) => times.map((at) => (at - start) / interval)
    await world.run(start + 10 * dayMs)
    const scheduled = world.polls.slice(1).map(({ at }) => at)
    expect(gridOf(scheduled)).toEqual(Array.from({ length: 59 }, (_, index) => index + 1))
    // For five days no process works: one poll follows at once, and then the next of the grid.
    await world.run(start + 15 * dayMs + hourMs, true)
    const before = world.polls.length
    await world.run(start + 16 * dayMs)
    const after = world.polls.slice(before).map(({ at }) => at)
    expect(gridOf(after)).toEqual([90.25, 91, 92, 93, 94, 95])
    world.faults = calm
    world.setMode("instant")
    await live(world)
  })
})
