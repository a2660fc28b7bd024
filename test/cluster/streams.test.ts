import { randomUUID } from "node:crypto"
import { WebSocket } from "@effect/platform-node/NodeWS"
import { afterAll, describe, expect } from "vitest"
import type { Gateways } from "../support/Gateways.ts"
import { it as gatewayIt } from "../support/it.ts"
import { noOwnRedis, Redis } from "../support/Redis.ts"
import { eventually } from "../support/Waiting.ts"

/**
 * Streams of every process show the requests that any process accepts: with only the database between them, with a Redis, and
 * when that Redis is away. A process that ends disconnects its readers first.
 */

const key = "gwk_cluster_test_key"
const redis = noOwnRedis ? null : await Redis.start()
afterAll(() => redis?.stop())

type Processes = Gateways<"first" | "second" | "edge">

/** The processes of a world. Worlds with the same settings have the same ones. */
const it = gatewayIt.extend("processes", { scope: "file" }, ({ fileRunning }) => {
  const started = new Map<World["settings"], Promise<Processes>>()
  return async ({ settings }: World): Promise<Processes> => {
    const processes = started.get(settings) ?? fileRunning({ first: "all", second: "all", edge: "edge" }, settings)
    started.set(settings, processes)
    return (await processes).everyRunning()
  }
})

const watch = (origin: string, id: string, onTestFinished: (end: () => void) => void) => {
  const socket = new WebSocket(`${origin.replace("http", "ws")}/v1/bins/${id}/stream`, ["bin.v1"], {
    headers: { authorization: `Bearer ${key}` }
  })
  const received: Array<string> = []
  const reader = { received, closed: null as number | null }
  socket.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as { readonly type: string; readonly request?: { readonly id: string } }
    received.push(frame.request?.id ?? frame.type)
  })
  socket.on("close", (code) => {
    reader.closed = code
  })
  socket.on("error", () => {})
  onTestFinished(() => socket.terminate())
  return reader
}

interface World {
  readonly settings: Readonly<Record<string, string>>
  /** Done when half of the requests were sent. */
  readonly amid: () => Promise<unknown>
}

const alone: World = { settings: {}, amid: async () => {} }
const withRedis: World = { settings: { TIDEGATE_REDIS_URL: redis?.url ?? "" }, amid: async () => {} }

describe.each([
  ["the database alone", alone],
  ...(redis === null
    ? []
    : ([
        ["a Redis", withRedis],
        ["a Redis that stops during the test", { ...withRedis, amid: () => redis.stop() }]
      ] as const))
] as ReadonlyArray<readonly [string, World]>)("Streams of processes that share %s", (_, world) => {
  it("A stream reports each request of other processes once, and asks readers to reconnect at shutdown", async ({
    onTestFinished,
    processes
  }) => {
    const gateways = await processes(world)
    const { id } = await gateways.api("first", "POST", "/sources", { name: `watched-${randomUUID()}` })
    const readers = gateways.names.map((name) => watch(gateways.process(name).origin, id, onTestFinished))
    const sent: Array<string> = []
    for (const reader of readers) await eventually("a greeting", () => reader.received[0])
    for (let i = 0; i < 10; i++) {
      if (i === 5) await world.amid()
      for (const name of gateways.names) {
        const { body } = await gateways.call(name, "POST", `/e/${id}`, { body: "{}" })
        sent.push((JSON.parse(body) as { request_id: string }).request_id)
      }
    }
    for (const reader of readers) {
      await eventually("all are received", () => (sent.every((one) => reader.received.includes(one)) ? true : null))
      // Every half a minute it is said that the stream is alive.
      expect(reader.received.filter((one) => one !== "alive")).toHaveLength(sent.length + 1)
    }

    await gateways.process("first").end("SIGTERM")
    expect(await eventually("the end", () => readers[0]!.closed)).toBe(1012)
    const { body } = await gateways.call("second", "POST", `/e/${id}`, { body: "{}" })
    await eventually("the others go on", () => {
      const { request_id } = JSON.parse(body) as { request_id: string }
      return readers[1]!.received.includes(request_id) && readers[2]!.received.includes(request_id) ? true : null
    })
  })
})
