import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Result, Schema, SchemaIssue, SchemaParser } from "effect"
import { type Answer, type Connector, type OpenAuth, Refusal, type Sender } from "@tidegate/connectors/Connector"
import { connectors, settingsOf } from "@tidegate/connectors/Connectors"
import { type Config, pacing, type Setting, writtenMembers } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { factsOf } from "./Facts.ts"
import { authsOf, secret } from "./rows/Auths.ts"
import { rowOf } from "./rows/Rows.ts"
import { lineConnector, makeLine, noServers } from "./TestConnectors.ts"

/**
 * What every type of destinations must keep to: each row of the table runs through it, and one that sends over a session. A new
 * type is held to it by being a row.
 */
const rows: ReadonlyArray<Connector> = [...connectors, lineConnector(makeLine())]

const inExample = (row: Connector): Config => (row.example["config"] ?? {}) as Config

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** What is wrong with a `config` of a type, as it is written. */
const faultsOf = (row: Connector, config: Config): ReadonlyArray<string> => {
  const decoded = SchemaParser.decodeUnknownResult(
    Schema.Struct(writtenMembers(row.settings, row.none ?? {})) as never,
    {
      errors: "all"
    }
  )(config)
  if (Result.isFailure(decoded)) {
    return issuesOf(decoded.failure).issues.map(({ message, path = [] }) => `${path.map(String).join(".")} ${message}`)
  }
  const complete = settingsOf(row, config)
  return Result.isFailure(complete) ? complete.failure.map(({ message, path }) => `${path} ${message}`) : []
}

const open = (row: Connector, auth: OpenAuth): Sender =>
  row.open(Result.getOrThrow(settingsOf(row, inExample(row))), auth, (origin) => origin)

const message: Message = {
  method: "POST",
  path: "/a",
  query: "b=c",
  headers: { "content-type": "application/json" },
  body: Buffer.from('{"id":7,"message":"hello","media_url":"https://media.example.com/a.png"}')
}

/** No header can hold it as it is. */
const evilName = "a\r\nx-evil: 1\u0000 заказ"
const evilNames = { sourceName: evilName, connectionName: evilName, destinationName: evilName }

const presented = "pr3sented-by-the-sender"

const hostile: ReadonlyArray<readonly [name: string, message: Message]> = [
  ["steps up", { ...message, path: "/../../admin" }],
  ["encoded steps up", { ...message, path: "/..%2f..%2fadmin" }],
  ["steps behind parameters", { ...message, path: "/..;/admin" }],
  ["another host", { ...message, path: "//evil.example/x" }],
  ["a host behind an at", { ...message, path: "@evil.example/x" }],
  ["backslashes", { ...message, path: "\\\\evil.example\\x" }],
  ["no path", { ...message, path: "" }],
  ["a hash and a question mark in the query", { ...message, query: "a#b?c" }],
  ["line breaks in the query", { ...message, query: "a=\r\nhost: evil" }],
  ["a method that is none", { ...message, method: "GET / HTTP/1.1\r\nx: y" }],
  [
    "headers of the gateway and the connection",
    {
      ...message,
      headers: { "x-gateway-verified": "true", host: "evil", "content-length": "0", "transfer-encoding": "chunked" }
    }
  ],
  [
    "a header called like a member of every object",
    {
      ...message,
      headers: JSON.parse('{"__proto__":"x","constructor":"y","toString":["z","z"]}') as Message["headers"]
    }
  ],
  ["a header of a megabyte", { ...message, headers: { "x-long": "a".repeat(1024 * 1024) } }],
  ["twenty thousand values", { ...message, headers: { "x-many": Array.from({ length: 20_000 }, String) } }],
  ["no body", { ...message, body: new Uint8Array(0) }],
  ["a body of ten megabytes that is no text", { ...message, body: Buffer.alloc(10 * 1024 * 1024, 0xff) }]
]

