import { describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import type { InboundRequest } from "../src/InboundRequest.ts"
import { acknowledgementOf } from "../src/Reply.ts"
import { decide as decideOr, type Decision } from "../src/Routing.ts"
import type { Route, SourceSnapshot } from "../src/SourceSnapshot.ts"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Rule } from "@tidegate/model/Rule"
import { compileRules } from "@tidegate/rules/RuleSet"
import type { Handshake } from "@tidegate/verification/Provider"
import { compileSourceAuth } from "@tidegate/verification/SourceAuth"

const at = 1_700_000_000_000

const route = (connectionId: string, rules: ReadonlyArray<Rule> | null): Route => ({
  connectionId,
  destinationId: `des_of_${connectionId}`,
  destinationShard: 3,
  connectionShard: 7,
  rules: rules === null ? null : Result.getOrThrow(compileRules(rules)),
  isTunnel: false,
  ordering: null
})

const snapshot = (more: Partial<SourceSnapshot> = {}): SourceSnapshot => ({
  id: "src_1",
  slug: null,
  teamId: "tm_1",
  version: 5,
  origin: "https://hooks.example.com",
  disabled: false,
  limit: null,
  bin: null,
  allowedMethods: ["POST"],
  verifier: compileSourceAuth({ type: "WEBHOOK", auth_type: null, auth: {} }),
  seal: (id, presented) => `sealed for ${id}: ${JSON.stringify(presented)}`,
  reply: { customResponse: null, acknowledgement: acknowledgementOf("WEBHOOK", false) },
  proxy: null,
  routes: [],
  workflows: [],
  answer: null,
  ...more
})

const request = (more: Partial<InboundRequest> = {}): InboundRequest => ({
  id: newId(prefixes.request, at),
  receivedAt: at,
  method: "POST",
  target: "/e/src_1/orders?a=1",
  path: "/orders",
  query: "a=1",
  headers: { "content-type": "application/json", "x-request-id": "r-1" },
  body: Buffer.from('{"total":10}'),
  bodySize: 12,
  originalIp: "203.0.113.9",
  ...more
})

/** What is decided at once, when no certificate is missing. */
const decide = (by: SourceSnapshot, about: InboundRequest): Decision => {
  const decision = decideOr(by, about, () => false)
  if ("certificateUrl" in decision) throw new Error("a certificate is asked for")
  if ("resume" in decision) throw new Error("it is left for later")
  return decision
}

const nowhere = { headers: [], query: [] }
const keyed = compileSourceAuth({ type: "WEBHOOK", auth_type: "API_KEY", auth: { api_key: "sender-key" } })
const anyBody: Rule = { type: "filter", body: { total: { $gt: 5 } } }
const noBody: Rule = { type: "filter", body: { total: { $gt: 50 } } }
const otherPath: Rule = { type: "filter", path: "/invoices", query: { a: "2" } }
const delay: Rule = { type: "delay", delay: 90_000 }
const retry: Rule = { type: "retry", strategy: "linear", count: 1, interval: 1_000 }
const deduplicate: Rule = { type: "deduplicate", window: 1_000 }

