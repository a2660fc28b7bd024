import { once } from "node:events"
import { readFileSync } from "node:fs"
import { get } from "node:https"
import type { Server } from "node:http"
import { type AddressInfo, connect as connectPlainly, type Socket } from "node:net"
import { connect, createServer } from "node:tls"
import { afterEach, describe, expect, it } from "vitest"
import { type Capacity, wireServer } from "@tidegate/ingress/wire/WireServer"
import { eventually } from "../../../test/support/Waiting.ts"

const pem = (name: string): Buffer => readFileSync(new URL(`../../egress/test/fixtures/${name}.pem`, import.meta.url))

const sockets = new Set<Socket>()
let server: Server

const listen = async (capacity?: Capacity): Promise<number> => {
  const tls = createServer({ key: pem("key"), cert: pem("valid") })
  server = wireServer(
    {
      prefixes: ["/e/"],
      host: null,
      handle: ({ socket }, response) => void response.end(`for ${socket.remoteAddress}`)
    },
    { tls, ...(capacity === undefined ? {} : { capacity }) }
  )
  await once(server.listen({ port: 0, host: "127.0.0.1" }), "listening")
  return (server.address() as AddressInfo).port
}

afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const kept = <A extends Socket>(socket: A): A => {
  sockets.add(socket)
  socket.on("error", () => {})
  return socket
}

/** A client whose handshake has succeeded; null: the connection was closed before. */
const shaken = (port: number): Promise<Socket | null> =>
  new Promise((resolve) => {
    const socket = kept(connect({ port, host: "127.0.0.1", rejectUnauthorized: false }))
    socket.once("secureConnect", () => resolve(socket))
    socket.once("close", () => resolve(null))
  })

describe("Ingress connections with TLS", () => {
  it("Request over TLS is answered, and its address is the client's", async () => {
    const port = await listen()
    const [answer] = await once(
      get({
        port,
        host: "127.0.0.1",
        path: "/e/x",
        localAddress: "127.0.0.3",
        rejectUnauthorized: false,
        agent: false
      }),
      "response"
    )
    expect((await answer.toArray()).join("")).toBe("for 127.0.0.3")
  })

  it("Client that does not speak TLS gets no answer and is disconnected", async () => {
    const port = await listen()
    const socket = kept(connectPlainly({ port, host: "127.0.0.1" }))
    let said = ""
    socket.on("data", (data: Buffer) => (said += data.toString("latin1")))
    socket.write("GET /e/x HTTP/1.1\r\nHost: x\r\n\r\n")
    await once(socket, "close")
    expect(said).not.toContain("HTTP/1.1")
  })

  it("Connections that have not finished their handshake count towards the limit of their client", async () => {
    const port = await listen({ connections: 4, waiting: 8 })
    const silent = await Promise.all(
      [1, 2].map(async () => {
        const socket = kept(connectPlainly({ port, host: "127.0.0.1" }))
        await once(socket, "connect")
        return socket
      })
    )
    expect(await shaken(port)).toBeNull()
    silent[0]!.destroy()
    const next = await eventually("the place of the one that left is free", () => shaken(port))
    // It counts once, and no longer when it has gone.
    expect(await shaken(port)).toBeNull()
    next.destroy()
    await eventually("its place is free again", () => shaken(port))
  })
})
