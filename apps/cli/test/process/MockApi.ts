import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { type WebSocket, WebSocketServer } from "ws"
import { it as base } from "./it.ts"

/** `it` with a mock of the gateway: the lists that it has are those of the test, and it keeps what it is asked to change. */

interface Call {
  readonly method: string
  readonly path: string
  readonly body: { readonly name?: string } & Record<string, unknown>
}

const ids: Readonly<Record<string, string>> = {
  "/v1/sources": "src_1",
  "/v1/destinations": "des_1",
  "/v1/connections": "web_1"
}

const textOf = async (request: IncomingMessage): Promise<string> => {
  const parts: Array<Buffer> = []
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
  return Buffer.concat(parts).toString()
}

export const it = base.extend("mockApi", async ({}, { onCleanup }) => {
  const calls: Array<Call> = []
  /** What lists have, by their paths. */
  const there: Record<string, ReadonlyArray<object>> = {}
  const sockets: Array<WebSocket> = []
  /** The tunnel of each local URL. */
  const tunnels = new Map<string | null, WebSocket>()
  /** How many events wait at each destination. */
  const waiting = { count: 0 }
  const results: Array<Record<string, unknown>> = []
  const server = createServer((request, response) => {
    const answered = (text: string): void => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://gateway")
      const isAsked = (row: { readonly id?: unknown; readonly name?: unknown }): boolean =>
        (searchParams.get("name") ?? row.name) === row.name && (searchParams.get("id") ?? row.id) === row.id
      const answer = (value: object): void => {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value))
      }
      const isList = request.method === "GET"
      const body = text === "" ? {} : JSON.parse(text)
      if (!isList) calls.push({ method: request.method ?? "", path: pathname, body })
      if (pathname === "/v1/events/count") return answer({ total: waiting.count })
      const record = {
        ...body,
        id: ids[pathname],
        url: "http://gateway/e/src_1",
        ...(pathname.endsWith("/retry") ? { replay_event_id: "evt_2" } : {})
      }
      answer(isList ? { models: (there[pathname] ?? []).filter(isAsked), count: 0, has_more: false } : record)
    }
    // A program that is ended amid its request gets nothing.
    textOf(request).then(answered, () => void response.destroy())
  })
  const wss = new WebSocketServer({ server, handleProtocols: () => "tunnel.v1" })
  wss.on("connection", (socket, { url }) => {
    sockets.push(socket)
    tunnels.set(new URL(url ?? "", "http://gateway").searchParams.get("local_url"), socket)
    socket.on("message", (data: Buffer) => results.push(JSON.parse(data.toString())))
    socket.send(JSON.stringify({ type: "hello", cli_id: `cli_${sockets.length}`, destination_id: "des_1" }))
  })
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  onCleanup(() => {
    for (const client of wss.clients) client.terminate()
    server.closeAllConnections()
    server.close()
  })
  const deliver = (job_id: string, path: string, tunnel = sockets.at(-1)!): void => {
    const request = {
      method: "POST",
      path,
      headers: {},
      body: '{"type":"order.paid"}',
      event_id: "evt_1",
      request_id: "req_1",
      attempt_number: 1
    }
    tunnel.send(JSON.stringify({ type: "delivery", job_id, timeout_ms: 30_000, request }))
  }
  return {
    calls,
    there,
    sockets,
    tunnels,
    waiting,
    results,
    deliver,
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
})
