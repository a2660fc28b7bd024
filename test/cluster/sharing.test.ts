import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { describe, expect } from "vitest"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"
import { hanging, type Received } from "../support/Target.ts"
import { now, sleep, waitUntil } from "../support/Waiting.ts"

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
const refusing = async (): Promise<string> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

describe("one dead destination", () => {
  it("costs the others nothing: whether it hangs or refuses", async ({ running, target, upstream }) => {
    const gateways = await running({ a: "all" })
    upstream.reply = hanging
    const healthy = await route(gateways, "a", "healthy", `${target.origin}/healthy`)
    const bad = [
      await route(gateways, "a", "hangs", `${upstream.origin}/`),
      await route(gateways, "a", "refuses", `${await refusing()}/`)
    ]

    /** Sends for `forMs` at 50 a second each; gives how long each event took to its healthy target, in order. */
    const latencies = async (forMs: number, beside: ReadonlyArray<string>): Promise<ReadonlyArray<number>> => {
      const before = target.received.length
      const until = Date.now() + forMs
      const answers: Array<Promise<readonly [id: string, sentAt: number]>> = []
      while (Date.now() < until) {
        const sentAt = now()
        answers.push(post(gateways, "a", healthy).then((id) => [id, sentAt] as const))
        for (const source of beside) void post(gateways, "a", source)
        await sleep(20)
      }
      const sent = new Map(await Promise.all(answers))
      await waitUntil("all has come", () => target.received.length - before >= sent.size)
      const requestOf = new Map(
        (await gateways.query("select id, request_id from events where request_id = any($1)", [[...sent.keys()]])).map(
          (row) => [String(row["id"]), String(row["request_id"])] as const
        )
      )
      const eventOf = ({ headers }: Received): string => String(headers["x-gateway-event-id"])
      return target.received
        .slice(before)
        .map((received) => received.at - sent.get(requestOf.get(eventOf(received)) ?? "")!)
        .sort((a, b) => a - b)
    }
    const median = (values: ReadonlyArray<number>): number => values[values.length >> 1]!

    await latencies(500, [])
    const alone = await latencies(2_000, [])
    const beside = await latencies(5_000, bad)
    expect(beside.length).toBeGreaterThan(100)
    expect(beside.at(-1)!).toBeLessThan(1_000)
    // Three times the load on the same machine: some milliseconds are due to that alone.
    expect(median(beside)).toBeLessThan(3 * median(alone) + 30)
  })
})

describe("two runners and an edge", () => {
  it("share the work: both deliver, the edge accepts, and each says what it is", async ({ running, target }) => {
    const gateways = await running({ a: "runner", b: "runner", door: "edge" })
    await waitUntil("both runners hold shards", async () => (await gateways.readiness("b")).shards > 0)
    const sources = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        route(gateways, "door", `route-${index}`, `${target.origin}/route-${index}`)
      )
    )
    for (let round = 0; round < 5; round++) {
      await Promise.all(sources.map((source) => post(gateways, "door", source)))
    }
    await waitUntil("all has come", () => target.received.length >= 60)
    const from = (name: "a" | "b") => target.from(gateways.process(name).pid!)
    expect(from("a").length).toBeGreaterThan(0)
    expect(from("b").length).toBeGreaterThan(0)
    expect(from("a").length + from("b").length).toBe(60)

    const [a, b, door] = await Promise.all([
      gateways.readiness("a"),
      gateways.readiness("b"),
      gateways.readiness("door")
    ])
    expect(a).toMatchObject({ ok: true, role: "runner" })
    expect(b).toMatchObject({ ok: true, role: "runner" })
    expect(a.shards + b.shards).toBe(64)
    expect(door).toMatchObject({ ok: true, role: "edge", shards: 0 })
  })
})
