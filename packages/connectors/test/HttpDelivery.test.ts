import { describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { type OpenAuth, type OutboundRequest, Refusal } from "@tidegate/connectors/Connector"
import { forward, type ForwardTarget } from "../src/HttpDelivery.ts"
import type { Message } from "@tidegate/model/Message"
import { prepareSigningSecret } from "@tidegate/outbound-auth/DeliverySignature"
import { factsOf } from "./Facts.ts"

const target: ForwardTarget = { url: "http://h/b", http_method: null, path_forwarding_disabled: false }
const bare: Pick<OpenAuth, "headers" | "query" | "signing"> = { headers: {}, signing: null }
const inbound: Message = { method: "POST", path: "/", query: "", headers: {}, body: Buffer.from("body") }

const context = factsOf(inbound, {
  webhookId: "evt_0",
  attemptNumber: 2,
  trigger: "AUTOMATIC",
  willRetryAfter: 30,
  originalIp: "203.0.113.9",
  createdAt: 1_699_999_999_000,
  timestampSeconds: 1_700_000_000
})

/** The request of an attempt that is sent. */
const prepare = (target: ForwardTarget, message: Message, facts = context, auth = bare): OutboundRequest => {
  const request = forward(target, auth)(message, facts)
  if (request instanceof Refusal) throw new Error(request.code)
  return request
}

/** Where a request goes; null when it goes nowhere. */
const targetUrl = (change: Partial<ForwardTarget>, path: string, query: string): string | null => {
  const request = forward({ ...target, ...change }, bare)({ ...inbound, path, query }, context)
  return request instanceof Refusal ? null : request.url
}

describe("Target URL", () => {
  const table: ReadonlyArray<readonly [url: string, path: string, query: string, expected: string | null]> = [
    ["http://h", "/", "", "http://h"],
    ["http://h", "", "", "http://h"],
    ["http://h", "/", "a=1", "http://h?a=1"],
    ["http://h", "/a", "", "http://h/a"],
    ["http://h/", "/a", "", "http://h/a"],
    ["http://h/b", "/a", "", "http://h/b/a"],
    ["http://h/b/", "/a/", "", "http://h/b/a/"],
    ["http://h/b//", "/a", "", "http://h/b//a"],
    ["http://h/b", "//a", "", "http://h/b//a"],
    ["http://h/b?k=v", "/a", "", "http://h/b/a?k=v"],
    ["http://h/b?k=v", "/", "a=1&a=2", "http://h/b?k=v&a=1&a=2"],
    ["http://h/b?", "/a", "x", "http://h/b/a?x"],
    ["http://h/b?u=http://x/?y", "/a", "z", "http://h/b/a?u=http://x/?y&z"],
    ["http://h/b", "/%2F%20%zz%", "q=%20+", "http://h/b/%2F%20%zz%?q=%20+"],
    // Steps up end at the inbound path's own root.
    ["http://h/b/c", "/..", "", "http://h/b/c"],
    ["http://h/b/c", "/../..", "", "http://h/b/c"],
    ["http://h/b/c", "/../x", "", "http://h/b/c/x"],
    ["http://h/b/c", "/x/../../../y/", "", "http://h/b/c/y/"],
    ["http://h/b", "/x/./y/.", "", "http://h/b/x/y/"],
    ["http://h/b", "/%2e%2E/%2e./.%2E/x", "", "http://h/b/x"],
    ["http://h/b", "/x//../y", "", "http://h/b/x/y"],
    ["http://h/b", "/...", "", "http://h/b/..."],
    ["http://h/b", "/..a/.b/c..", "", "http://h/b/..a/.b/c.."],
    // Those that only the target would see are not sent to it (ForwardedUrl.test.ts has more).
    ["http://h/b", "/%252e%252e/x", "", null],
    ["http://h/b", "/\\..\\x", "", null],
    ["http://h/b", "/\\x", "", "http://h/b/%5Cx"],
    // A hash does not cut off what follows.
    ["http://h/b?k=v", "/a#b", "c#d", "http://h/b/a%23b?k=v&c%23d"]
  ]
  for (const [url, path, query, expected] of table) {
    it(`Target URL is made of ${url} and ${path}${query === "" ? "" : `?${query}`}`, () => {
      expect(targetUrl({ url, path_forwarding_disabled: false }, path, query)).toBe(expected)
      expect(targetUrl({ url, path_forwarding_disabled: true }, path, query)).toBe(url)
    })
  }

  const Part = Schema.Literals([
    "..",
    ".",
    "%2e",
    ".%2E",
    "%2e%2e",
    "a",
    "",
    "\\",
    "\\..",
    "#",
    "@",
    "?",
    "%5c..",
    "..;",
    "&"
  ])

  it.prop("Target URL stays below the destination's URL and keeps its query", [Schema.Array(Part)], ([parts]) => {
    const [path = "", query = ""] = `/${parts.join("/")}`.split(/\?(.*)/s)
    const href = targetUrl({ url: "https://h.example/base/hooks?key=v", path_forwarding_disabled: false }, path, query)
    if (href === null) return
    const url = new URL(href)
    expect(url.origin).toBe("https://h.example")
    expect(`${url.pathname}/`.startsWith("/base/hooks/")).toBe(true)
    expect(url.searchParams.get("key")).toBe("v")
    expect([url.hash, url.username]).toEqual(["", ""])
  })
})

/** Name and value of every header, in order. */
const pairs = (headers: ReadonlyArray<string>): ReadonlyArray<readonly [string, string]> =>
  headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!] as const] : []))