describe("Acceptance of a request", () => {
  const wrong = { disabled: true, allowedMethods: ["PUT"], verifier: keyed }
  const tooLarge = { body: null, bodySize: 20_000_000 }
  const table: ReadonlyArray<
    readonly [name: string, Partial<SourceSnapshot>, Partial<InboundRequest>, cause: string | null]
  > = [
    ["no fault", {}, {}, null],
    ["a disabled source first", wrong, tooLarge, "SOURCE_DISABLED"],
    ["a wrong method second", { ...wrong, disabled: false }, tooLarge, "SOURCE_METHOD_NOT_ALLOWED"],
    ["a too large body third", { ...wrong, disabled: false, allowedMethods: ["POST"] }, tooLarge, "PAYLOAD_TOO_LARGE"],
    ["a failed verification last", { verifier: keyed }, {}, "SOURCE_AUTH_FAILED"],
    ["verified", { verifier: keyed }, { headers: { "x-api-key": "sender-key" } }, null]
  ]
  for (const [name, source, sent, cause] of table) {
    it(`Acceptance of a request is decided in a fixed order: ${name}`, () => {
      const { record, rejection } = decide(snapshot({ ...source, routes: [route("web_1", [])] }), request(sent))
      expect(rejection?.cause ?? null).toBe(cause)
      expect(record).toMatchObject({
        status: cause === null ? "accepted" : "rejected",
        rejectionCause: cause,
        verified: cause === null && source.verifier !== undefined
      })
      expect(record.events.length + record.ignored.length + record.pending.length).toBe(cause === null ? 1 : 0)
    })
  }

  it("Record of a request has exactly the expected fields", () => {
    const sent = request()
    expect(decide(snapshot(), sent).record).toEqual({
      id: sent.id,
      teamId: "tm_1",
      sourceId: "src_1",
      version: 5,
      status: "accepted",
      verified: false,
      rejectionCause: null,
      method: "POST",
      path: "/orders",
      query: "a=1",
      headers: JSON.stringify(sent.headers),
      presented: null,
      body: sent.body,
      cliEvents: 0,
      bodySize: 12,
      externalId: "r-1",
      originalIp: "203.0.113.9",
      ingestedAt: at,
      events: [],
      ignored: [],
      pending: [],
      runs: []
    })
  })
})

describe("Credential of a sender", () => {
  const presenting = compileSourceAuth({
    type: "WEBHOOK",
    auth_type: "API_KEY",
    auth: { api_key: "sender-key", header_key: "X-Request-Id", query_key: "key" }
  })
  const sent = (key: string) =>
    request({
      headers: { "content-type": "application/json", "x-request-id": key, authorization: `Bearer ${key}` },
      target: `/e/src_1/orders?key=${key}`,
      query: `key=${key}`
    })
  const onHeader: Rule = { type: "filter", headers: { "x-request-id": "[PRESENTED]" }, query: { key: "[PRESENTED]" } }

  it("Sender's credential is verified and then masked everywhere", () => {
    const source = { verifier: presenting, routes: [route("web_1", [onHeader])] }
    const decision = decide(snapshot(source), sent("sender-key"))
    const { input, record, request: seen } = decision
    expect(record).toMatchObject({ verified: true, externalId: null, query: "key=%5BPRESENTED%5D" })
    expect(record.events).toHaveLength(1)
    expect(seen.headers).toEqual(JSON.parse(record.headers))
    expect(seen.headers).toMatchObject({ "x-request-id": "[PRESENTED]", authorization: "[PRESENTED]" })
    expect([input().headers["x-request-id"], input().query["key"]]).toEqual(["[PRESENTED]", "[PRESENTED]"])
    expect(record.presented).toContain(`sealed for ${record.id}`)
    expect(JSON.stringify({ ...record, presented: null })).not.toContain("sender-key")
    expect(JSON.stringify({ ...seen, presented: null })).not.toContain("sender-key")
  })

  const refusals: ReadonlyArray<readonly [cause: string, Partial<SourceSnapshot>, Partial<InboundRequest>]> = [
    ["SOURCE_AUTH_FAILED", {}, {}],
    ["SOURCE_DISABLED", { disabled: true }, {}],
    ["SOURCE_METHOD_NOT_ALLOWED", { allowedMethods: ["PUT"] }, {}],
    ["PAYLOAD_TOO_LARGE", {}, { body: null, bodySize: 20_000_000 }]
  ]
  for (const [cause, source, about] of refusals) {
    it(`Sender's credential is masked in a rejected request: ${cause}`, () => {
      const { record } = decide(snapshot({ verifier: presenting, ...source }), { ...sent("sender-kez"), ...about })
      expect(record.rejectionCause).toBe(cause)
      expect(record.presented).toContain("sender-kez")
      expect(JSON.stringify({ ...record, presented: null })).not.toContain("sender-kez")
    })
  }

  it("Request without a sender's credential is not copied", () => {
    const plain = request()
    expect(decide(snapshot(), plain).request).toBe(plain)
  })
})

