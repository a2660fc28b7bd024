import { Effect, ManagedRuntime } from "effect"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { readFileSync } from "node:fs"
import { createServer as createHttpServer } from "node:http"
import type { RequestListener, ServerResponse } from "node:http"
import { createServer } from "node:net"
import type { AddressInfo, Server, Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import type { TlsOptions, TLSSocket } from "node:tls"
import { Egress } from "../src/Egress.ts"
import type { EgressOptions } from "../src/Egress.ts"
import { loopbackOnly } from "../src/Guard.ts"

/** The way out as the gateway has it, closed at the end of the test. Loopback is allowed unless the test says otherwise. */
export const openEgress = async (options: Partial<EgressOptions> = {}) => {
  const runtime = ManagedRuntime.make(Egress.layer({ allow: loopbackOnly, ...options }))
  const egress = await runtime.runPromise(Effect.service(Egress))
  return {
    ...egress,
    close: () => runtime.dispose(),
    [Symbol.asyncDispose]: () => runtime.dispose()
  }
}

/** A server on loopback that counts the connections it gets. */
export interface Target extends AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly connections: () => number
  /** Resolves once every connection made so far is closed. */
  readonly allClosed: () => Promise<void>
}

const open = async (server: Server, host = "127.0.0.1"): Promise<Target> => {
  let connections = 0
  const sockets = new Set<Socket>()
  server.on("connection", (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on("error", () => undefined)
    socket.on("close", () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    connections: () => connections,
    allClosed: async () => {
      // A socket that is not read does not notice its end.
      await Promise.all([...sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve).resume())))
    },
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
  }
}

/** A target that does with its connections what the test says, byte by byte. */
export const tcpTarget = (onConnection: (socket: Socket) => void, host = "127.0.0.1"): Promise<Target> =>
  open(createServer(onConnection), host)

/** A target that answers each request on a connection with the same bytes, once the request's head has arrived. */
export const rawTarget = (answer: (socket: Socket) => void, host = "127.0.0.1"): Promise<Target> =>
  tcpTarget((socket) => socket.on("data", () => answer(socket)), host)

export const httpTarget = (onRequest: RequestListener, host = "127.0.0.1"): Promise<Target> =>
  open(createHttpServer(onRequest), host)

/** Thirty events, one after the other: more than two seconds in all, and little between two of them. */
export const speak = (response: ServerResponse) => {
  let sent = 0
  const timer = setInterval(() => {
    response.write(`data: ${sent}\n\n`)
    if (++sent < 30) return
    clearInterval(timer)
    response.end()
  }, 75)
}
/** All that `speak` says. */
export const spoken = Array.from({ length: 30 }, (_, index) => `data: ${index}\n\n`).join("")

export const fixture = (name: string): string => readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8")

/** The authority that signed `valid.pem`, `expired.pem` and `not-yet-valid.pem`. */
export const authority = fixture("authority.pem")

/** A target behind TLS that shows one of the certificates in `fixtures` and answers each request with "ok". */
export const tlsTarget = (
  certificate: string,
  options: { readonly onConnection?: (socket: TLSSocket) => void; readonly settings?: TlsOptions } = {}
): Promise<Target> =>
  open(
    createTlsServer({ ...options.settings, key: fixture("key.pem"), cert: fixture(certificate) }, (socket) => {
      options.onConnection?.(socket)
      socket.on("error", () => undefined)
      socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"))
    }),
    "127.0.0.1"
  )

/** Every plain TCP connection that this process tries to open, as `address:port`, whether or not it succeeds. */
export const recordConnectionAttempts = () => {
  const attempts: Array<string> = []
  const onSocket = (message: unknown) => {
    const { socket } = message as { readonly socket: Socket }
    socket.on("connectionAttempt", (address, port) => attempts.push(`${address}:${port}`))
  }
  subscribe("net.client.socket", onSocket)
  return { attempts, [Symbol.dispose]: () => void unsubscribe("net.client.socket", onSocket) }
}

/** Resolves when `open` is called. */
export const gate = () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: () => resolve() }
}