const named = (headers: ReadonlyArray<string>, name: string): ReadonlyArray<string> =>
  pairs(headers).flatMap(([other, value]) => (other === name ? [value] : []))

describe("Prepared HTTP delivery", () => {
  it("Delivery of a request without headers has exactly the gateway's headers", () => {
    expect(prepare(target, inbound, context)).toEqual({
      method: "POST",
      url: "http://h/b",
      shownUrl: "http://h/b",
      body: inbound.body,
      headers: [
        ["user-agent", "event-gateway/1"],
        ["idempotency-key", "evt_1"],
        ["x-gateway-event-id", "evt_1"],
        ["x-gateway-request-id", "req_1"],
        ["x-gateway-attempt-count", "2"],
        ["x-gateway-attempt-trigger", "AUTOMATIC"],
        ["x-gateway-source-name", "source"],
        ["x-gateway-connection-name", "connection"],
        ["x-gateway-destination-name", "destination"],
        ["x-gateway-verified", "true"],
        ["x-gateway-will-retry-after", "30"],
        ["x-gateway-original-ip", "203.0.113.9"],
        ["x-gateway-timestamp", "1700000000"]
      ].flat()
    })
  })

  it("Delivery omits headers for unknown values", () => {
    const { headers } = prepare(target, inbound, { ...context, willRetryAfter: null, originalIp: null })
    expect(named(headers, "x-gateway-will-retry-after")).toEqual([])
    expect(named(headers, "x-gateway-original-ip")).toEqual([])
  })

  const methods: ReadonlyArray<readonly [configured: string | null, sent: string, method: string]> = [
    [null, "POST", "POST"],
    [null, "PUT", "PUT"],
    [null, "PATCH", "PATCH"],
    [null, "DELETE", "DELETE"],
    [null, "GET", "POST"],
    [null, "HEAD", "POST"],
    ["PUT", "GET", "PUT"],
    ["DELETE", "POST", "DELETE"]
  ]
  for (const [configured, sent, method] of methods) {
    it(`Request method ${sent} becomes ${method} for a destination with ${configured ?? "any method"}`, () => {
      expect(prepare({ ...target, http_method: configured }, { ...inbound, method: sent }, context).method).toBe(method)
    })
  }

  const keptOrNot: ReadonlyArray<
    readonly [name: string, headers: Message["headers"], header: string, expected: ReadonlyArray<string>]
  > = [
    ["a sender's header", { "x-a": "1" }, "x-a", ["1"]],
    ["a repeated one", { "x-a": ["1", "2"] }, "x-a", ["1", "2"]],
    ["one called like a member of every object", { constructor: "c" }, "constructor", ["c"]],
    ["the sender's idempotency key", { "idempotency-key": "mine" }, "idempotency-key", ["mine"]],
    [
      "an idempotency key that the connection keeps to itself",
      { connection: "Idempotency-Key", "idempotency-key": "mine" },
      "idempotency-key",
      ["evt_1"]
    ],
    ["the sender's user agent", { "user-agent": "curl" }, "user-agent", ["event-gateway/1"]],
    ["a forged header of the gateway", { "x-gateway-verified": "false" }, "x-gateway-verified", ["true"]],
    ["any header of the gateway's", { "x-gateway-more": "1" }, "x-gateway-more", []],
    ["a header of the connection", { connection: "keep-alive, X-Hop", "x-hop": "1" }, "x-hop", []],
    ["several connection headers", { connection: ["close", "x-hop"], "x-hop": "1" }, "x-hop", []],
    ["webhook-id of an unsigned delivery", { "webhook-id": "msg" }, "webhook-id", ["msg"]],
    ...[
      "connection",
      "keep-alive",
      "te",
      "trailer",
      "transfer-encoding",
      "upgrade",
      "host",
      "content-length",
      "expect"
    ].map((name) => [`the connection's ${name}`, { [name]: "x" }, name, []] as const)
  ]
  for (const [name, headers, header, expected] of keptOrNot) {
    it(`Delivery handles ${name}: ${expected.length === 0 ? "left out" : expected.join(", ")}`, () => {
      expect(named(prepare(target, { ...inbound, headers }, context).headers, header)).toEqual(expected)
    })
  }

  for (const name of ["authorization", "x-token", "idempotency-key", "user-agent", "webhook-id"]) {
    it(`Destination's own header ${name} replaces the sender's`, () => {
      const { headers } = prepare(target, { ...inbound, headers: { [name]: ["sent", "twice"] } }, context, {
        ...bare,
        headers: { [name]: "set" }
      })
      expect(named(headers, name)).toEqual(["set"])
    })
  }

  it("Names with characters that a header cannot hold are encoded in a delivery", () => {
    const { headers } = prepare(target, inbound, {
      ...context,
      sourceName: "café",
      connectionName: "заказ",
      destinationName: "a\nb"
    })
    expect(named(headers, "x-gateway-source-name")).toEqual(["café"])
    expect(named(headers, "x-gateway-connection-name")).toEqual([encodeURIComponent("заказ")])
    expect(named(headers, "x-gateway-destination-name")).toEqual(["a%0Ab"])
  })

  it("Signed delivery carries the gateway's signature once and no forged one", () => {
    const secret = Result.getOrThrow(prepareSigningSecret("gws_0123456789"))
    const forged = {
      "webhook-id": "forged",
      "webhook-timestamp": "1",
      "webhook-signature": "v1,x",
      "webhook-anything": "y",
      "x-gateway-signature": "v1=00"
    }
    const { headers } = prepare(target, { ...inbound, headers: forged }, context, { ...bare, signing: [secret] })
    expect(named(headers, "webhook-id")).toEqual(["evt_0"])
    expect(named(headers, "webhook-timestamp")).toEqual(["1700000000"])
    expect(named(headers, "x-gateway-timestamp")).toEqual(["1700000000"])
    expect(named(headers, "webhook-anything")).toEqual([])
    expect(named(headers, "webhook-signature")).toEqual([expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/)])
    expect(named(headers, "x-gateway-signature")).toEqual([expect.stringMatching(/^v1=[0-9a-f]{64}$/)])
  })
})

