import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { sleep, waitUntil } from "../faults/Waiting.ts"
import type { Gateways } from "./Gateways.ts"
import { Receiver, Silent } from "./Receiver.ts"
import { running } from "./running.ts"

/** A source with one connection to a destination at that URL; gives the source's id. */
const route = async <Name extends string>(gateways: Gateways<Name>, by: Name, name: string, url: string) => {
  const source = await gateways.api(by, "POST", "/sources", { name })
  const destination = await gateways.api(by, "POST", "/destinations", { name, config: { url } })
  await gateways.api(by, "POST", "/connections", { name, source_id: source.id, destination_id: destination.id })
  return source.id
}

const post = async <Name extends string>(gateways: Gateways<Name>, to: Name, source: string): Promise<string> => {
  const answer = await gateways.call(to, "POST", `/e/${source}`, {
    headers: { "content-type": "application/json" },
    body: "{}"
  })
  assert.strictEqual(answer.status, 200, answer.body)
  return (JSON.parse(answer.body) as { request_id: string }).request_id
}

describe("one dead destination", () => {
  it.live(
    "costs the others nothing: whether it hangs or refuses",
    () =>
      Effect.gen(function* () {
        const gateways = yield* running({ a: "all" })
        yield* Effect.promise(async () => {
          const receiver = await Receiver.start()
          const silent = await Silent.start()
          const closed = await Silent.start()
          const refusing = closed.origin
          await closed.close()
          const healthy = await route(gateways, "a", "healthy", `${receiver.origin}/healthy`)
          const bad = [
            await route(gateways, "a", "hangs", `${silent.origin}/`),
            await route(gateways, "a", "refuses", `${refusing}/`)
          ]

          /** Sends for `forMs` at 50 a second each; gives how long each event took to its healthy target, in order. */
          const latencies = async (forMs: number, beside: ReadonlyArray<string>): Promise<ReadonlyArray<number>> => {
            const before = receiver.arrivals.length
            const until = Date.now() + forMs
            const answers: Array<Promise<readonly [id: string, sentAt: number]>> = []
            while (Date.now() < until) {
              const sentAt = performance.timeOrigin + performance.now()
              answers.push(post(gateways, "a", healthy).then((id) => [id, sentAt] as const))
              for (const source of beside) void post(gateways, "a", source)
              await sleep(20)
            }
            const sent = new Map(await Promise.all(answers))
            await waitUntil("all has come", () => receiver.arrivals.length - before >= sent.size, {
              patienceMs: 10_000
            })
            const requestOf = new Map(
              (
                await gateways.query("select id, request_id from events where request_id = any($1)", [[...sent.keys()]])
              ).map((row) => [String(row["id"]), String(row["request_id"])] as const)
            )
            return receiver.arrivals
              .slice(before)
              .map(({ at, eventId }) => at - sent.get(requestOf.get(eventId) ?? "")!)
              .sort((a, b) => a - b)
          }
          const median = (values: ReadonlyArray<number>): number => values[values.length >> 1]!

          await latencies(500, [])
          const alone = await latencies(2_000, [])
          const beside = await latencies(5_000, bad)
          assert.isAbove(beside.length, 100)
          assert.isBelow(beside.at(-1)!, 1_000)
          // Three times the load on the same machine: some milliseconds are due to that alone.
          assert.isBelow(median(beside), 3 * median(alone) + 30)
          await silent.close()
          await receiver.close()
        })
      }),
    60_000
  )
})

describe("two runners and an edge", () => {
  it.live(
    "share the work: both deliver, the edge accepts, and each says what it is",
    () =>
      Effect.gen(function* () {
        const gateways = yield* running({ a: "runner", b: "runner", door: "edge" })
        yield* Effect.promise(async () => {
          const receiver = await Receiver.start()
          await waitUntil("both runners hold shards", async () => (await gateways.readiness("b")).shards > 0, {
            patienceMs: 20_000
          })
          const sources = await Promise.all(
            Array.from({ length: 12 }, (_, index) =>
              route(gateways, "door", `route-${index}`, `${receiver.origin}/route-${index}`)
            )
          )
          for (let round = 0; round < 5; round++) {
            await Promise.all(sources.map((source) => post(gateways, "door", source)))
          }
          await waitUntil("all has come", () => receiver.arrivals.length >= 60, { patienceMs: 10_000 })
          const from = (name: "a" | "b") => receiver.from(gateways.process(name).pid!)
          assert.isAbove(from("a").length, 0)
          assert.isAbove(from("b").length, 0)
          assert.strictEqual(from("a").length + from("b").length, 60)

          const [a, b, door] = await Promise.all([
            gateways.readiness("a"),
            gateways.readiness("b"),
            gateways.readiness("door")
          ])
          assert.deepInclude(a, { ok: true, role: "runner" })
          assert.deepInclude(b, { ok: true, role: "runner" })
          assert.strictEqual(a.shards + b.shards, 64)
          assert.deepInclude(door, { ok: true, role: "edge", shards: 0 })
          await receiver.close()
        })
      }),
    60_000
  )
})
