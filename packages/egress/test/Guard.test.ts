import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Result } from "effect"
import { once } from "node:events"
import { vi } from "vitest"
import { Egress } from "../src/Egress.ts"
import { InvalidNetwork, loopbackOnly, makeGuard, parseNetworks } from "../src/Guard.ts"
import { httpTarget, openEgress, recordConnectionAttempts, tcpTarget, tlsTarget } from "./targets.ts"

const hello = () =>
  httpTarget((request, response) => {
    request.resume()
    response.end("hello")
  })

/** First and last address of every network that no delivery may reach, and oddities inside. */
const refusedAddresses = [
  ["0.0.0.0", "0.255.255.255"],
  ["10.0.0.0", "10.255.255.255"],
  ["100.64.0.0", "100.127.255.255", "100.100.100.200"],
  ["127.0.0.0", "127.0.0.1", "127.255.255.255"],
  ["168.63.129.16"],
  ["169.254.0.0", "169.254.169.254", "169.254.255.255"],
  ["172.16.0.0", "172.31.255.255"],
  ["192.0.0.0", "192.0.0.192", "192.0.0.255"],
  ["192.0.2.0", "192.0.2.255"],
  ["192.88.99.1"],
  ["192.168.0.0", "192.168.255.255"],
  ["198.18.0.0", "198.19.255.255"],
  ["198.51.100.0", "198.51.100.255"],
  ["203.0.113.0", "203.0.113.255"],
  ["224.0.0.0", "239.255.255.255"],
  ["240.0.0.0", "255.255.255.255"],
  ["::", "::1", "0:0:0:0:0:0:0:1"],
  // An IPv4 address inside an IPv6 one: compatible, mapped, translated, NAT64, 6to4, Teredo.
  ["::127.0.0.1", "::7f00:1", "::8.8.8.8"],
  ["::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:0a00:0001", "::ffff:169.254.169.254", "::FFFF:192.168.1.1"],
  ["::ffff:0:127.0.0.1"],
  ["64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::a00:1", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
  ["2002:7f00:1::", "2002:a00:1::1", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001::1", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["100::", "100::ffff:ffff:ffff:ffff"],
  ["2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "3fff::1", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "4000::", "7fff::1"],
  ["fc00::", "fd00:ec2::254", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fe80::", "fe80::1", "fe80::1%lo", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["ff00::", "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]
].flat()

/** The neighbours of those networks, and ordinary public hosts. */
const permittedAddresses = [
  ["1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"],
  ["168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"],
  ["191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0"],
  ["198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255"],
  ["::ffff:8.8.8.8", "::ffff:808:808"],
  ["2000::", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::1", "2003::1", "2606:4700::1111"],
  ["3fff:1000::1", "3ffe::1"]
].flat()

describe("Guarded addresses", () => {
  const guard = makeGuard({ allow: [] })

  it.each(refusedAddresses)("Egress refuses the address %s", (address) => expect(guard.permits(address)).toBe(false))

  it.each(permittedAddresses)("Egress permits the address %s", (address) => expect(guard.permits(address)).toBe(true))

  it.each([
    "",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "8.8.8.8.",
    "[2606:4700::1]",
    "8.8.8.8/32"
  ])("Egress guard refuses text that is not an address: %j", (text) => expect(guard.permits(text)).toBe(false))

  it("Egress guard permits the operator's networks and no others", () => {
    const lenient = makeGuard({ allow: ["10.1.0.0/16", "fd00::/8"] })
    expect(["10.1.2.3", "::ffff:10.1.2.3", "fd12::1", "8.8.8.8"].filter(lenient.permits)).toHaveLength(4)
    expect(
      ["10.2.0.1", "::ffff:10.2.0.1", "::10.1.2.3", "64:ff9b::10.1.2.3", "fe80::1"].filter(lenient.permits)
    ).toEqual([])
  })

  it("Egress guard does not apply an IPv6 network to IPv4 addresses", () => {
    const lenient = makeGuard({ allow: ["::/0"] })
    expect(lenient.permits("fe80::1")).toBe(true)
    expect(["127.0.0.1", "10.0.0.1", "::ffff:127.0.0.1"].filter(lenient.permits)).toEqual([])
  })
})

describe("Allowed networks", () => {
  it("Allowed networks are parsed from text", () => {
    expect(Result.getOrThrow(parseNetworks(" 10.0.0.0/8,\n::1/128  FD00::/8,"))).toEqual([
      "10.0.0.0/8",
      "::1/128",
      "fd00::/8"
    ])
    expect(Result.getOrThrow(parseNetworks("  "))).toEqual([])
  })

  it.each([
    ["10.0.0.1/8", "host bits"],
    ["10.0.0.1", "prefix"],
    ["10.0.0.0/33", "prefix"],
    ["10.0.0/8", "octets"],
    ["010.0.0.0/8", "leading"],
    ["localhost/8", "octets"],
    ["::1/129", "prefix"],
    ["fe80::%lo/10", "zone"],
    ["::ffff:10.0.0.0/104", "IPv4"]
  ])("Allowed networks report the entry that cannot be parsed: %s", (entry, reason) => {
    const parsed = parseNetworks(`192.168.0.0/16, ${entry}`)
    expect(Result.isFailure(parsed) && parsed.failure.entry).toBe(entry)
    expect(Result.isFailure(parsed) && parsed.failure.message).toContain(`"${entry}"`)
    expect(Result.isFailure(parsed) && parsed.failure.reason).toContain(reason)
    expect(() => makeGuard({ allow: [entry] })).toThrow(InvalidNetwork)
  })

  it.effect("Egress layer fails with a typed error for an invalid network", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Layer.build(Egress.layer({ allow: ["10.0.0.1/8"] })))
      expect(Exit.findErrorOption(exit)).toMatchObject({ value: { _tag: "InvalidNetwork", entry: "10.0.0.1/8" } })
    })
  )
})

describe("Hosts with a private address", () => {
  const hosts = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "127.1.",
    "%31%32%37.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "localhost",
    "LocalHost",
    "localhost.",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "any.localhost",
    "0",
    "0.0.0.0",
    "0x0",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "10.0.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "192.168.1.1",
    "100.100.100.200"
  ]

  it.each(["http", "https"])("Private hosts are refused over %s before a connection", async (scheme) => {
    await using target = await hello()
    await using egress = await openEgress({ allow: [] })
    using recorded = recordConnectionAttempts()
    for (const host of hosts) {
      const answer = await egress.deliver({ method: "POST", url: `${scheme}://${host}:${target.port}/`, body: "x" })
      expect({ host, errorCode: answer.errorCode, status: answer.status }).toEqual({
        host,
        errorCode: "TARGET_NOT_ALLOWED",
        status: null
      })
    }
    expect(recorded.attempts).toEqual([])
    expect(target.connections()).toBe(0)
  })

  it("Hosts with a private address are refused however the URL is written", async () => {
    await using target = await hello()
    await using egress = await openEgress({ allow: [] })
    for (const url of [
      "http:\\\\127.0.0.1",
      "http:///127.0.0.1",
      "http:127.0.0.1",
      "  http://127.0.0.1",
      "HTTP://127.0.0.1"
    ]) {
      const answer = await egress.deliver({ method: "GET", url: `${url}:${target.port}/` })
      expect({ url, errorCode: answer.errorCode }).toEqual({ url, errorCode: "TARGET_NOT_ALLOWED" })
    }
    expect(target.connections()).toBe(0)
  })

  it("Hosts with a loopback address are reached once loopback is allowed", async () => {
    await using target = await hello()
    await using egress = await openEgress()
    for (const host of ["127.0.0.1", "2130706433", "localhost", "[::ffff:127.0.0.1]"]) {
      const answer = await egress.deliver({ method: "GET", url: `http://${host}:${target.port}/` })
      expect({ host, errorCode: answer.errorCode, status: answer.status }).toEqual({
        host,
        errorCode: null,
        status: 200
      })
    }
  })

  it("Refusal of a private host does not reveal its address", async () => {
    await using egress = await openEgress({ allow: [], resolve: async () => ["10.11.12.13"] })
    const answer = await egress.deliver({ method: "GET", url: "http://intranet.example/" })
    expect(answer.errorCode).toBe("TARGET_NOT_ALLOWED")
    expect(answer.errorMessage).toBe(
      "intranet.example is not a public host, nor in a network that TIDEGATE_EGRESS_ALLOW names"
    )
  })
})

