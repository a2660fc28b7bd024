/**
 * Just enough of a gateway to run the benchmarks' own code against: the REST calls they make, ingress, and deliveries
 * from memory. It stores nothing and paces by dropping into a timer; its figures mean nothing.
 */
import { createServer, type IncomingMessage } from "node:http"
import { Pool } from "undici"

interface Destination {
  readonly url: URL
  readonly pool: Pool
  readonly paced: boolean
  readonly waiting: Array<Buffer>
}

const destinations = new Map<string, Destination>()
const connections = new Map<string, Array<Destination>>()
/** The destination of each connection. */
const ends = new Map<string, Destination>()
/** Destinations whose connections are paused. */
const paused = new Set<Destination>()
/** Where a source in proxy mode passes its requests on to. */
const upstreams = new Map<string, Destination>()
let nextId = 0

const post = async (destination: Destination, body: Buffer): Promise<void> => {
  const answer = await destination.pool.request({
    method: "POST",
    path: destination.url.pathname,
    headers: { "content-type": "application/json" },
    body
  })
  await answer.body.dump()
}

/** What a target does not take is missing there; at the end of a benchmark it is closed before this process. */
const send = (destination: Destination, body: Buffer): void => void post(destination, body).catch(() => {})

const deliver = (destination: Destination, body: Buffer): void => {
  if (destination.paced || paused.has(destination)) destination.waiting.push(body)
  else send(destination, body)
}

const pause = (destination: Destination, isPaused: boolean): void => {
  if (isPaused) paused.add(destination)
  else if (paused.delete(destination)) for (const body of destination.waiting.splice(0)) send(destination, body)
}

const read = async (request: IncomingMessage): Promise<Buffer> => Buffer.concat(await request.toArray())

const create = (resource: string, input: Record<string, unknown>): string => {
  const id = `${resource}_${nextId++}`
  if (resource === "destinations") {
    const config = input["config"] as { readonly url: string; readonly rate_limit?: number }
    const url = new URL(config.url)
    const paced = config.rate_limit !== undefined
    const destination = { url, paced, pool: new Pool(url.origin, { connections: 32 }), waiting: [] as Array<Buffer> }
    destinations.set(id, destination)
    if (paced) {
      setInterval(() => {
        const body = destination.waiting.shift()
        if (body !== undefined) send(destination, body)
      }, 1_000)
    }
  }
  const { proxy } = (input["config"] ?? {}) as { readonly proxy?: { readonly target_url: string } }
  if (proxy !== undefined) {
    const url = new URL(proxy.target_url)
    upstreams.set(id, { url, paced: false, pool: new Pool(url.origin, { connections: 32 }), waiting: [] })
  }
  if (resource === "connections") {
    const source = String(input["source_id"])
    const destination = destinations.get(String(input["destination_id"]))!
    ends.set(id, destination)
    connections.set(source, (connections.get(source) ?? []).concat(destination))
  }
  return id
}

const server = createServer((request, response) => {
  const answer = (body: Buffer): unknown => {
    const [, first, second = "", id = "", change = ""] = request.url!.split("/")
    if (first === "readyz") return response.end("ok")
    if (first === "e") {
      const upstream = upstreams.get(second)
      if (upstream !== undefined) return post(upstream, body).then(() => response.end("ok"))
      for (const destination of connections.get(second) ?? []) deliver(destination, body)
      return response.end(`{"ok":true}`)
    }
    if (request.headers.authorization !== `Bearer ${process.env["TIDEGATE_API_KEY"]}`) {
      return response.writeHead(401).end()
    }
    if (change !== "") {
      pause(ends.get(id)!, change === "pause")
      return response.end("{}")
    }
    // It does not order what it delivers, and says so by leaving it out.
    const { ordering: _, ...input } = JSON.parse(body.toString()) as Record<string, unknown>
    return response.end(JSON.stringify({ ...input, id: create(second, input) }))
  }
  read(request)
    .then(answer)
    .catch(() => response.destroy())
})
server.listen(Number(process.env["PORT"]), "127.0.0.1")
process.once("SIGTERM", () => process.exit(0))
