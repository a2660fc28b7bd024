import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { type ForwardingHeaders, parseTrustedProxies } from "../src/TrustedProxies.ts"
import { processorTime } from "../../runtime/test/processorTime.ts"

const proxies = Result.getOrThrow(parseTrustedProxies(["10.0.0.0/8", "192.0.2.10", "fd00::/8"]))

const cases: ReadonlyArray<readonly [what: string, peer: string, headers: ForwardingHeaders, client: string]> = [
  ["An untrusted peer cannot name another client", "203.0.113.5", { "x-forwarded-for": "198.51.100.1" }, "203.0.113.5"],
  ["A proxy without the header is itself the client", "10.0.0.1", {}, "10.0.0.1"],
  ["A trusted proxy names the client", "10.0.0.1", { "x-forwarded-for": "198.51.100.1" }, "198.51.100.1"],
  [
    "A trusted proxy is known by its IPv4-mapped address too",
    "::ffff:10.0.0.1",
    { "x-forwarded-for": "198.51.100.1" },
    "198.51.100.1"
  ],
  [
    "Addresses that a client wrote first are ignored",
    "10.0.0.1",
    { "x-forwarded-for": "127.0.0.1, 198.51.100.1" },
    "198.51.100.1"
  ],
  [
    "Several trusted proxies in a row are skipped",
    "10.0.0.1",
    { "x-forwarded-for": "1.1.1.1, 198.51.100.1,192.0.2.10 , 10.9.9.9" },
    "198.51.100.1"
  ],
  [
    "The first proxy is the client if the header names only proxies",
    "10.0.0.1",
    { "x-forwarded-for": "10.0.0.3, 10.0.0.2" },
    "10.0.0.3"
  ],
  ["A repeated header is read as one", "10.0.0.1", { "x-forwarded-for": ["1.1.1.1", "198.51.100.1"] }, "198.51.100.1"],
  ["The port of an address is ignored", "10.0.0.1", { "x-forwarded-for": "198.51.100.1:4711" }, "198.51.100.1"],
  ["An IPv6 client is read", "fd00::1", { "x-forwarded-for": "2001:DB8:0::1" }, "2001:db8::1"],
  ["An IPv6 client with a port is read", "fd00::1", { "x-forwarded-for": "[2001:db8::1]:443" }, "2001:db8::1"],
  ["An IPv6 client with a zone is read", "fd00::1", { "x-forwarded-for": "fe80::1%eth0" }, "fe80::1"],
  [
    "An unknown client is replaced by its proxy",
    "10.0.0.1",
    { "x-forwarded-for": "198.51.100.1, unknown" },
    "10.0.0.1"
  ],
  [
    "Text that is no address is replaced by its proxy",
    "10.0.0.1",
    { "x-forwarded-for": "198.51.100.1, <script>, 10.0.0.2" },
    "10.0.0.2"
  ],
  ["The proxy is the client if the header is empty", "10.0.0.1", { "x-forwarded-for": "" }, "10.0.0.1"],
  [
    "The header of RFC 7239 is read",
    "10.0.0.1",
    { forwarded: "for=1.1.1.1, for=198.51.100.1;proto=https;by=10.0.0.1" },
    "198.51.100.1"
  ],
  [
    "A quoted address with a port is read (RFC 7239)",
    "10.0.0.1",
    { forwarded: 'proto=https; For="[2001:db8::1]:4711"' },
    "2001:db8::1"
  ],
  [
    "A comma within quotes does not separate (RFC 7239)",
    "10.0.0.1",
    { forwarded: 'for=198.51.100.1;by="a,b", for=10.0.0.2' },
    "198.51.100.1"
  ],
  ["An escaped character is read (RFC 7239)", "10.0.0.1", { forwarded: 'for="198\\.51.100.1"' }, "198.51.100.1"],
  [
    "An unknown client is replaced by its proxy (RFC 7239)",
    "10.0.0.1",
    { forwarded: "for=198.51.100.1, for=unknown" },
    "10.0.0.1"
  ],
  [
    "A hidden client is replaced by its proxy (RFC 7239)",
    "10.0.0.1",
    { forwarded: 'for=198.51.100.1, for="_gazonk"' },
    "10.0.0.1"
  ],
  [
    "A part without a client is replaced by its proxy (RFC 7239)",
    "10.0.0.1",
    { forwarded: "for=198.51.100.1, proto=http" },
    "10.0.0.1"
  ],
  [
    "A header with an open quote is ignored (RFC 7239)",
    "10.0.0.1",
    { forwarded: 'for=127.0.0.1;x=", for="198.51.100.1"' },
    "10.0.0.1"
  ],
  [
    "A header with an open escaped quote is ignored (RFC 7239)",
    "10.0.0.1",
    { forwarded: 'for=127.0.0.1;x="\\, for="198.51.100.1"' },
    "10.0.0.1"
  ],
  [
    "Two headers that agree name the client",
    "10.0.0.1",
    { forwarded: "for=198.51.100.1", "x-forwarded-for": "198.51.100.1" },
    "198.51.100.1"
  ],
  [
    "Two headers that disagree are both ignored",
    "10.0.0.1",
    { forwarded: "for=127.0.0.1", "x-forwarded-for": "198.51.100.1" },
    "10.0.0.1"
  ],
  [
    "A long header is read from the right",
    "10.0.0.1",
    { "x-forwarded-for": `${"1.1.1.1,".repeat(3_000)}198.51.100.1` },
    "198.51.100.1"
  ],
  [
    "A long row of proxies is read only in part",
    "10.0.0.1",
    { "x-forwarded-for": `198.51.100.1${",10.0.0.2".repeat(40)}` },
    "10.0.0.2"
  ],
  [
    "A too long header of RFC 7239 is ignored",
    "10.0.0.1",
    { forwarded: `${"for=1.1.1.1,".repeat(3_000)}for=198.51.100.1` },
    "10.0.0.1"
  ]
]

describe("Client of a request", () => {
  it.each(cases)("%s", (_, peer, headers, client) => {
    expect(proxies.clientOf(peer, headers)).toBe(client)
  })

  it("The connected peer is the client if no proxy is trusted", () => {
    const none = Result.getOrThrow(parseTrustedProxies([]))
    expect(none.clientOf("10.0.0.1", { "x-forwarded-for": "198.51.100.1" })).toBe("10.0.0.1")
    expect([none.trusts("10.0.0.1"), proxies.trusts("10.0.0.1"), proxies.trusts("11.0.0.1")]).toEqual([
      false,
      true,
      false
    ])
  })

  it("The client is found in hostile headers within bounded time", () => {
    const hostile = [
      '"'.repeat(2_000),
      '"\\'.repeat(1_000),
      ";for=".repeat(400),
      ",".repeat(2_000),
      `for="${"\\".repeat(2_000)}`
    ]
    const spent = processorTime()
    for (const text of hostile) {
      for (let i = 0; i < 20; i++) proxies.clientOf("10.0.0.1", { forwarded: text, "x-forwarded-for": text })
    }
    expect(spent()).toBeLessThan(1_000)
  })
})

describe("Networks of proxies", () => {
  it.each(["10.0.0.0/33", "10.0.0", "proxy.example", "0.0.0.0/0", "::/0", "fd00::/129"])(
    "The proxy network %s is rejected",
    (entry) => {
      expect(Result.getOrNull(Result.flip(parseTrustedProxies(["10.0.0.0/8", entry])))).toBe(entry)
    }
  )
})
