import { describe, expect, it } from "@effect/vitest"
import { createSocket } from "node:dgram"
import { writeFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeResolver } from "../src/Resolver.ts"
import { openEgress } from "./targets.ts"

const types = { 1: "A", 28: "AAAA" } as const
const codes = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3 }
type Reply = { readonly code: keyof typeof codes; readonly address?: ReadonlyArray<number> } | undefined

/** A name server with the given answers. It does not answer if the answer is `undefined`. */
const nameServer = async (reply: (name: string, type: "A" | "AAAA") => Reply) => {
  const socket = createSocket("udp4")
  const asked: Array<string> = []
  socket.on("message", (query, peer) => {
    const labels: Array<string> = []
    let at = 12
    for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length))
      at += length + 1
    }
    const typeCode = query.readUInt16BE(at + 1) as 1 | 28
    const name = labels.join(".")
    asked.push(`${types[typeCode]} ${name}`)
    const answer = reply(name, types[typeCode])
    if (answer === undefined) return
    const head = Buffer.alloc(12)
    query.copy(head, 0, 0, 2)
    head.writeUInt16BE(0x8180 | codes[answer.code], 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(answer.address === undefined ? 0 : 1, 6)
    const address = answer.address ?? []
    const record = [0xc0, 12, 0, typeCode, 0, 1, 0, 0, 0, 0, 0, address.length, ...address]
    const parts = [head, query.subarray(12, at + 5), Buffer.from(answer.address === undefined ? [] : record)]
    socket.send(Buffer.concat(parts), peer.port, peer.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve))
  const { port } = socket.address()
  return {
    asked,
    nameServers: [`127.0.0.1:${port}`],
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => socket.close(() => resolve()))
  }
}

const v4 = [93, 184, 216, 34]
const v6 = [0x26, 0x06, 0x47, 0, ...Array.from({ length: 11 }, () => 0), 1]
const noHosts = { hostsFile: "/nonexistent" }

