import { describe, expect, it } from "@effect/vitest"
import { Schema, SchemaParser } from "effect"
import type { Answer } from "@tidegate/connectors/Connector"
import { connectorOf, shownSettings } from "@tidegate/connectors/Connectors"
import { type Config, writtenMembers } from "@tidegate/connectors/Settings"
import { event, opened, refusalOf, sent } from "./Opened.ts"

const spreadsheet_id = "1BxiMVs0XRA5nFMd"
const sheet = (config: Config = {}) => opened("SPREADSHEET", { spreadsheet_id, ...config })
const row = (config: Config, payload: unknown): ReadonlyArray<unknown> => {
  const { values } = JSON.parse(sent(sheet(config), event(payload)).text) as { values: ReadonlyArray<[]> }
  expect(values).toHaveLength(1)
  return values[0]!
}

const takes = (config: Config): boolean => {
  const { settings } = connectorOf("SPREADSHEET")!
  const decoded = SchemaParser.decodeUnknownResult(Schema.Struct(writtenMembers(settings, {})) as never)(config)
  return decoded._tag === "Success"
}

const answer = (status: number, body: unknown, headers: Answer["headers"] = {}): Answer => ({
  status,
  headers,
  body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
  bodyTruncated: false
})

describe("SPREADSHEET destination", () => {
  it("SPREADSHEET destination appends a row with the payload and the event's ids and time", () => {
    const { headers, method, shownUrl, text, url } = sent(sheet(), event({ a: 1 }))
    expect([method, shownUrl]).toEqual(["POST", url])
    expect(url).toBe(
      `https://stand-in-of-sheets.googleapis.com/v4/spreadsheets/${spreadsheet_id}/values/` +
        "'Sheet1'!A1:append?valueInputOption=RAW&insertDataOption=INSERT_ROWS"
    )
    expect(headers).toMatchObject({ authorization: "Bearer t0ken-of-an-account" })
    expect(JSON.parse(text)).toEqual({
      majorDimension: "ROWS",
      values: [["evt_1", "req_1", "src_1", "con_1", "2026-01-02T00:00:00.000Z", '{"a":1}']]
    })
    expect(row({ include_metadata: false }, "no JSON")).toEqual(["no JSON"])
  })

  it("SPREADSHEET destination fills its columns by paths and templates and keeps numbers and booleans", () => {
    const columns = [
      "event_id",
      "order.id",
      "payload.order.total",
      "order.paid",
      "order.items[1].sku",
      "order",
      "none",
      "headers.x-tenant",
      "query.a[1]",
      "{{payload.order.id}}/{{payload.order.total}}",
      "payload.event_id"
    ]
    const payload = { event_id: "theirs", order: { id: "7", total: 9.5, paid: true, items: [{}, { sku: "b" }] } }
    expect(row({ columns }, payload)).toEqual([
      "evt_1",
      "7",
      9.5,
      true,
      "b",
      JSON.stringify(payload.order),
      "",
      "acme",
      "2",
      "7/9.5",
      "theirs"
    ])
    expect(row({ columns: ["[1].a"] }, [{}, { a: 1 }])).toEqual([1])
  })

  it.each([
    ["Orders 2026", "'Orders%202026'!A1"],
    ["It's!A1:B2", "'It''s!A1%3AB2'!A1"],
    ["a/../b?c#d", "'a%2F..%2Fb%3Fc%23d'!A1"],
    ["Заказы", `'${encodeURIComponent("Заказы")}'!A1`]
  ])("SPREADSHEET destination quotes and encodes the sheet name %s in its range", (sheet_name, range) => {
    const { url } = sent(sheet({ sheet_name }), event({}))
    expect(url).toContain(`/values/${range}:append?`)
    expect(new URL(url).pathname.split("/")).toHaveLength(6)
  })

  it("SPREADSHEET destination shows its range, which may be written back but not changed", () => {
    const { none, settings } = connectorOf("SPREADSHEET")!
    const shown = shownSettings("SPREADSHEET", { spreadsheet_id, sheet_name: "It's" })
    expect(shown).toMatchObject({ sheet_name: "It's", range: "'It''s'!A1" })
    const takes = (config: Config): boolean =>
      SchemaParser.decodeUnknownResult(Schema.Struct(writtenMembers(settings, none!)) as never)(config)._tag ===
      "Success"
    expect([takes(shown), takes({ spreadsheet_id, range: "A1:B2" }), takes({ spreadsheet_id, range: null })]).toEqual([
      true,
      false,
      true
    ])
  })

  it.each([
    ["=1+2", "'=1+2"],
    ["  =IMPORTXML(A1)", "'  =IMPORTXML(A1)"],
    ["\t=A1", "'\t=A1"],
    ["+A1", "'+A1"],
    ["-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["＝A1", "'＝A1"],
    ["-5", "-5"],
    ["+1,200.50 %", "+1,200.50 %"],
    ["2026-01-02", "2026-01-02"],
    ["a=b", "a=b"]
  ])("SPREADSHEET destination never writes the payload's text %j as a formula", (value, cell) => {
    expect(row({ columns: ["v", "{{payload.v}}"], value_input_option: "USER_ENTERED" }, { v: value })).toEqual([
      cell,
      cell
    ])
    // Texts are stored as they are, which is none of a formula either.
    expect(row({ columns: ["v"] }, { v: value })).toEqual([value])
  })

  it("SPREADSHEET destination limits a cell and a row to what the API takes", () => {
    const [cell] = row({ columns: ["v"] }, { v: "x".repeat(60_000) })
    expect(String(cell)).toHaveLength(49_999)
    expect(String(cell).endsWith("…")).toBe(true)
    const columns = Array<string>(11).fill("v")
    expect(refusalOf(sheet({ columns }), event({ v: "x".repeat(60_000) })).message).toBe(
      "config.columns make more than 500000 characters of this event"
    )
  })

  it("SPREADSHEET destination refuses ambiguous or invalid settings", () => {
    expect(takes({ spreadsheet_id })).toBe(true)
    for (const wrong of [
      "",
      "short",
      "a/b/c/d/e/f/g",
      "https://docs.google.com/spreadsheets/d/1BxiMVs0XRA5nFMd/edit"
    ]) {
      expect(takes({ spreadsheet_id: wrong })).toBe(false)
    }
    for (const columns of [
      ["a}} {{"],
      ["{{payload.a"],
      ["a{b"],
      ["a.b}"],
      [""],
      ["{{secrets.a}}"],
      Array(201).fill("a")
    ]) {
      expect(takes({ spreadsheet_id, columns: columns as Array<string> })).toBe(false)
    }
    for (const sheet_name of ["", "a\nb", "\ud800", "x".repeat(101)]) {
      expect(takes({ spreadsheet_id, sheet_name })).toBe(false)
    }
    expect(takes({ spreadsheet_id, value_input_option: "FORMULA" })).toBe(false)
  })

  const limited = (details: ReadonlyArray<unknown>, message = "Quota exceeded") => ({
    error: { code: 429, message, status: "RESOURCE_EXHAUSTED", details }
  })

  it.each([
    [200, { spreadsheetId: spreadsheet_id, updates: { updatedRows: 1, updatedCells: 6 } }, "successful"],
    [200, { spreadsheetId: spreadsheet_id, tableRange: "Sheet1!A1:B2" }, ["BAD_RESPONSE", false]],
    [200, { updates: { updatedRows: 0 } }, ["BAD_RESPONSE", false]],
    [200, "<html>", ["BAD_RESPONSE", false]],
    [
      400,
      { error: { code: 400, message: "Unable to parse range", status: "INVALID_ARGUMENT" } },
      ["BAD_RESPONSE", true]
    ],
    [401, { error: { code: 401, status: "UNAUTHENTICATED" } }, ["AUTH_REJECTED", false]],
    [403, { error: { code: 403, status: "PERMISSION_DENIED" } }, ["AUTH_REJECTED", false]],
    [403, { error: { code: 403, errors: [{ reason: "userRateLimitExceeded" }] } }, ["BAD_RESPONSE", false]],
    [404, { error: { code: 404, status: "NOT_FOUND" } }, ["BAD_RESPONSE", true]],
    [429, limited([]), ["BAD_RESPONSE", false]],
    [503, { error: { code: 503, status: "UNAVAILABLE" } }, ["BAD_RESPONSE", false]]
  ])("SPREADSHEET destination judges the answer %i %j as %j", (status, body, expected) => {
    const verdict = sheet().judge(answer(status, body))
    expect(verdict === "successful" ? verdict : [verdict.code, verdict.final]).toEqual(expected)
  })

  it("SPREADSHEET destination waits for the time that the body of a 429 names, in either form", () => {
    const info = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "32.5s" }
    expect(sheet().judge(answer(429, limited([{ reason: "RATE_LIMIT_EXCEEDED" }, info])))).toEqual({
      code: "BAD_RESPONSE",
      message: "HTTP 429 from the API (RESOURCE_EXHAUSTED)",
      final: false,
      retryAfter: 33
    })
    const message = "User-rate limit exceeded.  Retry after 2026-01-02T00:01:30.250Z"
    const date = "Fri, 02 Jan 2026 00:00:00 GMT"
    expect(sheet().judge(answer(429, limited([], message), { date }))).toMatchObject({ retryAfter: 91 })
    for (const odd of [
      limited([{ retryDelay: "-1s" }]),
      limited([{ retryDelay: "9".repeat(40) }]),
      limited([], message)
    ]) {
      expect(sheet().judge(answer(429, odd))).not.toHaveProperty("retryAfter")
    }
  })
})
