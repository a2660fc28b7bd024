import { describe, expect } from "vitest"
import { createServer, type Server, type Socket } from "node:net"
import {
  broker,
  calls,
  metadataAnswer,
  producedAnswer,
  type Written,
  writtenIn
} from "../../packages/foreign-databases/test/FakeKafka.ts"
import type { DestinationConfig, Sent } from "../support/Contract.ts"
import { ownIt as base } from "../support/it.ts"

/** Several events in one request to Kafka, by a gateway and a broker of the suite. */

const it = base
  .extend("cluster", async ({}, { onCleanup }) => {
    const produced: Array<Written> = []
    /** The error of a request; 0: none. */
    const hooks: { error: (written: Written) => number } = { error: () => 0 }
    let offset = 0
    const server: Server = createServer(
      broker((call, { localPort }) => {
        if (call.key === calls.metadata) {
          return metadataAnswer({ brokers: [[1, "127.0.0.1", localPort!]], leaders: [1] })
        }
        if (call.key !== calls.produce) return undefined
        const written = writtenIn(call)
        produced.push(written)
        const error = hooks.error(written)
        const first = offset
        if (error === 0) offset += written.count
        return producedAnswer(written.partition, { error, offset: first })
      })
    )
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const sockets = new Set<Socket>()
    server.on("connection", (socket) => {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
    })
    onCleanup(() => {
      for (const socket of sockets) socket.destroy()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    })
    return { port: (server.address() as { port: number }).port, produced, hooks }
  })
  /** A source whose events go to the topic in batches. */
  .extend(
    "batching",
    ({ cluster, gateway }) =>
      async (batch: object, connection: Partial<Sent<"POST", "/connections">> = {}) => {
        const config = { bootstrap_servers: `127.0.0.1:${cluster.port}`, topic: "orders", tls_mode: "disable", batch }
        const destination = await gateway.destination(config as DestinationConfig, "KAFKA")
        const source = await gateway.source()
        await gateway.connection(source, destination, [], connection)
        return async (payload: object): Promise<string> => {
          const answer = await fetch(`${gateway.origin}/e/${source.id}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(payload)
          })
          return ((await answer.json()) as { readonly request_id: string }).request_id
        }
      }
  )
  /** The event and the attempts of a request, once the event has ended. */
  .extend(
    "ended",
    ({ gateway }) =>
      (requestId: string) =>
        gateway.eventually("the event ends", async () => {
          const { attempts, events } = await gateway.traced(requestId)
          const [event] = events
          return event?.status === "SUCCESSFUL" || event?.status === "FAILED" ? { attempts, event } : null
        })
  )

const numbers = Array.from({ length: 12 }, (_, n) => n)
const textOf = (n: number): string => `{"n":${n},`

describe("Batches of a Kafka destination", () => {
  it("Each event of a request has one attempt with its own offset", async ({ batching, cluster, ended }) => {
    const send = await batching({ max_count: 4, max_wait_ms: 5_000 })
    const ends = await Promise.all((await Promise.all(numbers.map((n) => send({ n, end: true })))).map(ended))
    const counts = cluster.produced.map(({ count }) => count)
    // A slow machine may send a request before it is full.
    expect(counts.length).toBeLessThan(numbers.length)
    expect([Math.max(...counts) <= 4, counts.reduce((sum, count) => sum + count, 0)]).toEqual([true, numbers.length])
    expect(ends.map(({ attempts, event }) => [attempts.length, event.status])).toEqual(
      numbers.map(() => [1, "SUCCESSFUL"])
    )
    const offsets = ends.map(
      ({ attempts }) => (JSON.parse(attempts[0]!.body ?? "{}") as { readonly offset: number }).offset
    )
    expect(offsets.toSorted((a, b) => a - b)).toEqual(numbers)
  })

  it("Of a request that is refused only the event fails that is refused alone", async ({
    batching,
    cluster,
    ended
  }) => {
    cluster.hooks.error = ({ batch }) => (batch.includes(textOf(2)) ? 10 : 0)
    const send = await batching({ max_count: 4, max_wait_ms: 5_000 })
    const ends = await Promise.all((await Promise.all(numbers.map((n) => send({ n, end: true })))).map(ended))
    expect(ends.map(({ attempts, event }) => [attempts.length, event.status])).toEqual(
      numbers.map((n) => [1, n === 2 ? "FAILED" : "SUCCESSFUL"])
    )
  })

  it("Events of an ordering key are never in one request, and keep their order", async ({
    batching,
    cluster,
    ended
  }) => {
    const send = await batching(
      { max_count: 4, max_wait_ms: 20 },
      { ordering: { key: "body.customer", on_failure: "block" } }
    )
    const requests: Array<string> = []
    for (const n of numbers.slice(0, 6)) for (const customer of ["a", "b"]) requests.push(await send({ n, customer }))
    await Promise.all(requests.map(ended))
    for (const customer of ["a", "b"]) {
      const own = numbers
        .slice(0, 6)
        .map((n) => cluster.produced.findIndex(({ batch }) => batch.includes(`{"n":${n},"customer":"${customer}"}`)))
      expect([own.includes(-1), own.every((at, i) => i === 0 || at > own[i - 1]!)]).toEqual([false, true])
    }
  })
})
