import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { posix } from "node:path"
import { callerHeaders, upstreamHeaders, upstreamUrl } from "../src/ProxyCall.ts"

const to = (target_url: string, path_forwarding = true, query_forwarding = true) => ({
  target_url,
  path_forwarding,
  query_forwarding
})

describe("Upstream URL", () => {
  const table: ReadonlyArray<readonly [target: string, path: string, query: string, expected: string | null]> = [
    ["https://a.example", "/", "", "https://a.example/"],
    ["https://a.example", "/x", "", "https://a.example/x"],
    ["https://a.example/base", "/", "", "https://a.example/base"],
    ["https://a.example/base/", "/", "", "https://a.example/base/"],
    ["https://a.example/base", "/x/y/", "", "https://a.example/base/x/y/"],
    ["https://a.example/base/", "/x", "", "https://a.example/base/x"],
    ["https://a.example:8443/base#part", "/x", "a=1", "https://a.example:8443/base/x?a=1"],
    ["https://a.example/base?key=1&b=2", "/x", "b=3&c", "https://a.example/base/x?key=1&b=2&b=3&c"],
    ["https://a.example/base?key=1", "/x", "", "https://a.example/base/x?key=1"],
    // Nothing is decoded or encoded again.
    [
      "https://a.example/b%20c",
      "/a%20b%2Fc%3Fd+e",
      "x=%26%3D+%20",
      "https://a.example/b%20c/a%20b%2Fc%3Fd+e?x=%26%3D+%20"
    ],
    // The bytes that came, although they were not encoded.
    ["https://a.example/", "/\u00c3\u00bc", "q=\u00c3\u00bc", "https://a.example/%C3%BC?q=%C3%BC"],
    // Nothing of the sender's becomes a host, a query or a fragment.
    ["https://a.example", "//evil.example/x", "", "https://a.example//evil.example/x"],
    ["https://a.example", "/@evil.example", "", "https://a.example/@evil.example"],
    ["https://a.example/base", "/:80@evil.example", "", "https://a.example/base/:80@evil.example"],
    ["https://a.example/base", "/\\\\evil.example", "", "https://a.example/base/%5C%5Cevil.example"],
    ["https://a.example/base", "/x#y", "a#b", "https://a.example/base/x%23y?a%23b"],
    ["https://a.example/base?k=1", "/", "?a=1", "https://a.example/base?k=1&?a=1"],
    ["https://a.example/base", "/", "?a=1", "https://a.example/base??a=1"],
    // Steps up end at the target's path.
    ["https://a.example/base", "/..", "", "https://a.example/base"],
    ["https://a.example/base", "/../../admin", "", "https://a.example/base/admin"],
    ["https://a.example/base", "/%2e%2E/.%2e/admin", "", "https://a.example/base/admin"],
    ["https://a.example/base", "/x/../y/./z", "", "https://a.example/base/y/z"],
    ["https://a.example/base", "/a..b/...", "", "https://a.example/base/a..b/..."],
    // Those that the upstream might see and a URL does not are not forwarded.
    ["https://a.example/base", "/..%2fadmin", "", null],
    ["https://a.example/base", "/x%2F..%2F..%2Fadmin", "", null],
    ["https://a.example/base", "/%2e%2e%2fadmin", "", null],
    ["https://a.example/base", "/%252e%252e%252fadmin", "", null],
    ["https://a.example/base", "/%%32e%%32%65%%32fadmin", "", null],
    ["https://a.example/base", `/%${"25".repeat(10_000)}2e`, "", null],
    ["https://a.example/base", "/100%2525/50%25", "", "https://a.example/base/100%2525/50%25"],
    ["https://a.example/base", "/..%5cadmin", "", null],
    ["https://a.example/base", "/..\\admin", "", null],
    ["https://a.example/base", "/..;/admin", "", null],
    ["https://a.example/base", "/..;a=b/admin", "", null],
    ["https://a.example/base", "/..%3b/admin", "", null],
    // Egress refuses it, with its reason.
    ["nonsense", "/x", "a=1", "nonsense"]
  ]
  for (const [target, path, query, expected] of table) {
    it(`Upstream URL is made of ${target} and ${path.slice(0, 40)}${query === "" ? "" : ` ? ${query}`}`, () =>
      expect(upstreamUrl(to(target), path, query)).toBe(expected))
  }

  it("Upstream URL leaves out a path or query that is not forwarded", () => {
    const target = "https://a.example/base?key=1"
    expect(upstreamUrl(to(target, false, true), "/x", "a=1")).toBe("https://a.example/base?key=1&a=1")
    expect(upstreamUrl(to(target, true, false), "/x", "a=1")).toBe("https://a.example/base/x?key=1")
    expect(upstreamUrl(to(target, false, false), "/../..%2f", "a=1")).toBe("https://a.example/base?key=1")
  })

  const Piece = Schema.Literals(
    (
      "a .. . ... / // \\ % %2e %2E %2f %5c %252e %%32e 2e 2f 5c %25252f %5C %3b ; ? # @ : & = + %00 ..; [ ] { } | ^ ' \" < > ` ~ " +
      "\u00fc \u00c3\u00bc evil.example http:// %C3%BC"
    ).split(" ") as [string, ...Array<string>]
  )
  const Text = Schema.Array(Schema.Union([Piece, Schema.Literals([" ", "\t", "\r\n", "\0", "\u007f"])]))

  /** The path as the most obliging upstream would read it. */
  const asRead = (path: string): string => {
    let read = path
    for (let before = ""; before !== read;) {
      before = read
      read = read.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    }
    return posix.normalize(read.replaceAll("\\", "/").replace(/;[^/]*/g, ""))
  }

  for (const base of ["/base", "/base/", "/a/b%20c/"]) {
    it.prop(`Upstream URL never leaves the path ${base}`, [Text, Text], ([path, query]) => {
      const target = `https://a.example:444${base}?key=1`
      const href = upstreamUrl(to(target), `/${path.join("")}`, query.join(""))
      if (href === null) return
      expect(href).toMatch(/^[\x21-\x7e]+$/)
      const url = new URL(href)
      expect([url.origin, url.username, url.hash]).toEqual(["https://a.example:444", "", ""])
      const root = posix.normalize(decodeURIComponent(base)).replace(/\/$/, "")
      expect(`${asRead(url.pathname)}/`.startsWith(`${root}/`)).toBe(true)
      expect(url.searchParams.get("key")).toBe("1")
      expect(url.search.startsWith("?key=1")).toBe(true)
    })
  }

  const Name = Schema.Literals(["a", "b", "key", "%20", "x+y", "%C3%BC", "[]"])
  it.prop(
    "Upstream URL keeps both queries with the target's own first",
    [Schema.Array(Schema.Tuple([Name, Name]))],
    ([pairs]) => {
      const query = pairs.map((pair) => pair.join("=")).join("&")
      const url = new URL(upstreamUrl(to("https://a.example/?key=1&a=%2f"), "/", query)!)
      const own = [
        ["key", "1"],
        ["a", "/"]
      ]
      expect([...url.searchParams]).toEqual([...own, ...new URLSearchParams(query)])
    }
  )
})

