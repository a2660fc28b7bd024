import { describe, expect, it } from "@effect/vitest"
import { credentialHeaders, shownHeaders } from "../src/PresentedPlaces.ts"
import {
  carriesMask,
  presentedMask,
  type PresentingParts,
  restoreOthers,
  restorePresented,
  takePresented,
  withoutOwn,
  withoutPresented
} from "../src/PresentedSecrets.ts"
import { providers } from "../src/Providers.ts"
import { compileSourceAuth } from "../src/SourceAuth.ts"

const placesOf = (type: string, auth_type: string | null, auth: object) =>
  compileSourceAuth({ type, auth_type, auth }).presented

const places = { headers: ["authorization", "x-key"], query: ["key"] }

const parts = (headers: PresentingParts["headers"], query = ""): PresentingParts => ({ headers, query })

/** Taken, and put back: the masked request, and the restored one. */
const roundTrip = (request: PresentingParts) => {
  const taken = takePresented(places, request)
  if (taken === null) return null
  const { secrets, ...masked } = taken
  return { masked, restored: restorePresented(masked, JSON.parse(JSON.stringify(secrets))) }
}

describe("Positions of presented secrets", () => {
  const open = credentialHeaders
  const table: ReadonlyArray<
    readonly [
      type: string,
      authType: string | null,
      auth: object,
      headers: ReadonlyArray<string>,
      query: string[],
      own?: object
    ]
  > = [
    ["WEBHOOK", null, {}, [], []],
    ["WEBHOOK", "BASIC_AUTH", { username: "u", password: "p" }, [], [], { headers: ["authorization"], query: [] }],
    ["WEBHOOK", "API_KEY", { api_key: "k" }, ["x-api-key"], [], { headers: ["x-api-key"], query: [] }],
    [
      "WEBHOOK",
      "API_KEY",
      { api_key: "k", header_key: "X-Own", query_key: "Token" },
      ["x-own"],
      ["token"],
      { headers: ["x-own"], query: ["token"] }
    ],
    ["WEBHOOK", "API_KEY", { api_key: "k", query_key: "k" }, [], ["k"], { headers: [], query: ["k"] }],
    ["WEBHOOK", "HMAC", { webhook_secret_key: "s" }, [], []],
    [
      "OKTA",
      "API_KEY",
      { api_key: "k", header_key: "X-Okta-Secret" },
      ["x-okta-secret"],
      [],
      { headers: ["x-okta-secret"], query: [] }
    ],
    ["GITLAB", "API_KEY", { api_key: "k" }, [], [], { headers: ["x-gitlab-token"], query: [] }],
    // Its senders present a token all the same, which is then their own.
    ["GITLAB", null, {}, [], []],
    [
      "META",
      "HMAC",
      { webhook_secret_key: "s", verify_token: "t" },
      [],
      ["hub.verify_token"],
      { headers: [], query: ["hub.verify_token"] }
    ],
    // Its sender is Meta whatever the source verifies.
    ["META", null, {}, [], ["hub.verify_token"]],
    ["META", "API_KEY", { api_key: "k" }, ["x-api-key"], ["hub.verify_token"], { headers: ["x-api-key"], query: [] }],
    ["GITHUB", "HMAC", { webhook_secret_key: "s" }, [], []]
  ]
  for (const [type, authType, auth, headers, query, own] of table) {
    it(`A ${type} source with auth_type ${authType} and auth ${JSON.stringify(auth)} masks the right headers`, () => {
      expect(placesOf(type, authType, auth)).toEqual({
        headers: [...open, ...headers],
        query,
        ...(own === undefined ? {} : { own })
      })
    })
  }

  it("Every source masks the credential headers of HTTP and of the providers", () => {
    expect([...credentialHeaders].sort()).toEqual([
      "authorization",
      "cookie",
      "dg-token",
      "proxy-authorization",
      "x-buildkite-token",
      "x-gitlab-token",
      "x-hook-secret",
      "x-telegram-bot-api-secret-token"
    ])
    // A row that checks a header for equality cannot be forgotten.
    for (const { verification } of providers) {
      if (verification.kind === "token" && verification.header !== null)
        expect(credentialHeaders).toContain(verification.header)
      if (verification.kind === "scheme" && verification.tokenHeader !== undefined)
        expect(credentialHeaders).toContain(verification.tokenHeader)
    }
  })

  it("Every header and query value is masked when the settings cannot be read", () => {
    expect(placesOf("WEBHOOK", "API_KEY", {})).toBe("everything")
    const taken = takePresented("everything", parts({ "x-a": "1", "x-b": ["2", "3"] }, "a=4&b"))
    expect(taken).toEqual({
      headers: { "x-a": presentedMask, "x-b": [presentedMask, presentedMask] },
      query: "a=%5BPRESENTED%5D&b",
      secrets: {
        headers: [
          ["x-a", ["1"]],
          ["x-b", ["2", "3"]]
        ],
        query: [["a", "4"]]
      }
    })
  })
})

