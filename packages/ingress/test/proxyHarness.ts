import { Effect, Layer, ManagedRuntime } from "effect"
import { once } from "node:events"
import { createServer, type ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { Egress } from "@tidegate/egress/Egress"
import { loopbackOnly } from "../../egress/src/Guard.ts"
import { readHeaders } from "../src/InboundRequest.ts"
import {
  type ProxyOutcome,
  type ProxySettings,
  ProxyUpstream,
  type ProxyUpstreamOptions
} from "../src/ProxyUpstream.ts"

export const requestId = "req_00000000000000000000000000"

export interface ProxyOptions extends ProxyUpstreamOptions {
  readonly settings?: Partial<ProxySettings>
  /** Networks that may be reached; loopback unless said otherwise. */
  readonly allow?: ReadonlyArray<string>
  /** Called with each response before its request is forwarded; forwarding waits for it. */
  readonly beforeForward?: (response: ServerResponse) => Promise<void>
}

/** A server that forwards each request, as ingress does in proxy mode once the request is stored. */
export const openProxy = async (target_url: string, options: ProxyOptions = {}) => {
  const runtime = ManagedRuntime.make(
    Layer.provideMerge(
      ProxyUpstream.layerWith(options),
      Egress.layer({ allow: options.allow ?? loopbackOnly, drainMs: 100 })
    )
  )
  const { forward } = await runtime.runPromise(Effect.service(ProxyUpstream))
  const outcomes: Array<ProxyOutcome> = []
  const waiting: Array<(outcome: ProxyOutcome) => void> = []
  const responses: Array<ServerResponse> = []

  const server = createServer(async (message, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of message) chunks.push(chunk as Buffer)
    responses.push(response)
    await options.beforeForward?.(response)
    const url = message.url ?? "/"
    const queryAt = url.indexOf("?")
    forward(
      {
        settings: {
          target_url,
          path_forwarding: true,
          query_forwarding: true,
          timeout_ms: 5_000,
          capture_response_bytes: 65_536,
          ...options.settings
        },
        request: {
          method: message.method ?? "",
          path: queryAt < 0 ? url : url.slice(0, queryAt),
          query: queryAt < 0 ? "" : url.slice(queryAt + 1),
          headers: readHeaders(message.rawHeaders),
          body: Buffer.concat(chunks)
        },
        shownQuery: queryAt < 0 ? "" : url.slice(queryAt + 1),
        publicUrl: "https://hooks.example",
        message,
        response,
        requestId
      },
      (outcome) => {
        const next = waiting.shift()
        if (next === undefined) outcomes.push(outcome)
        else next(outcome)
      }
    )
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    /** The outcome of the next exchange that has not been asked for. */
    outcome: (): Promise<ProxyOutcome> => {
      const known = outcomes.shift()
      return known === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(known)
    },
    /** Outcomes that nobody has asked for. */
    leftOver: outcomes,
    responses,
    /** Connects as a caller that speaks for itself. */
    call: async (request: string): Promise<Socket> => {
      const socket = connect(port, "127.0.0.1")
      socket.on("error", () => undefined)
      await once(socket, "connect")
      socket.write(request)
      return socket
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await runtime.dispose()
    }
  }
}

/** What a connection gives until it ends, and whether a reset ended it. */
export const untilClosed = async (socket: Socket): Promise<{ readonly text: string; readonly wasReset: boolean }> => {
  const chunks: Array<Buffer> = []
  let wasReset = false
  socket.on("data", (chunk: Buffer) => chunks.push(chunk))
  socket.on("error", (error: NodeJS.ErrnoException) => (wasReset = error.code === "ECONNRESET"))
  await new Promise((resolve) => socket.once("close", resolve))
  return { text: Buffer.concat(chunks).toString("latin1"), wasReset }
}