describe("Provider handshake", () => {
  const hello: Handshake = {
    kind: "url_verification",
    status: 200,
    contentType: "text/plain",
    body: "hi",
    needsCheck: true
  }
  const greeting = (verification: "verified" | "failed" | "unverified", handshake: Handshake | "refuse") => ({
    verifier: { verify: () => verification, handshake: () => handshake, presented: nowhere },
    routes: [route("web_1", []), route("web_2", [deduplicate]), route("web_3", [noBody])]
  })

  it("Provider handshake is accepted with any method, answered, and ignored by every connection", () => {
    const decision = decide(snapshot(greeting("verified", hello)), request({ method: "GET" }))
    expect(decision).toMatchObject({ handshake: hello, rejection: null })
    expect(decision.record).toMatchObject({ status: "accepted", verified: true, events: [], pending: [] })
    expect(decision.record.ignored.map(({ cause, connectionId, meta }) => [connectionId, cause, meta])).toEqual(
      ["web_1", "web_2", "web_3"].map((id) => [id, "HANDSHAKE", '["url_verification"]'])
    )
  })

  const table: ReadonlyArray<
    readonly [
      name: string,
      verification: "verified" | "failed" | "unverified",
      handshake: Handshake | "refuse",
      accepted: boolean,
      verified: boolean
    ]
  > = [
    ["with a wrong signature is rejected", "failed", hello, false, false],
    ["of a source that verifies nobody is answered", "unverified", hello, true, false],
    ["that cannot be signed is answered unverified", "failed", { ...hello, needsCheck: false }, true, false],
    ["with a wrong token is rejected", "verified", "refuse", false, false]
  ]
  for (const [name, verification, handshake, accepted, verified] of table) {
    it(`Provider handshake ${name}`, () => {
      const { record, rejection } = decide(snapshot(greeting(verification, handshake)), request())
      expect(rejection?.cause ?? null).toBe(accepted ? null : "SOURCE_AUTH_FAILED")
      expect(record).toMatchObject({ status: accepted ? "accepted" : "rejected", verified })
      expect(record.ignored.length).toBe(accepted ? 3 : 0)
    })
  }

  it("Provider handshake to a disabled source is rejected", () => {
    const { rejection } = decide(snapshot({ ...greeting("verified", hello), disabled: true }), request())
    expect(rejection?.cause).toBe("SOURCE_DISABLED")
  })

  it("Provider handshake gets the URL that was called", () => {
    const asked: Array<string> = []
    const verifier = {
      verify: () => "verified" as const,
      handshake: ({ url }: { readonly url: string }) => {
        asked.push(url)
        return null
      },
      presented: nowhere
    }
    decide(snapshot({ verifier }), request())
    expect(asked).toEqual(["https://hooks.example.com/e/src_1/orders?a=1"])
  })
})

describe("Looping request", () => {
  const workflows = [{ workflowId: "wfl_1", shard: 1, version: 1, steps: 1 }]

  it("Looping request is stored as rejected and starts nothing", () => {
    const { record, rejection } = decide(snapshot({ workflows }), { ...request(), isLoop: true })
    expect(rejection?.code).toBe("LOOP_DETECTED")
    expect(record).toMatchObject({ status: "rejected", rejectionCause: "LOOP_DETECTED", runs: [], events: [] })
  })

  it("Looping request is verified before it is rejected as a loop", () => {
    const { rejection } = decide(snapshot({ verifier: keyed }), { ...request(), isLoop: true })
    expect(rejection?.code).toBe("SOURCE_AUTH_FAILED")
  })
})

it("Missing certificate is requested before a request is decided", () => {
  const needed = { certificateUrl: "https://sns.us-east-1.amazonaws.com/cert.pem" }
  const verifier = { verify: () => needed, handshake: () => null, presented: nowhere }
  expect(decideOr(snapshot({ verifier, routes: [route("web_1", [])] }), request(), () => false)).toBe(needed)
})