describe("Recorded URL of a delivery", () => {
  it("Recorded URL does not contain what the sender presented as a credential", () => {
    const facts = { ...context, shown: { ...inbound, path: "/a", query: "key=%5BPRESENTED%5D" } }
    const { shownUrl, url } = prepare(target, { ...inbound, path: "/a", query: "key=secret" }, facts)
    expect(url).toBe("http://h/b/a?key=secret")
    expect(shownUrl).toBe("http://h/b/a?key=%5BPRESENTED%5D")
  })

  it("Refused delivery records the target's URL alone", () => {
    const refusals = [
      forward(target, bare)({ ...inbound, path: "/..%2fx", query: "key=secret" }, context),
      forward(target, bare)({ ...inbound, headers: { "x-long": "secret".repeat(50_000) } }, context)
    ]
    expect(refusals).toEqual([
      new Refusal({
        code: "PATH_NOT_ALLOWED",
        message: "the path holds encoded steps that could lead out of the path of the destination's URL",
        method: "POST",
        shownUrl: "http://h/b"
      }),
      new Refusal({
        code: "REQUEST_TOO_LARGE",
        message: "URL and headers have more than 262144 bytes",
        method: "POST",
        shownUrl: "http://h/b"
      })
    ])
  })
})

describe("Key in the query", () => {
  const keyed = { ...bare, query: { name: "api key", value: "s3cret&=#ü" } }
  const own = "api%20key=s3cret%26%3D%23%C3%BC"

  it.each([
    ["http://h/b", "", `http://h/b/a?${own}`],
    ["http://h/b?x=1", "y=%20+&&z", `http://h/b/a?x=1&y=%20+&&z&${own}`],
    [
      "http://h/b?api%20key=old&x",
      "api+key=a&%61pi%20key&api%20keys=b&API+KEY=c",
      `http://h/b/a?x&api%20keys=b&API+KEY=c&${own}`
    ]
  ])(
    "Key is added to %s with the sender's query %s once, and is masked where the URL is shown",
    (url, query, expected) => {
      const request = prepare({ ...target, url }, { ...inbound, path: "/a", query }, context, keyed)
      expect(request.url).toBe(expected)
      const shown = prepare(
        { ...target, url },
        { ...inbound, path: "/a", query },
        factsOf({ ...inbound, path: "/a", query: "shown" }),
        keyed
      )
      expect(shown.shownUrl).toBe(
        `${url.replace("http://h/b", "http://h/b/a").replace(/api%20key=old&/, "")}${url.includes("?") ? "&" : "?"}shown&api%20key=****`
      )
      const whole = prepare({ ...target, url, path_forwarding_disabled: true }, inbound, context, keyed)
      expect([whole.url.endsWith(own), whole.shownUrl.endsWith("api%20key=****")]).toEqual([true, true])
      expect(whole.shownUrl).not.toContain("s3cret")
    }
  )
})