describe("Removal and restoration of presented secrets", () => {
  it("A request without presented secrets is left unchanged", () => {
    for (const request of [
      parts({}),
      parts({ host: "a", "x-keys": "b" }, "a=1&keys=2&b"),
      parts({ authorization: "" }, "key=&key"),
      parts({ authorization: ["", ""] }, "&&?"),
      parts({ "x-other": presentedMask }, `other=${presentedMask}`)
    ]) {
      expect(takePresented(places, request)).toBeNull()
    }
  })

  const headers: ReadonlyArray<readonly [string, PresentingParts["headers"], PresentingParts["headers"]]> = [
    ["one header", { authorization: "Basic dTpw", a: "b" }, { authorization: presentedMask, a: "b" }],
    ["a repeated header", { "x-key": ["one", "", "two"] }, { "x-key": [presentedMask, "", presentedMask] }],
    [
      "two headers",
      { "x-key": "k", authorization: "Bearer t" },
      { "x-key": presentedMask, authorization: presentedMask }
    ],
    ["a header that is the mask", { authorization: presentedMask }, { authorization: presentedMask }],
    ["non-ASCII bytes", { "x-key": "\u00e4\u00ff" }, { "x-key": presentedMask }]
  ]
  for (const [name, sent, masked] of headers) {
    it(`Presented secrets in headers are masked and restored: ${name}`, () => {
      expect(roundTrip(parts(sent))).toEqual({ masked: parts(masked), restored: parts(sent) })
    })
  }

  it("Headers named like members of every object are masked and restored", () => {
    const sent = JSON.parse('{"__proto__":"p","constructor":"c"}')
    const named = { headers: ["__proto__", "constructor", "tostring", "hasownproperty"], query: [] }
    expect(takePresented(named, parts({}))).toBeNull()
    const { secrets, ...masked } = takePresented(named, parts(sent))!
    expect(JSON.stringify(masked.headers)).toBe(`{"__proto__":"${presentedMask}","constructor":"${presentedMask}"}`)
    expect(JSON.stringify(restorePresented(masked, secrets).headers)).toBe('{"__proto__":"p","constructor":"c"}')
  })

  const m = "%5BPRESENTED%5D"
  const queries: ReadonlyArray<readonly [string, string]> = [
    ["key=s3cret", `key=${m}`],
    ["a=1&key=s%33cret&b=2", `a=1&key=${m}&b=2`],
    ["key=one&key=two", `key=${m}&key=${m}`],
    // Every spelling that a verification would take.
    ["%6bey=s", `%6bey=${m}`],
    ["?key=s", `?key=${m}`],
    ["??key=s&key=t", `??key=s&key=${m}`],
    ["&&key=s&", `&&key=${m}&`],
    ["key=a=b", `key=${m}`],
    // And some that it would not.
    ["KEY=s", `KEY=${m}`],
    ["key=%zz", `key=${m}`],
    ["a=[PRESENTED]&key=s", `a=[PRESENTED]&key=${m}`]
  ]
  for (const [sent, masked] of queries) {
    it(`Presented secrets in the query are masked and restored: ${sent}`, () => {
      expect(roundTrip(parts({}, sent))).toEqual({ masked: parts({}, masked), restored: parts({}, sent) })
    })
  }

  it("No secret remains in a masked random query, and the query is restored byte for byte", () => {
    // With what a sender cannot send, but a transformation can make.
    const pieces = [
      "key",
      "Key",
      "k%65y",
      "+",
      "=",
      "&",
      "?",
      "%",
      "%zz",
      "a",
      "s3cret",
      "#",
      ";",
      "\u00e4",
      "%5B"
    ].concat([" ", "\u0000", "\ud800", "%F0", "\u6f22", presentedMask])
    let seed = 7
    const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below
    for (let run = 0; run < 20_000; run++) {
      const sent = Array.from({ length: random(12) }, () => pieces[random(pieces.length)]!).join("")
      const made = roundTrip(parts({}, sent))
      for (const value of new URLSearchParams(made?.masked.query ?? sent).getAll("key"))
        expect([presentedMask, ""], sent).toContain(value)
      expect(made?.restored.query ?? sent).toBe(sent)
    }
  })
})