describe("Routing by one connection", () => {
  const one = (rules: ReadonlyArray<Rule> | null) =>
    decide(snapshot({ routes: [route("web_1", rules)] }), request()).record

  it("Connection without rules makes an event that is due at once", () => {
    const { events, ignored, pending } = one([])
    expect(events).toEqual([
      {
        id: expect.stringMatching(/^evt_/),
        connectionId: "web_1",
        destinationId: "des_of_web_1",
        shard: 3,
        dueAt: at,
        orderingKey: null
      }
    ])
    expect([ignored, pending]).toEqual([[], []])
  })

  it("Connection with a delay makes an event that is due later", () =>
    expect(one([anyBody, delay, retry]).events[0]?.dueAt).toBe(at + 90_000))

  it("Connection makes an ignored event that names every filter target that did not match", () => {
    const { events, ignored } = one([noBody, otherPath, delay])
    expect(events).toEqual([])
    expect(ignored).toEqual([
      { id: expect.stringMatching(/^ign_/), connectionId: "web_1", cause: "FILTERED", meta: expect.any(String) }
    ])
    expect(JSON.parse(ignored[0]!.meta).toSorted()).toEqual(["body", "path", "query"])
  })

  it("Connection with slow or unreadable rules makes a routing job", () => {
    for (const rules of [[deduplicate], [deduplicate, noBody], null]) {
      expect(one(rules)).toMatchObject({
        events: [],
        ignored: [],
        pending: [{ connectionId: "web_1", shard: 7, ordering: null }]
      })
    }
  })
})

describe("Routing decision", () => {
  const kinds: ReadonlyArray<ReadonlyArray<Rule> | null> = [[], [anyBody], [noBody], [delay], [deduplicate], null]
  const Routes = Schema.Array(Schema.Literals([0, 1, 2, 3, 4, 5])).check(Schema.isMaxLength(12))
  const routesOf = (numbers: ReadonlyArray<number>): ReadonlyArray<Route> =>
    numbers.map((kind, i) => route(`web_${i}`, kinds[kind] ?? null))
  const idsOf = (record: ReturnType<typeof decide>["record"]): ReadonlyMap<string, string> =>
    new Map(
      [...record.events, ...record.ignored].map(({ connectionId, id }) => [`${id.slice(0, 4)}${connectionId}`, id])
    )

  it.prop("Routing gives every connection exactly one event, ignored event or routing job", [Routes], ([numbers]) => {
    const routes = routesOf(numbers)
    const { events, ignored, pending } = decide(snapshot({ routes }), request()).record
    const routed = [...events, ...ignored, ...pending].map(({ connectionId }) => connectionId)
    expect(routed.toSorted()).toEqual(routes.map(({ connectionId }) => connectionId).toSorted())
  })

  it.prop("Routing by another snapshot keeps the ids of the same connections", [Routes, Routes], ([first, second]) => {
    const sent = request()
    const before = decide(snapshot({ routes: routesOf(first) }), sent).record
    const after = decide(snapshot({ version: 6, routes: routesOf(second).toReversed() }), sent).record
    expect(after).toMatchObject({ id: before.id, version: 6 })
    const ids = idsOf(before)
    for (const [key, id] of idsOf(after)) if (ids.has(key)) expect(id).toBe(ids.get(key))
    // The same connections in another order: the same in every respect.
    expect(idsOf(decide(snapshot({ routes: routesOf(first).toReversed() }), sent).record)).toEqual(ids)
  })

  it("Routing of another request gives other ids, which sort by time", () => {
    const routes = [route("web_1", []), route("web_2", [])]
    const all = [at, at + 1, at + 2].flatMap((receivedAt) =>
      decide(snapshot({ routes }), request({ id: newId(prefixes.request, receivedAt), receivedAt })).record.events.map(
        ({ id }) => id
      )
    )
    expect(new Set(all).size).toBe(6)
    const timeOf = (id: string) => id.slice(4, 14)
    expect(all.map(timeOf)).toEqual(all.map(timeOf).toSorted())
  })
})

