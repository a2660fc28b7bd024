import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, expect, test, vi } from "vitest"
import { type WebSocket, WebSocketServer } from "ws"
import { eventually } from "../../../test/support/Waiting.ts"
import { streamRequests } from "../src/Stream.ts"

/** The stream's client with a mock of the gateway. */

const it = test.extend("gateway", async ({}, { onCleanup }) => {
  const server = createServer()
  const wss = new WebSocketServer({ server, handleProtocols: () => "bin.v1" })
  const sockets: Array<WebSocket> = []
  wss.on("connection", (socket) => {
    sockets.push(socket)
    socket.send(JSON.stringify({ type: "hello", bin_id: "src_1" }))
  })
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  const ending = new AbortController()
  onCleanup(() => {
    ending.abort()
    for (const client of wss.clients) client.terminate()
    server.close()
  })
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  /** What is told, in order. */
  const watch = (): ReadonlyArray<string> => {
    const told: Array<string> = []
    const over = streamRequests({
      baseUrl,
      key: "gwk_1",
      sourceId: "src_1",
      signal: ending.signal,
      onRequest: ({ id }) => told.push(id),
      onSkipped: () => told.push("skipped"),
      onChange: ({ type }) => told.push(type)
    })
    over.catch(() => undefined)
    return told
  }
  return { sockets, watch }
})

afterEach(() => void vi.useRealTimers())

it("Client stream reports after a reconnect that requests may have been missed", async ({ gateway }) => {
  const told = gateway.watch()
  await eventually("it is open", () => (told.includes("connected") ? true : null))
  gateway.sockets[0]!.send(JSON.stringify({ type: "request", request: { id: "req_1" } }))
  await eventually("it is told", () => (told.includes("req_1") ? true : null))
  gateway.sockets[0]!.terminate()
  await eventually("it is open again", () => (told.length === 5 ? true : null))
  expect(told).toEqual(["connected", "req_1", "disconnected", "connected", "skipped"])
})

it.for<[ReadonlyArray<object>, number]>([
  [[{ type: "alive" }], 2],
  [[], 1]
])(
  "Client stream reopens a silent connection only if the gateway sends alive frames: %j",
  async ([frames, opened], { gateway }) => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] })
    const told = gateway.watch()
    await eventually("it is open", () => (told.includes("connected") ? true : null))
    for (const frame of [...frames, { type: "request", request: { id: "req_1" } }]) {
      gateway.sockets[0]!.send(JSON.stringify(frame))
    }
    await eventually("it is told", () => (told.includes("req_1") ? true : null))
    vi.advanceTimersByTime(74_000)
    expect(told).not.toContain("disconnected")
    vi.advanceTimersByTime(7_000)
    if (opened === 2) await eventually("it is open again", () => (told.at(-1) === "skipped" ? true : null))
    else expect(told).toEqual(["connected", "req_1"])
  }
)