describe("Host names", () => {
  it("Host name with one private address is refused as a whole", async () => {
    await using target = await hello()
    using recorded = recordConnectionAttempts()
    for (const answers of [
      ["93.184.216.34", "10.0.0.1"],
      ["10.0.0.1", "93.184.216.34"],
      ["2606:4700::1111", "127.0.0.1"],
      ["93.184.216.34", "fe80::1%lo"],
      ["93.184.216.34", "::ffff:127.0.0.1"],
      ["93.184.216.34", "not an address"]
    ]) {
      await using egress = await openEgress({ allow: [], resolve: async () => answers })
      const answer = await egress.deliver({ method: "GET", url: `http://mixed.example:${target.port}/` })
      expect({ answers, errorCode: answer.errorCode }).toEqual({ answers, errorCode: "TARGET_NOT_ALLOWED" })
    }
    expect(recorded.attempts).toEqual([])
    expect(target.connections()).toBe(0)
  })

  it("Host name is connected to at the address that was checked, even if DNS changes its answer", async () => {
    await using target = await httpTarget((request, response) => {
      request.resume()
      response.setHeader("connection", "close").end("hello")
    })
    const resolve = vi.fn<(hostname: string) => Promise<ReadonlyArray<string>>>(async () => ["10.0.0.1"])
    resolve.mockResolvedValueOnce(["127.0.0.1"])
    await using egress = await openEgress({ allow: ["127.0.0.1/32"], resolve })
    using recorded = recordConnectionAttempts()
    const url = `http://rebinding.example:${target.port}/`

    // One lookup for the check and for the connection: there is no second answer to fall for.
    expect((await egress.deliver({ method: "GET", url })).status).toBe(200)
    expect(resolve.mock.calls).toEqual([["rebinding.example"]])

    // The next connection is checked anew.
    expect((await egress.deliver({ method: "GET", url })).errorCode).toBe("TARGET_NOT_ALLOWED")
    expect(resolve).toHaveBeenCalledTimes(2)
    expect(recorded.attempts).toEqual([`127.0.0.1:${target.port}`])
  })

  it("Host name is tried at its next address when one refuses", async () => {
    // A second loopback address: Linux has all of 127/8, other systems have only ::1.
    const second = process.platform === "linux" ? "127.0.0.2" : "::1"
    await using target = await httpTarget((_, response) => response.end("hello"), second)
    await using egress = await openEgress({ resolve: async () => ["127.0.0.1", second] })
    using recorded = recordConnectionAttempts()
    const answer = await egress.deliver({ method: "GET", url: `http://two.example:${target.port}/` })
    expect(answer.status).toBe(200)
    expect(recorded.attempts).toEqual([`127.0.0.1:${target.port}`, `${second}:${target.port}`])
  })

  it("Host name without an address fails with DNS_LOOKUP_FAILED", async () => {
    await using egress = await openEgress({ resolve: async () => [] })
    const answer = await egress.deliver({ method: "GET", url: "http://empty.example/" })
    expect(answer).toMatchObject({ errorCode: "DNS_LOOKUP_FAILED", errorMessage: "empty.example has no address" })
  })
})

