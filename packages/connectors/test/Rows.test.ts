import { describe, expect, it } from "@effect/vitest"
import { Result, Schema, SchemaParser } from "effect"
import { isUtf8 } from "node:buffer"
import { type Answer, type Connector, Refusal, type Sender } from "@tidegate/connectors/Connector"
import { connectorOf, connectors, settingsOf } from "@tidegate/connectors/Connectors"
import type { Config, Setting } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { outboundAuthTypes } from "@tidegate/outbound-auth/OutboundAuth"
import { factsOf } from "./Facts.ts"
import { openAuthOf, secret } from "./rows/Auths.ts"
import type { Answered, ConformanceRow, Failing } from "./rows/Row.ts"
import { rowOf, rows } from "./rows/Rows.ts"

/** What every type makes of answers and of hostile payloads, and which of its settings lead somewhere: by its conformance row. */

const exampleOf = (row: Connector): Config => (row.example["config"] ?? {}) as Config

/** With these settings beside those of its example. */
const open = (type: string, config: Config = {}): Sender => {
  const row = connectorOf(type)!
  const settings = Result.getOrThrow(settingsOf(row, { ...exampleOf(row), ...config }))
  return row.open(settings, openAuthOf(row.auths[0]!), (origin) => origin)
}

const answerOf = ({ body = "", headers = {}, status }: Answered): Answer => ({
  status,
  headers,
  body: Buffer.from(body),
  bodyTruncated: false
})

it("Every connector type has a row in the test table, and every row has a type", () => {
  expect(rows.map(({ type }) => type).toSorted()).toEqual(connectors.map(({ type }) => type).toSorted())
})

describe.each(rows.filter(({ failures }) => failures !== null).map((row) => [row.type, row] as const))(
  "Answer to %s",
  (type, { accepted, failures }) => {
    const sender = open(type)
    if (sender.kind === "session") throw new Error("a session has no answers of HTTP to judge")
    const { judge } = sender
    const classes = Object.entries(failures ?? {}) as ReadonlyArray<readonly [string, ReadonlyArray<Failing>]>

    it("Successful answer is judged successful", () => {
      expect(judge(answerOf(accepted))).toBe("successful")
    })

    it.each(classes)("Failed answer has its error code and retry decision and reveals no secret: %s", (_, failing) => {
      for (const { code, final, retryAfter, ...answered } of failing) {
        // An answer may repeat what it was sent.
        const repeating = { ...answered, headers: { ...answered.headers, "x-sent": secret } }
        const verdict = judge(answerOf(repeating))
        expect([answered, verdict]).toMatchObject([answered, { code, final }])
        if (verdict === "successful") return
        expect(verdict.retryAfter).toBe(retryAfter)
        expect(verdict.message).toContain(answered.status < 300 ? "API" : String(answered.status))
        expect(verdict.message).not.toContain(secret)
      }
    })

    it("Answer of another server is no success and no permanent failure", () => {
      if (["HTTP", "CLI", "MOCK_API"].includes(type)) return
      const page = "<!DOCTYPE html><html><body>Please sign in</body></html>"
      for (const status of [200, 202, 204]) {
        for (const body of [page, "", "{}", "[]", "ok", '"ok"']) {
          const answered = { status, headers: { "content-type": "text/html; charset=utf-8" }, body }
          // Of SendGrid's success the status is all there is.
          if (type === "EMAIL_API_EMAIL" && status === 202) continue
          const verdict = judge(answerOf(answered))
          expect([answered, verdict]).toMatchObject([answered, { code: "BAD_RESPONSE", final: false }])
        }
        const cut = { ...answerOf({ status, body: page }), bodyTruncated: true }
        if (type !== "EMAIL_API_EMAIL" || status !== 202) expect(judge(cut)).not.toBe("successful")
      }
      expect(judge(answerOf({ status: 400, headers: { "content-type": "text/html" }, body: page }))).toMatchObject({
        final: false
      })
    })

    it("Cut or malformed answer is a success at most by its status", () => {
      for (const body of ["", "<html>", "null", "[]", "{", "\u0000", "[".repeat(65_536)]) {
        const cut = { ...answerOf({ ...accepted, body }), bodyTruncated: true }
        expect(() => judge(cut)).not.toThrow()
        expect(judge({ ...cut, status: 500 })).not.toBe("successful")
      }
    })
  }
)

const takes = ({ schema }: Setting, value: unknown): boolean =>
  Result.isSuccess(SchemaParser.decodeUnknownResult(schema as never)(value))

/** The settings of a type that hold templates: as one text, or as texts in a list. */
const templatesOf = (row: Connector): ReadonlyArray<readonly [name: string, written: (text: string) => Schema.Json]> =>
  Object.entries(row.settings).flatMap(([name, setting]) => {
    const isTemplate = (written: (text: string) => Schema.Json) =>
      takes(setting, written("{{payload.a}}")) && !takes(setting, written("{{no_such}}"))
    return [(text: string): Schema.Json => text, (text: string): Schema.Json => [text]]
      .filter(isTemplate)
      .slice(0, 1)
      .map((written) => [name, written] as const)
  })

const hostile: ReadonlyArray<readonly [what: string, value: unknown]> = [
  ["nothing", undefined],
  ["null", null],
  ["an empty text", ""],
  ["white space", " \r\n\t "],
  ["a line break and a header", "a\r\nx-evil: 1\r\n\r\n"],
  ["a NUL", "a\u0000b"],
  ["the end of a JSON text", '"}],"evil":[{"a":"'],
  ["a tag", "<script>alert(1)</script><!channel>"],
  ["a template", "{{payload.value}}{{headers.x}}"],
  ["half a character", "\ud83d"],
  ["a step up", "../../../../etc/passwd"],
  ["another host", "https://evil.example/@x"],
  ["a member of every object", { __proto__: { a: 1 }, constructor: { prototype: 1 } }],
  ["a list", Array.from({ length: 1_000 }, (_, i) => i)],
  ["two hundred kilobytes", "ü".repeat(100_000)],
  ["more than a template may make", "x".repeat(300_000)],
  ["levels", JSON.parse(`${'{"a":'.repeat(200)}1${"}".repeat(200)}`)]
]