describe("Long routing decision", () => {
  const routes = Array.from({ length: 100 }, (_, i) => route(`web_${i}`, [i % 3 === 0 ? noBody : anyBody]))
  const slow = request({ body: Buffer.from(`{"total":10,"text":"${"x".repeat(300_000)}"}`) })

  /** Decides with a turn that is over every so many times it is asked; how often it was left for later. */
  const inSlices = (by: SourceSnapshot, about: InboundRequest, every: number) => {
    let asked = 0
    let left = 0
    let decision = decideOr(by, about, (since) => since !== undefined || ++asked % every === 0)
    while ("resume" in decision) {
      left++
      decision = decision.resume()
    }
    if ("certificateUrl" in decision) throw new Error("a certificate is asked for")
    return { decision, left }
  }

  it("Long routing decision stops when its time is used up and ends with the same result", () => {
    const by = snapshot({ routes })
    const { decision, left } = inSlices(by, slow, 1)
    expect(left).toBeGreaterThan(0)
    expect(decision.record).toEqual(decide(by, slow).record)
    expect([decision.record.events.length, decision.record.ignored.length]).toEqual([66, 34])
  })

  it("Long routing decision parses a body of many long numbers in steps, once for all connections", () => {
    const numbers = Array.from({ length: 20_000 }, (_, i) => `${i}.${"1234567890".repeat(3)}`)
    const body = Buffer.from(`[${numbers.join(",")}]`)
    const about = request({ body, bodySize: body.length })
    const first: Rule = { type: "filter", body: { 0: { $exist: true } } }
    const by = (count: number) =>
      snapshot({ routes: Array.from({ length: count }, (_, i) => route(`web_${i}`, [first])) })
    const one = inSlices(by(1), about, 1)
    // A step reads 2,000 numbers.
    expect(one.left).toBeGreaterThan(5)
    const many = inSlices(by(20), about, 1)
    expect(many.left).toBeLessThan(one.left + 25)
    expect(many.decision.record.events.length + many.decision.record.ignored.length).toBe(20)
  })

  it("Long routing decision pauses between connections and routes each of them once", () => {
    // Each of these patterns takes some milliseconds on this text.
    const text: Rule = { type: "filter", body: { text: { $regex: "([a-z]+){3}[0-9]" } } }
    const by = snapshot({ routes: Array.from({ length: 10 }, (_, i) => route(`web_${i}`, [text])) })
    const about = request({ body: Buffer.from(`{"text":"${"abcdefgh".repeat(7_000)}"}`) })
    const { decision, left } = inSlices(by, about, 1_000_000)
    expect(left).toBeGreaterThan(2)
    const { ignored, pending } = decision.record
    expect([...ignored, ...pending].map(({ connectionId }) => connectionId)).toEqual(
      Array.from({ length: 10 }, (_, i) => `web_${i}`)
    )
  })

  it("Filters above the cost limit of one request become routing jobs, and only those", () => {
    const costly: Rule = { type: "filter", body: { n: { $nin: Array.from({ length: 60 }, (_, i) => i) } } }
    const body = Buffer.from(JSON.stringify({ n: Array.from({ length: 60_000 }, () => "9".repeat(40)) }))
    const about = request({ body, bodySize: body.length })
    const routes = Array.from({ length: 100 }, (_, i) => route(`web_${i}`, [i % 10 === 9 ? delay : costly]))
    const { events, ignored, pending } = decide(snapshot({ routes }), about).record
    const told = new Set([...events, ...ignored, ...pending].map(({ connectionId }) => connectionId))
    expect(told.size).toBe(100)
    // Of the others none asks anything.
    expect(pending.length).toBeGreaterThan(70)
    expect(pending.length).toBeLessThan(90)
    expect(pending.every(({ connectionId }) => !connectionId.endsWith("9"))).toBe(true)
    // Nobody waits for what costs little, however many there are.
    const cheap = snapshot({ routes: Array.from({ length: 100 }, (_, i) => route(`web_${i}`, [costly])) })
    expect(decide(cheap, request()).record.pending).toEqual([])
  })

  it("Routing decision without filters does not ask for time", () => {
    const never = (): boolean => {
      throw new Error("asked")
    }
    const plain = snapshot({ routes: [route("web_1", []), route("web_2", [delay])] })
    expect("record" in decideOr(plain, request(), never)).toBe(true)
  })
})
