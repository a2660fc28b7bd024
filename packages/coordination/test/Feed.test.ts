import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Feed, longestMessage } from "../src/Feed.ts"

const texts = (count: number) => Array.from({ length: count }, (_, index) => ({ kind: "message", text: `m${index}` }))

const publishAll = (feed: Feed["Service"], channel: string, count: number) =>
  Effect.forEach(texts(count), ({ text }) => feed.publish(channel, text), { discard: true })

describe("Feed in memory", () => {
  it.effect("tells what is published from the subscription on, in order, to all of its channel", () =>
    Effect.gen(function* () {
      const feed = yield* Feed
      yield* feed.publish("a", "too early")
      const [one, two, other] = [yield* feed.subscribe("a"), yield* feed.subscribe("a"), yield* feed.subscribe("b")]
      yield* publishAll(feed, "a", 3)
      yield* feed.publish("b", "m0")
      for (const [stream, count] of [
        [one, 3],
        [two, 3],
        [other, 1]
      ] as const) {
        expect(yield* Stream.runCollect(Stream.take(stream, count))).toEqual(texts(count))
      }
    }).pipe(Effect.provide(Feed.layerMemory))
  )

  it.effect("drops who reads too slowly, by number or by bytes, and nobody else", () =>
    Effect.gen(function* () {
      const feed = yield* Feed
      const long = "x".repeat(longestMessage)
      for (const [message, most] of [
        ["m", 256],
        [long, 16]
      ] as const) {
        const slow = yield* feed.subscribe("a")
        const read: Array<number> = []
        const quick = yield* feed.subscribe("a")
        for (let sent = 0; sent < 3 * most; sent++) {
          yield* feed.publish("a", message)
          read.push((yield* Stream.runCollect(Stream.take(quick, 1))).length)
        }
        expect(read.length).toBe(3 * most)
        const told = yield* Effect.exit(Stream.runDrain(slow))
        expect(String(told)).toContain("TooSlow")
      }
    }).pipe(Effect.provide(Feed.layerMemory))
  )

  it.effect("tells of a gap in place of what is too long", () =>
    Effect.gen(function* () {
      const feed = yield* Feed
      const stream = yield* feed.subscribe("a")
      yield* feed.publish("a", "ü".repeat(longestMessage / 2 + 1))
      expect(yield* Stream.runCollect(Stream.take(stream, 1))).toEqual([{ kind: "gap" }])
    }).pipe(Effect.provide(Feed.layerMemory))
  )
})