describe("Ways around the guard", () => {
  it("Redirect to a private host is returned as the answer and not followed", async () => {
    await using hidden = await hello()
    for (const status of [301, 302, 303, 307, 308]) {
      await using target = await httpTarget((_, response) =>
        response.writeHead(status, { location: `http://127.0.0.1:${hidden.port}/` }).end()
      )
      await using egress = await openEgress()
      const answer = await egress.deliver({ method: "GET", url: target.url })
      expect(answer).toMatchObject({ status, errorCode: null })
      expect(answer.headers["location"]).toBe(`http://127.0.0.1:${hidden.port}/`)
    }
    expect(hidden.connections()).toBe(0)
  })

  it("Proxy variables of the environment are ignored", async () => {
    await using proxy = await tcpTarget((socket) => socket.end())
    await using target = await hello()
    for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]) {
      vi.stubEnv(name, proxy.url)
    }
    vi.stubEnv("NODE_USE_ENV_PROXY", "1")
    try {
      await using egress = await openEgress()
      expect((await egress.deliver({ method: "GET", url: target.url })).status).toBe(200)
      await using strict = await openEgress({ allow: [] })
      expect((await strict.deliver({ method: "GET", url: target.url })).errorCode).toBe("TARGET_NOT_ALLOWED")
    } finally {
      vi.unstubAllEnvs()
    }
    expect(proxy.connections()).toBe(0)
  })

  it("Header Host does not change where a request goes or its Host header", async () => {
    await using target = await httpTarget((request, response) => response.end(request.headers.host))
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "GET", url: target.url, headers: ["Host", "10.0.0.1"] })
    expect(answer.body.toString()).toBe(`127.0.0.1:${target.port}`)
  })

  it("Environment variables cannot turn certificate checks off", async () => {
    await using target = await tlsTarget("self-signed.pem")
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0")
    try {
      await using egress = await openEgress()
      const answer = await egress.deliver({ method: "GET", url: `https://127.0.0.1:${target.port}` })
      expect(answer.errorCode).toBe("SELF_SIGNED_CERT")
    } finally {
      vi.unstubAllEnvs()
    }
  })
})

describe("Guarded plain socket", () => {
  it("Guarded socket reaches allowed hosts by address and by name", async () => {
    await using target = await tcpTarget((socket) => socket.end("hello"))
    const guard = makeGuard({ allow: loopbackOnly, resolve: async () => ["127.0.0.1"] })
    for (const host of ["127.0.0.1", "database.example"]) {
      const socket = guard.openSocket({ host, port: target.port })
      const [data] = await once(socket, "data")
      expect(String(data)).toBe("hello")
      socket.destroy()
    }
  })

  it.each([
    ["127.0.0.1", "TARGET_NOT_ALLOWED"],
    ["::1", "TARGET_NOT_ALLOWED"],
    ["fe80::1%lo", "TARGET_NOT_ALLOWED"],
    ["database.example", "TARGET_NOT_ALLOWED"],
    ["127.1", "TARGET_NOT_ALLOWED"],
    ["2130706433", "TARGET_NOT_ALLOWED"],
    ["", "TARGET_NOT_ALLOWED"]
  ])("Guarded socket to the host %j ends with %s", async (host, code) => {
    await using target = await tcpTarget((socket) => socket.end("hello"))
    using recorded = recordConnectionAttempts()
    const guard = makeGuard({ allow: [], resolve: async () => ["127.0.0.1"] })
    const [error] = await once(guard.openSocket({ host, port: target.port }), "error")
    expect(error).toMatchObject({ name: "GuardError", code })
    expect(recorded.attempts).toEqual([])
    expect(target.connections()).toBe(0)
  })
})