describe("Presented secrets after a transformation", () => {
  const secrets = {
    headers: [["x-key", ["one", "two"]] as const],
    query: [["key", "s%33cret"] as const]
  }
  const restored = (headers: PresentingParts["headers"], query = "") => restorePresented(parts(headers, query), secrets)

  it("Masks that a transformation keeps are restored wherever they are now", () => {
    expect(restored({ b: "c", "x-key": presentedMask }, "z=1&key=[PRESENTED]&b=")).toEqual(
      parts({ b: "c", "x-key": "one" }, "z=1&key=s%33cret&b=")
    )
  })
  it("Values that a transformation drops or replaces are not restored", () => {
    expect(restored({ a: "b" }, "c=d")).toEqual(parts({ a: "b" }, "c=d"))
    expect(restored({ "x-key": "its own" }, "key=own")).toEqual(parts({ "x-key": "its own" }, "key=own"))
  })
  it("Surplus masks are left out, and masks under other names stay", () => {
    expect(
      restored(
        { "x-key": [presentedMask, presentedMask, presentedMask], other: presentedMask },
        "key=%5BPRESENTED%5D&key=[PRESENTED]&o=[PRESENTED]"
      )
    ).toEqual(parts({ "x-key": ["one", "two"], other: presentedMask }, "key=s%33cret&o=[PRESENTED]"))
  })
  it("Headers and query parameters with masks can be removed", () => {
    expect(
      withoutPresented(
        parts({ a: "b", "x-key": presentedMask, c: [presentedMask, "d"] }, "a=1&key=%5BPRESENTED%5D&b=2")
      )
    ).toEqual(parts({ a: "b", c: ["d"] }, "a=1&b=2"))
  })
  it("Masks are found in headers and in the query", () => {
    expect(carriesMask(parts({ a: "b" }, "c=d&PRESENTED"))).toBe(false)
    expect(carriesMask(parts({ a: presentedMask }))).toBe(true)
    expect(carriesMask(parts({ a: ["b", presentedMask] }))).toBe(true)
    expect(carriesMask(parts({}, "a=%5BPRESENTED%5D"))).toBe(true)
  })
})

it("Headers stored without a mask are shown with a mask", () => {
  expect(shownHeaders({ authorization: "Bearer t", cookie: ["a", "b"], "x-hook-secret": "", "x-a": "1" })).toEqual({
    authorization: presentedMask,
    cookie: [presentedMask, presentedMask],
    "x-hook-secret": "",
    "x-a": "1"
  })
})

describe("The source's own credentials", () => {
  const verifying = {
    headers: ["authorization", "x-own"],
    query: ["key", "token"],
    own: { headers: ["x-own"], query: ["key"] }
  }
  const sent = parts({ authorization: "Bearer a", "x-own": ["k", "k"], "x-other": "o" }, "KEY=k&token=t&a=1")
  const others = parts({ authorization: "Bearer a", "x-other": "o" }, "token=t&a=1")

  it("The source's own credentials are left out when only the other credentials are restored", () => {
    const { secrets, ...masked } = takePresented(verifying, sent)!
    expect(restoreOthers(masked, JSON.parse(JSON.stringify(secrets)))).toEqual(others)
    expect(restorePresented(masked, secrets)).toEqual(sent)
  })

  it("The source's own credentials are removed from a received request, if it has any", () => {
    expect(withoutOwn(sent, verifying)).toEqual(others)
    expect(withoutOwn(sent, places)).toBe(sent)
    expect(withoutOwn(sent, "everything").headers).toEqual({})
  })

  it("All credentials are restored from records of older versions, which do not separate the source's own", () => {
    const { secrets, ...masked } = takePresented(verifying, sent)!
    const { own: _, ...before } = secrets
    expect(restoreOthers(masked, before)).toEqual(sent)
  })
})