const calling = connectors.filter(
  ({ type }) => open(type).kind === "http" && templatesOf(connectorOf(type)!).length > 0
)

/** More than any API takes, and less than a process would notice. */
const maxBytes = 2 * 1024 * 1024

describe.each(calling.map((row) => [row.type, row] as const))("Template setting of %s", (type, row) => {
  const plain = Buffer.from('{"value":"plain","id":1,"message":"m","media_url":"https://media.example.com/a.png"}')
  const settings = templatesOf(row)

  it("Every template setting is declared as a template", () => {
    const named = Object.keys(row.settings).filter((name) => name.endsWith("_template"))
    expect(settings.map(([name]) => name)).toEqual(expect.arrayContaining(named))
  })

  it.each(settings)(
    "Template setting %s yields one complete call or a refusal, whatever value it is filled with",
    (name, written) => {
      const sender = open(type, { ...rowOf(type).beside?.[name], [name]: written("{{payload.value}}") })
      if (sender.kind !== "http") throw new Error("it does not call")
      const ordinary = open(type) as typeof sender
      const message = (body: Buffer): Message => ({ method: "POST", path: "/", query: "", headers: {}, body })
      const expected = ordinary.prepare(message(plain), factsOf(message(plain)))
      if (expected instanceof Refusal) throw new Error(expected.message)
      for (const [what, value] of hostile) {
        const event = message(Buffer.from(JSON.stringify({ ...JSON.parse(plain.toString()), value })))
        const request = sender.prepare(event, factsOf(event))
        if (request instanceof Refusal) {
          expect([what, request.code]).toEqual([what, "TEMPLATE_ERROR"])
          expect(request.message).toMatch(/config\.|template/)
          if (typeof value === "string" && value.trim().length > 1) expect(request.message).not.toContain(value)
          continue
        }
        expect(new URL(request.url).origin).toBe(new URL(expected.url).origin)
        expect(request.body.byteLength).toBeLessThan(maxBytes)
        const body = Buffer.from(request.body).toString()
        expect(isUtf8(request.body)).toBe(true)
        // What reads JSON strictly refuses half of a character; a type that sends the payload keeps what came.
        const half = String.raw`\ud83d`
        const untouched = ordinary.prepare(event, factsOf(event))
        if (untouched instanceof Refusal || !Buffer.from(untouched.body).toString().includes(half)) {
          expect(body).not.toContain(half)
        }
        const names = request.headers.filter((_, i) => i % 2 === 0)
        const type = request.headers[2 * names.findIndex((name) => name.toLowerCase() === "content-type") + 1] ?? ""
        if (type.startsWith("application/json")) expect(() => JSON.parse(body)).not.toThrow()
        for (const text of request.headers) expect(text).not.toMatch(/[\r\n\0]/)
        expect(names).toEqual(expected.headers.filter((_, i) => i % 2 === 0))
      }
    }
  )

  it.each(settings)("Template setting %s is limited in length and refuses invalid templates", (name, written) => {
    const setting = row.settings[name]!
    expect(takes(setting, written("x".repeat(70_000)))).toBe(false)
    expect(takes(setting, written("{{payload.a"))).toBe(false)
    expect(takes(setting, written("{{process.env}}"))).toBe(false)
  })
})

/** Names of what could lead somewhere. */
const addressed = /url|uri|endpoint|host|server|base|origin|address|proxy/i
/** Ends with what it is no address of. */
const named = /^(?:database|.*_database)$/

const readsLikeAddress = (name: string, schema: Schema.Top): boolean =>
  (addressed.test(name) && !named.test(name)) ||
  /"format":"uri"/.test(JSON.stringify(Schema.toJsonSchemaDocument(schema)))

/** Every setting of a type and of its ways to authenticate that could be an address. */
const addressesOf = (row: Connector): ReadonlyArray<string> => [
  ...Object.entries(row.settings).flatMap(([name, { schema }]) => (readsLikeAddress(name, schema) ? [name] : [])),
  ...outboundAuthTypes
    .filter(({ type }) => row.auths.includes(type))
    .flatMap(({ settings }) =>
      Object.entries(settings).flatMap(([name, schema]) =>
        readsLikeAddress(name, schema as Schema.Top) ? [`auth.${name}`] : []
      )
    )
]

describe("Address setting", () => {
  it.each(connectors.map((row) => [row.type, row] as const))(
    "Every address setting of %s is tested with forbidden addresses or listed as unreachable",
    (type, row) => {
      const { addresses, notReached = {} }: ConformanceRow = rowOf(type)
      const known = [...Object.keys(addresses), ...Object.keys(notReached)]
      expect(addressesOf(row).filter((name) => !known.includes(name))).toEqual([])
      for (const name of known) {
        const [, ofAuth] = name.split("auth.")
        if (ofAuth === undefined) expect(Object.keys(row.settings)).toContain(name)
      }
    }
  )

  it("Address setting is recognized by its name and by its schema", () => {
    expect(readsLikeAddress("token_url", Schema.String)).toBe(true)
    expect(readsLikeAddress("where", connectorOf("HTTP")!.settings["url"]!.schema)).toBe(true)
    expect(readsLikeAddress("subject", Schema.String)).toBe(false)
  })
})