const pairs = (flat: ReadonlyArray<string>): ReadonlyArray<readonly [string, string]> =>
  flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1]!] as const] : []))

describe("Upstream request headers", () => {
  const publicUrl = new URL("https://hooks.example:8443")
  const headersOf = (
    headers: Readonly<Record<string, string | ReadonlyArray<string>>>,
    originalIp: string | null = "198.51.100.7"
  ) => pairs(upstreamHeaders({ headers }, originalIp, publicUrl, "req_1"))
  const own = [
    ["x-forwarded-for", "198.51.100.7"],
    ["x-forwarded-proto", "https"],
    ["x-forwarded-host", "hooks.example:8443"],
    ["x-gateway-request-id", "req_1"]
  ]

  it("Upstream request has the sender's headers, including repeated ones, and the gateway's own", () => {
    const sent = { "content-type": "text/plain", authorization: "Bearer x", cookie: "a=1", "x-twice": ["1", "2"] }
    expect(headersOf(sent)).toEqual([
      ["content-type", "text/plain"],
      ["authorization", "Bearer x"],
      ["cookie", "a=1"],
      ["x-twice", "1"],
      ["x-twice", "2"],
      ...own
    ])
  })

  it("Upstream request omits connection headers and the headers that they name", () => {
    const sent = {
      connection: ["keep-alive, X-One", " x-two ,, upgrade"],
      "keep-alive": "timeout=5",
      "proxy-authenticate": "a",
      "proxy-authorization": "b",
      "proxy-connection": "c",
      te: "trailers",
      trailer: "x-t",
      "transfer-encoding": "chunked",
      upgrade: "websocket",
      expect: "100-continue",
      host: "hooks.example",
      "content-length": "5",
      "x-one": "1",
      "x-two": "2",
      "x-three": "3"
    }
    expect(headersOf(sent)).toEqual([["x-three", "3"], ...own])
  })

  it("Upstream request adds the sender's address to x-forwarded-for", () => {
    const forwardedFor = (sent: string | ReadonlyArray<string>, ip: string | null) =>
      headersOf({ "x-forwarded-for": sent }, ip).find(([name]) => name === "x-forwarded-for")?.[1]
    expect(forwardedFor("10.0.0.1, 10.0.0.2", "198.51.100.7")).toBe("10.0.0.1, 10.0.0.2, 198.51.100.7")
    expect(forwardedFor(["10.0.0.1", "10.0.0.2"], "::1")).toBe("10.0.0.1, 10.0.0.2, ::1")
    expect(forwardedFor("10.0.0.1", "::ffff:198.51.100.7")).toBe("10.0.0.1, 198.51.100.7")
    expect(forwardedFor("10.0.0.1", null)).toBe("10.0.0.1")
    expect(headersOf({}, null)).toEqual(own.slice(1))
  })

  it("Upstream request does not trust the sender's forwarding and gateway headers", () => {
    const sent = {
      "x-forwarded-proto": "http",
      "x-forwarded-host": "evil.example",
      "x-gateway-request-id": "req_2",
      "x-gateway-verified": "true"
    }
    expect(headersOf(sent)).toEqual(own)
  })
})

describe("Caller's response headers", () => {
  it("Caller gets the upstream's headers without connection headers, and the request's id", () => {
    const upstream = {
      "set-cookie": ["a=1", "b=2"],
      "content-length": "5",
      "content-encoding": "gzip",
      location: "http://10.0.0.1/",
      server: "s",
      connection: "close, x-one",
      "keep-alive": "timeout=5",
      "transfer-encoding": "chunked",
      trailer: "x-t",
      upgrade: "h2c",
      "proxy-authenticate": "Basic",
      "x-one": "1",
      "x-gateway-request-id": "forged",
      absent: undefined
    }
    expect(pairs(callerHeaders(200, upstream, "req_1"))).toEqual([
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      ["content-length", "5"],
      ["content-encoding", "gzip"],
      ["location", "http://10.0.0.1/"],
      ["server", "s"],
      ["x-gateway-request-id", "req_1"]
    ])
  })

  it("Response without a body has no content length", () => {
    const names = (status: number) =>
      pairs(callerHeaders(status, { "content-length": "0" }, "req_1")).map(([name]) => name)
    expect(names(204)).toEqual(["x-gateway-request-id"])
    expect(names(304)).toEqual(["content-length", "x-gateway-request-id"])
  })
})
