import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { type ForwardingHeaders, parseTrustedProxies } from "../src/TrustedProxies.ts"

const proxies = Result.getOrThrow(parseTrustedProxies(["10.0.0.0/8", "192.0.2.10", "fd00::/8"]))

const cases: ReadonlyArray<readonly [what: string, peer: string, headers: ForwardingHeaders, client: string]> = [
  ["a stranger is not believed", "203.0.113.5", { "x-forwarded-for": "198.51.100.1" }, "203.0.113.5"],
  ["a proxy that says nothing stands for itself", "10.0.0.1", {}, "10.0.0.1"],
  ["a proxy says whom it asks for", "10.0.0.1", { "x-forwarded-for": "198.51.100.1" }, "198.51.100.1"],
  [
    "a proxy on a socket for both families is the same",
    "::ffff:10.0.0.1",
    { "x-forwarded-for": "198.51.100.1" },
    "198.51.100.1"
  ],
  [
    "what a client wrote first is not read",
    "10.0.0.1",
    { "x-forwarded-for": "127.0.0.1, 198.51.100.1" },
    "198.51.100.1"
  ],
  [
    "proxies in a row are passed over",
    "10.0.0.1",
    { "x-forwarded-for": "1.1.1.1, 198.51.100.1,192.0.2.10 , 10.9.9.9" },
    "198.51.100.1"
  ],
  [
    "of nothing but proxies the first is the client",
    "10.0.0.1",
    { "x-forwarded-for": "10.0.0.3, 10.0.0.2" },
    "10.0.0.3"
  ],
  ["a header that comes twice is one", "10.0.0.1", { "x-forwarded-for": ["1.1.1.1", "198.51.100.1"] }, "198.51.100.1"],
  ["ports are left out", "10.0.0.1", { "x-forwarded-for": "198.51.100.1:4711" }, "198.51.100.1"],
  ["IPv6", "fd00::1", { "x-forwarded-for": "2001:DB8:0::1" }, "2001:db8::1"],
  ["IPv6 with a port", "fd00::1", { "x-forwarded-for": "[2001:db8::1]:443" }, "2001:db8::1"],
  ["IPv6 with a zone", "fd00::1", { "x-forwarded-for": "fe80::1%eth0" }, "fe80::1"],
  ["unknown", "10.0.0.1", { "x-forwarded-for": "198.51.100.1, unknown" }, "10.0.0.1"],
  [
    "what is no address, behind a proxy",
    "10.0.0.1",
    { "x-forwarded-for": "198.51.100.1, <script>, 10.0.0.2" },
    "10.0.0.2"
  ],
  ["an empty header", "10.0.0.1", { "x-forwarded-for": "" }, "10.0.0.1"],
  ["RFC 7239", "10.0.0.1", { forwarded: "for=1.1.1.1, for=198.51.100.1;proto=https;by=10.0.0.1" }, "198.51.100.1"],
  ["RFC 7239, quoted, with a port", "10.0.0.1", { forwarded: 'proto=https; For="[2001:db8::1]:4711"' }, "2001:db8::1"],
  [
    "RFC 7239, a comma within quotes",
    "10.0.0.1",
    { forwarded: 'for=198.51.100.1;by="a,b", for=10.0.0.2' },
    "198.51.100.1"
  ],
  ["RFC 7239, an escape", "10.0.0.1", { forwarded: 'for="198\\.51.100.1"' }, "198.51.100.1"],
  ["RFC 7239, unknown and obfuscated", "10.0.0.1", { forwarded: "for=198.51.100.1, for=unknown" }, "10.0.0.1"],
  ["RFC 7239, a hidden name", "10.0.0.1", { forwarded: 'for=198.51.100.1, for="_gazonk"' }, "10.0.0.1"],
  ["RFC 7239, without for", "10.0.0.1", { forwarded: "for=198.51.100.1, proto=http" }, "10.0.0.1"],
  ["RFC 7239, a quote left open", "10.0.0.1", { forwarded: 'for=127.0.0.1;x=", for="198.51.100.1"' }, "10.0.0.1"],
  ["RFC 7239, one that is escaped", "10.0.0.1", { forwarded: 'for=127.0.0.1;x="\\, for="198.51.100.1"' }, "10.0.0.1"],
  [
    "both headers, of one mind",
    "10.0.0.1",
    { forwarded: "for=198.51.100.1", "x-forwarded-for": "198.51.100.1" },
    "198.51.100.1"
  ],
  [
    "both headers, one of which a client wrote",
    "10.0.0.1",
    { forwarded: "for=127.0.0.1", "x-forwarded-for": "198.51.100.1" },
    "10.0.0.1"
  ],
  [
    "a long header is read from the right",
    "10.0.0.1",
    { "x-forwarded-for": `${"1.1.1.1,".repeat(3_000)}198.51.100.1` },
    "198.51.100.1"
  ],
  [
    "a long row of proxies is not gone through",
    "10.0.0.1",
    { "x-forwarded-for": `198.51.100.1${",10.0.0.2".repeat(40)}` },
    "10.0.0.2"
  ],
  [
    "a long one of RFC 7239 is not read",
    "10.0.0.1",
    { forwarded: `${"for=1.1.1.1,".repeat(3_000)}for=198.51.100.1` },
    "10.0.0.1"
  ]
]

describe("the client of a request", () => {
  it.each(cases)("%s", (_, peer, headers, client) => {
    expect(proxies.clientOf(peer, headers)).toBe(client)
  })

  it("is who is connected where nobody is trusted, whatever is said", () => {
    const none = Result.getOrThrow(parseTrustedProxies([]))
    expect(none.clientOf("10.0.0.1", { "x-forwarded-for": "198.51.100.1" })).toBe("10.0.0.1")
    expect([none.trusts("10.0.0.1"), proxies.trusts("10.0.0.1"), proxies.trusts("11.0.0.1")]).toEqual([
      false,
      true,
      false
    ])
  })

  it("is found in hostile headers at once", () => {
    const hostile = [
      '"'.repeat(2_000),
      '"\\'.repeat(1_000),
      ";for=".repeat(400),
      ",".repeat(2_000),
      `for="${"\\".repeat(2_000)}`
    ]
    const since = performance.now()
    for (const text of hostile) {
      for (let i = 0; i < 20; i++) proxies.clientOf("10.0.0.1", { forwarded: text, "x-forwarded-for": text })
    }
    expect(performance.now() - since).toBeLessThan(1_000)
  })
})

describe("networks of proxies", () => {
  it.each(["10.0.0.0/33", "10.0.0", "proxy.example", "0.0.0.0/0", "::/0", "fd00::/129"])("%s is refused", (entry) => {
    expect(Result.getOrNull(Result.flip(parseTrustedProxies(["10.0.0.0/8", entry])))).toBe(entry)
  })
})
