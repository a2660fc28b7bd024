import { describe, expect } from "vitest"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"
import { freePort } from "../support/Ports.ts"
import { hanging } from "../support/Target.ts"
import { now, waitUntil } from "../support/Waiting.ts"

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
  expect(answer.status, answer.body).toBe(200)
  return (JSON.parse(answer.body) as { request_id: string }).request_id
}

/** An address where nothing listens. */
const refusing = async (): Promise<string> => `http://127.0.0.1:${await freePort()}`

describe("Unavailable destination", () => {
  it("A destination that hangs or refuses does not slow down deliveries to others", async ({
    running,
    target,
    upstream
  }) => {
    const gateways = await running({ a: "all" })
    upstream.reply = hanging
    const healthy = await route(gateways, "a", "healthy", `${target.origin}/healthy`)
    const bad = [
      await route(gateways, "a", "hangs", `${upstream.origin}/`),
      await route(gateways, "a", "refuses", `${await refusing()}/`)
    ]

    /**
     * Sends so many to the healthy target, the next when one has come, and as many to each of the others. Gives how long each
     * took, in order.
     */
    const latencies = async (count: number, beside: ReadonlyArray<string>): Promise<ReadonlyArray<number>> => {
      const took: Array<number> = []
      const others: Array<Promise<ReadonlyArray<PromiseSettledResult<string>>>> = []
      for (let n = 0; n < count; n++) {
        const before = target.received.length
        const sentAt = now()
        for (const source of beside) others.push(Promise.allSettled([post(gateways, "a", source)]))
        await post(gateways, "a", healthy)
        const arrived = await target.next(before + 1)
        took.push(arrived[before]!.at - sentAt)
      }
      const refused = (await Promise.all(others)).flat().filter(({ status }) => status === "rejected")
      expect(refused).toEqual([])
      return took.sort((a, b) => a - b)
    }
    const median = (values: ReadonlyArray<number>): number => values[values.length >> 1]!

    await latencies(25, [])
    // Measured again when it does not hold: other work on the machine comes and goes.
    for (const isLast of [false, false, true]) {
      const alone = await latencies(100, [])
      const beside = await latencies(250, bad)
      expect(upstream.received.length).toBeGreaterThan(0)
      // One that waits for a dead one waits for as long as a delivery may take, which is 30 s.
      expect(beside.at(-1)!).toBeLessThan(15_000)
      const [p95, maxP95] = [beside[Math.floor(0.95 * beside.length)]!, 1_000 + 10 * alone.at(-1)!]
      // Three times the load on the same machine: some milliseconds are due to that alone.
      const [p50, maxP50] = [median(beside), 3 * median(alone) + 30]
      if (p95 < maxP95 && p50 < maxP50) break
      if (isLast) {
        expect(p95).toBeLessThan(maxP95)
        expect(p50).toBeLessThan(maxP50)
      }
    }
  })
})

describe("Two runners and an edge", () => {
  it("Both runners deliver, the edge accepts, and each process reports its role", async ({ running, target }) => {
    const gateways = await running({ a: "runner", b: "runner", edge: "edge" })
    await waitUntil("both runners hold shards", async () => (await gateways.readiness("b")).shards > 0)
    const sources = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        route(gateways, "edge", `route-${index}`, `${target.origin}/route-${index}`)
      )
    )
    for (let round = 0; round < 5; round++) {
      await Promise.all(sources.map((source) => post(gateways, "edge", source)))
    }
    await waitUntil("all has come", () => target.received.length >= 60)
    const from = (name: "a" | "b") => target.from(gateways.process(name).pid!)
    expect(from("a").length).toBeGreaterThan(0)
    expect(from("b").length).toBeGreaterThan(0)
    expect(from("a").length + from("b").length).toBe(60)

    const [a, b, edge] = await Promise.all([
      gateways.readiness("a"),
      gateways.readiness("b"),
      gateways.readiness("edge")
    ])
    expect(a).toMatchObject({ ok: true, role: "runner" })
    expect(b).toMatchObject({ ok: true, role: "runner" })
    expect(a.shards + b.shards).toBe(64)
    expect(edge).toMatchObject({ ok: true, role: "edge", shards: 0 })
  })
})