describe("DNS resolver", () => {
  it("Resolver asks for IPv4 and IPv6 addresses and returns IPv4 first", async () => {
    await using server = await nameServer((_, type) => ({ code: "NOERROR", address: type === "A" ? v4 : v6 }))
    const resolve = makeResolver({ nameServers: server.nameServers, ...noHosts })
    expect(await resolve("both.example")).toEqual(["93.184.216.34", "2606:4700::1"])
    expect(server.asked.toSorted()).toEqual(["A both.example", "AAAA both.example"])
  })

  it("Resolver asks once for concurrent lookups of a name and again for a later one", async () => {
    await using server = await nameServer((_, type) =>
      type === "A" ? { code: "NOERROR", address: v4 } : { code: "NOERROR" }
    )
    const resolve = makeResolver({ nameServers: server.nameServers, ...noHosts })
    const found = await Promise.all(Array.from({ length: 200 }, () => resolve("many.example")))
    expect(found).toEqual(Array.from({ length: 200 }, () => ["93.184.216.34"]))
    expect(server.asked).toHaveLength(2)
    await resolve("many.example")
    expect(server.asked).toHaveLength(4)
  })

  it("Resolver returns one address family if the other has no record or fails", async () => {
    await using server = await nameServer((name, type) => {
      if (type === "AAAA") return { code: name.startsWith("broken") ? "SERVFAIL" : "NOERROR" }
      return { code: "NOERROR", address: v4 }
    })
    const resolve = makeResolver({ nameServers: server.nameServers, ...noHosts })
    expect(await resolve("only4.example")).toEqual(["93.184.216.34"])
    expect(await resolve("broken6.example")).toEqual(["93.184.216.34"])
  })

  it("Resolver asks again each time and caches no answer", async () => {
    let last = 0
    await using server = await nameServer((_, type) =>
      type === "A" ? { code: "NOERROR", address: [93, 184, 216, ++last] } : { code: "NOERROR" }
    )
    const resolve = makeResolver({ nameServers: server.nameServers, ...noHosts })
    expect(await resolve("moving.example")).toEqual(["93.184.216.1"])
    expect(await resolve("moving.example")).toEqual(["93.184.216.2"])
  })

  it("Resolver reports the more informative of two errors", async () => {
    await using server = await nameServer((name, type) => {
      if (name === "gone.example") return { code: "NXDOMAIN" }
      return { code: type === "A" ? "NOERROR" : "SERVFAIL" }
    })
    const resolve = makeResolver({ nameServers: server.nameServers, ...noHosts })
    await expect(resolve("gone.example")).rejects.toMatchObject({ code: "ENOTFOUND" })
    await expect(resolve("failing.example")).rejects.toMatchObject({ code: "ESERVFAIL" })
  })

  it("Resolver answers a healthy name while many other names are never answered", async () => {
    await using server = await nameServer((name, type) =>
      name.startsWith("dead") ? undefined : { code: "NOERROR", ...(type === "A" && { address: v4 }) }
    )
    const resolve = makeResolver({ nameServers: server.nameServers, ...noHosts })
    const dead = Array.from({ length: 50 }, (_, index) => resolve(`dead${index}.example`))
    let settled = 0
    const settling = Promise.allSettled(dead.map((answer) => answer.finally(() => settled++)))
    expect(await resolve("healthy.example")).toEqual(["93.184.216.34"])
    expect(settled).toBe(0)
    void settling
  })

  it("Resolver reads the hosts file first", async () => {
    await using server = await nameServer(() => ({ code: "NXDOMAIN" }))
    const folder = mkdtempSync(join(tmpdir(), "hosts-"))
    try {
      const hostsFile = join(folder, "hosts")
      writeFileSync(hostsFile, "# comment\n10.0.0.7\thost.Internal alias # more\n\nfd00::7 host.internal\nnonsense x\n")
      const resolve = makeResolver({ nameServers: server.nameServers, hostsFile })
      expect(await resolve("HOST.internal")).toEqual(["10.0.0.7", "fd00::7"])
      expect(await resolve("alias.")).toEqual(["10.0.0.7"])
      expect(server.asked).toEqual([])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("Resolver knows localhost without a DNS query", async () => {
    await using server = await nameServer(() => ({ code: "NOERROR", address: v4 }))
    const resolve = makeResolver({ nameServers: server.nameServers, ...noHosts })
    for (const name of ["localhost", "LOCALHOST.", "a.b.localhost"]) {
      expect(await resolve(name)).toEqual(["127.0.0.1", "::1"])
    }
    expect(server.asked).toEqual([])
  })

  it("Public name that resolves to a private address is refused", async () => {
    await using server = await nameServer((_, type) =>
      type === "A" ? { code: "NOERROR", address: [169, 254, 169, 254] } : { code: "NOERROR" }
    )
    await using egress = await openEgress({
      allow: [],
      resolve: makeResolver({ nameServers: server.nameServers, ...noHosts })
    })
    const answer = await egress.deliver({ method: "GET", url: "http://metadata.example/" })
    expect(answer.errorCode).toBe("TARGET_NOT_ALLOWED")
  })

  it("Delivery fails with DNS_LOOKUP_FAILED for every cause of a failed lookup", async () => {
    await using server = await nameServer((name) => ({ code: name.startsWith("broken") ? "SERVFAIL" : "NXDOMAIN" }))
    await using egress = await openEgress({ resolve: makeResolver({ nameServers: server.nameServers, ...noHosts }) })
    const gone = await egress.deliver({ method: "GET", url: "http://gone.example/" })
    expect(gone).toMatchObject({
      errorCode: "DNS_LOOKUP_FAILED",
      errorMessage: "cannot resolve gone.example: ENOTFOUND"
    })
    const broken = await egress.deliver({ method: "GET", url: "https://broken.example/" })
    expect(broken.errorCode).toBe("DNS_LOOKUP_FAILED")
    // No name server at all: not to be taken for a target that refuses.
    await using lost = await openEgress({ resolve: makeResolver({ nameServers: ["127.0.0.1:1"], ...noHosts }) })
    expect((await lost.deliver({ method: "GET", url: "http://any.example/" })).errorCode).toBe("DNS_LOOKUP_FAILED")
  })
})
