/**
 * Sends many events to an app on this machine through a tunnel, and kills runners all the while:
 * `node test/faults/tunnel.ts [events] [events a second] [seconds between two kills]`
 *
 * The client is that of `packages/client`. Prints how many were lost, came twice or failed, and how far they came out of the order in
 * which they were sent; exits with 1 when one was lost.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Exit, Scope } from "effect"
import { openTunnel } from "../../packages/client/src/Tunnel.ts"
import { Gateways } from "../support/Gateways.ts"
import { now, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { standalone } from "./Postgres.ts"

const [events = 10_000, rate = 150, secondsBetween = 10] = process.argv.slice(2).map(Number)
const patienceMs = 300_000

const scope = Scope.makeUnsafe()
const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
const postgres = await standalone(folder)
const gateways = await Gateways.start(folder, postgres.url, { a: "runner", b: "runner", edge: "edge" })
const startedAt = now()
const progress = (line: string) => process.stderr.write(`${((now() - startedAt) / 1_000).toFixed(0)} s: ${line}\n`)

/** The requests that the app got, in their order. */
const asked: Array<number> = []
const app = createServer((request, response) => {
  asked.push(Number(request.url!.slice(request.url!.lastIndexOf("/") + 1)))
  request.resume()
  request.on("end", () => response.end("ok"))
})
await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve))

const end = new AbortController()
const state = { isSending: true, connections: 0 }
let kills = 0

/** For the first request of each event: how many came after a later one, and the largest distance. */
const disorder = (first: ReadonlyArray<number>) => {
  let latest = -1
  let late = 0
  let farthest = 0
  for (const n of first) {
    if (n < latest) {
      late++
      farthest = Math.max(farthest, latest - n)
    }
    latest = Math.max(latest, n)
  }
  return { late, farthest }
}

const killing = async (): Promise<void> => {
  for (let n = 0; state.isSending; n++) {
    const name = n % 2 === 0 ? "a" : "b"
    await sleep(secondsBetween * 1_000)
    if (!state.isSending) return
    await gateways.process(name).end("SIGKILL")
    kills++
    progress(`${name} is killed, ${asked.length} asked for`)
    await gateways.process(name).start()
    await waitUntil("it has shards again", async () => (await gateways.readiness(name)).shards > 0, { patienceMs })
  }
}

try {
  await waitUntil("both runners hold shards", async () => (await gateways.readiness("b")).shards > 0)
  const source = await gateways.api("edge", "POST", "/sources", { name: "sender" })
  const destination = await gateways.api("edge", "POST", "/destinations", { name: "laptop", type: "CLI" })
  await gateways.api("edge", "POST", "/connections", {
    name: "to the laptop",
    source_id: source.id,
    destination_id: destination.id
  })
  const { port } = app.address() as AddressInfo
  const tunnel = openTunnel({
    baseUrl: gateways.process("edge").origin,
    key: "gwk_cluster_test_key",
    destinationId: destination.id,
    localUrl: `http://127.0.0.1:${port}`,
    signal: end.signal,
    onEvent: ({ type }) => {
      if (type === "ready") state.connections++
    }
  })
  await waitUntil("the tunnel is open", () => state.connections > 0)
  const killer = killing()
  const began = now()
  const sending: Array<Promise<number>> = []
  for (let n = 0; n < events; n++) {
    const wait = began + (n * 1_000) / rate - now()
    if (wait > 0) await sleep(wait)
    sending.push(gateways.call("edge", "POST", `/e/${source.id}/${n}`, { body: "{}" }).then(({ status }) => status))
  }
  const statuses = await Promise.all(sending)
  const refused = statuses.filter((status) => status !== 200).length
  state.isSending = false
  await killer
  progress("all are sent")
  const left = async () => Number((await gateways.query("select count(*)::int as n from deliveries"))[0]!["n"])
  await waitUntil("all are over", async () => (await left()) === 0, { patienceMs, everyMs: 250 })
  end.abort()
  await tunnel
  const [found] = await gateways.query(
    `select count(*)::int as events, count(*) filter (where state = 'SUCCESSFUL')::int as successful,
      count(*) filter (where attempts > 1)::int as retried from events`
  )
  const failures = await gateways.query(
    `select error_code, response_status, count(*)::int as n, min(e.failure_message) as message from events e
      where state <> 'SUCCESSFUL' group by 1, 2`
  )
  const first = [...new Set(asked)]
  const lost = events - refused - first.length
  process.stdout.write(
    `${JSON.stringify({ ...found, sent: events, rate, refused, kills, lost, again: asked.length - first.length, connections: state.connections, ...disorder(first), failures }, null, 2)}\n`
  )
  process.exitCode = lost === 0 && found!["successful"] === events - refused ? 0 : 1
} finally {
  end.abort()
  app.close()
  await gateways.close()
  await postgres.close()
  await Effect.runPromise(Scope.close(scope, Exit.void))
}