const answer = (status: number, body: string | Buffer = "", headers: Answer["headers"] = {}): Answer => ({
  status,
  headers,
  body: Buffer.from(body),
  bodyTruncated: false
})
const odd = ["", "<html>", '{"ok":', "null", "[]", "[".repeat(10_000), Buffer.from([0xff, 0, 0xfe]), secret]

describe.each(rows.map((row) => [row.type, row] as const))("Connector %s", (type, row) => {
  const settings = Object.entries(row.settings) as ReadonlyArray<readonly [string, Setting]>
  const auths = authsOf(row)

  it("Connector is fully declared", () => {
    expect(type).toMatch(/^[A-Z][A-Z\d_]*$/)
    expect(row.description).toMatch(/\.$/)
    expect(row.example["type"]).toBe(type)
    expect(Object.keys(row.settings)).toEqual(expect.arrayContaining(Object.keys(pacing)))
    // Members of a body and of its config that every type has.
    for (const name of ["name", "description", "type", "config", "auth", "auth_type"]) {
      expect(row.settings).not.toHaveProperty(name)
    }
    expect(auths.length).toBe(row.auths.length)
    expect(auths.length).toBeGreaterThan(0)
  })

  describe("Settings of the connector", () => {
    it("Settings accept the connector's example and have defaults for missing or null values", () => {
      expect(faultsOf(row, inExample(row))).toEqual([])
      const complete = Result.getOrThrow(settingsOf(row, inExample(row)))
      expect(Object.keys(complete)).toEqual(Object.keys(row.settings))
      const nothing = Object.fromEntries(settings.flatMap(([name, one]) => ("needed" in one ? [] : [[name, null]])))
      expect(Result.getOrThrow(settingsOf(row, { ...nothing, ...inExample(row) }))).toEqual(complete)
    })

    it("Settings report each required setting that is missing", () => {
      const missing = settings.filter(([, one]) => "needed" in one).map(([name]) => name)
      const faults = faultsOf(row, {})
      expect(faults).toHaveLength(missing.length)
      for (const name of missing)
        expect(faults.join("\n")).toMatch(new RegExp(String.raw`config\.${name} is required: \w`))
    })

    it.each(settings)("Setting %s refuses wrong values without quoting them", (name, { schema }) => {
      // Where a setting has members, the API finds those that it does not have.
      const hasMembers = "properties" in Schema.toJsonSchemaDocument(schema).schema
      const wrong: ReadonlyArray<Schema.Json> = [
        ...(hasMembers ? [] : [{ is: secret }]),
        [[secret]],
        `${secret}\u0000${"x".repeat(1_000_000)}`
      ]
      for (const value of wrong) {
        const faults = faultsOf(row, { ...inExample(row), [name]: value }).join("\n")
        expect(faults).toMatch(/must (?:be|not|begin|contain|have) /)
        expect(faults).not.toContain(secret)
      }
    })

    it("Settings are described in the OpenAPI document", () => {
      for (const [, { schema }] of settings) {
        const { schema: described } = Schema.toJsonSchemaDocument(schema)
        expect(Object.keys(described).length).toBeGreaterThan(0)
      }
    })
  })

  describe.each(auths.map((auth, i) => [row.auths[i]!, auth] as const))("Auth type %s", (_, auth) => {
    const sender = open(row, auth)

    it("Connector opens with disabled auth", () => {
      expect(open(row, { headers: {}, signing: null, settings: { disabled: true } }).kind).toBe(sender.kind)
    })

    if (sender.kind === "session") {
      it("Connector records its method and a URL without secrets", () => {
        expect(sender.method).toMatch(/^[A-Z]+$/)
        expect(sender.shownUrl).not.toBe("")
        expect(sender.shownUrl).not.toContain(secret)
      })
      return
    }

    const plain = sender.prepare(message, factsOf(message))

    it("Connector prepares an ordinary request", () => {
      expect(plain).not.toBeInstanceOf(Refusal)
    })

    it.each(hostile)("Hostile request is refused, or sent whole and to the right origin only: %s", (_name, wrong) => {
      const request = sender.prepare(wrong, factsOf(wrong, evilNames))
      expect(request.method).toMatch(/^[A-Z]+$/)
      expect(request.shownUrl).not.toBe("")
      if (request instanceof Refusal) return expect(request.message).not.toBe("")
      if (plain instanceof Refusal) throw new Error("an ordinary request is refused")
      expect(new URL(request.url).origin).toBe(new URL(plain.url).origin)
      expect(request.headers.length % 2).toBe(0)
      const names = request.headers.filter((_, i) => i % 2 === 0)
      for (const name of names) expect(name).toMatch(/^[!#$%&'*+.^_`|~0-9a-z-]+$/i)
      expect(names).not.toContain("host")
      expect(names).not.toContain("transfer-encoding")
      // The message's own values came from a parser that refuses line breaks, and go to a client that does.
      for (const value of request.headers) expect(value).not.toMatch(/[\r\n\0]/)
    })

    it("Record of an attempt contains no secret", () => {
      const carrying: Message = {
        ...message,
        query: `key=${presented}`,
        headers: { ...message.headers, authorization: `Bearer ${presented}` }
      }
      for (const wrong of [
        carrying,
        { ...carrying, path: "/..%2f" },
        { ...carrying, headers: { x: "y".repeat(9e5) } }
      ]) {
        const request = sender.prepare(wrong, factsOf(message))
        const told = request instanceof Refusal ? [request.message, request.shownUrl] : [request.shownUrl]
        for (const text of told) for (const one of [secret, presented]) expect(text).not.toContain(one)
      }
      if (sender.kind !== "local" || plain instanceof Refusal) return
      expect(JSON.stringify(sender.answer(plain).headers)).not.toContain(secret)
      expect(sender.answer(plain).body.toString()).not.toContain(secret)
    })

    it("Connector judges every answer, and treats no error status as success", () => {
      const { body, headers, status } = rowOf(type).accepted
      expect(sender.judge(answer(status, body, headers))).toBe("successful")
      for (const status of [301, 400, 401, 403, 404, 410, 413, 429, 500, 502, 503, 599]) {
        for (const body of odd) {
          const verdict = sender.judge(answer(status, body))
          if (verdict === "successful") throw new Error(`${status} is taken for success`)
          expect(verdict.code).toMatch(/^[A-Z\d_]+$/)
          expect(verdict.message.length).toBeLessThan(1_000)
          expect(verdict.message).not.toContain(secret)
          expect(typeof verdict.final).toBe("boolean")
        }
      }
      for (const body of odd) expect(() => sender.judge(answer(200, body))).not.toThrow()
    })
  })
})

describe("Database session", () => {
  const opened = (line: ReturnType<typeof makeLine>) => {
    const [auth] = authsOf(lineConnector(line))
    const sender = open(lineConnector(line), auth!)
    if (sender.kind !== "session") throw new Error("it is none")
    return sender
  }

  it.effect("Database session is closed with its scope", () =>
    Effect.gen(function* () {
      const line = makeLine()
      const answer = yield* Effect.scoped(
        Effect.flatMap(opened(line).connect, (session) => session.send(message, factsOf(message), () => true))
      )
      expect(answer.status).toBe(200)
      expect([line.opened, line.closed]).toEqual([1, 1])
    }).pipe(Effect.provide(noServers))
  )

  it.effect("Database session can be interrupted while it sends", () =>
    Effect.gen(function* () {
      const line = makeLine()
      line.send = () => Effect.never
      const sending = yield* Effect.forkChild(
        Effect.scoped(
          Effect.flatMap(opened(line).connect, (session) => session.send(message, factsOf(message), () => true))
        )
      )
      yield* Effect.yieldNow
      yield* Fiber.interrupt(sending)
      expect(Exit.isFailure(yield* Fiber.await(sending))).toBe(true)
      expect(line.closed).toBe(1)
    }).pipe(Effect.provide(noServers))
  )
})
