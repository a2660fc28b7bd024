import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { acceptedReply, acknowledgementOf, rejectedReply, type ReplySettings } from "../src/Reply.ts"
import { fail } from "@tidegate/model/GatewayError"
import { compileCustomResponse } from "@tidegate/rules/CustomResponse"
import { requestInput } from "@tidegate/rules/RequestInput"

const nothing: ReplySettings = { customResponse: null, acknowledgement: acknowledgementOf("WEBHOOK", false) }

const reply = (settings: Partial<ReplySettings>, body = "{}") =>
  acceptedReply({ ...nothing, ...settings }, "req_1", () =>
    requestInput({ method: "POST", path: "/orders", query: "mode=test", headers: {} }, Buffer.from(body))
  )

describe("Answer to an accepted request", () => {
  it("Answer to an accepted request says that it is queued", () => {
    const { body, contentType, status } = reply({})
    expect([status, contentType]).toEqual([200, "application/json; charset=utf-8"])
    expect(JSON.parse(body)).toEqual({ ok: true, queued: true, transport: "queue", request_id: "req_1" })
  })

  const customResponse = Result.getOrThrow(
    compileCustomResponse({
      content_type: "json",
      rules: [
        {
          match: { query: { mode: "test" }, body: { id: { $gt: 1 } } },
          response: { status: 202, body: '{"id":"{{body.id}}","request":"{{request.id}}"}', headers: { "x-mock": "1" } }
        }
      ]
    })
  )

  it("Answer to an accepted request is the source's custom response if a rule matches", () => {
    expect(reply({ customResponse }, '{"id":2}')).toMatchObject({
      status: 202,
      contentType: "application/json; charset=utf-8",
      headers: { "x-mock": "1" },
      body: '{"id":"2","request":"req_1"}'
    })
    expect(JSON.parse(reply({ customResponse }, '{"id":1}').body)).toMatchObject({ queued: true })
  })

  const interactions: ReadonlyArray<readonly [type: unknown, ephemeral: boolean, answer: unknown]> = [
    [2, false, { type: 5 }],
    [2, true, { type: 5, data: { flags: 64 } }],
    [3, true, { type: 5, data: { flags: 64 } }],
    [4, true, { type: 8, data: { choices: [] } }],
    ["4", false, { type: 5 }]
  ]
  for (const [type, ephemeral, answer] of interactions) {
    it(`Answer to a Discord interaction of type ${String(type)} is deferred${ephemeral ? " for one user" : ""}`, () => {
      expect(
        JSON.parse(reply({ acknowledgement: acknowledgementOf("DISCORD", ephemeral) }, JSON.stringify({ type })).body)
      ).toEqual(answer)
    })
  }

  it("Answer to an accepted request is empty if the sender expects that", () => {
    expect(reply({ acknowledgement: acknowledgementOf("DISCORD_EVENTS", false) })).toMatchObject({
      status: 204,
      body: ""
    })
  })

  const typed = (type: string, contentType: string, body = "a=1") =>
    acceptedReply({ ...nothing, acknowledgement: acknowledgementOf(type, false) }, "req_1", () =>
      requestInput(
        { method: "POST", path: "/", query: "", headers: { "content-type": contentType } },
        Buffer.from(body)
      )
    )
  const form = "application/x-www-form-urlencoded; charset=UTF-8"
  const queued = { status: 200, contentType: "application/json; charset=utf-8" }
  const empty = { status: 200, contentType: null, body: "" }
  const twiml = {
    status: 200,
    contentType: "text/xml; charset=utf-8",
    body: '<?xml version="1.0" encoding="UTF-8"?><Response/>'
  }
  const answers: ReadonlyArray<readonly [type: string, contentType: string, answer: object]> = [
    ["XERO", "application/json", empty],
    ["XERO", form, empty],
    ["TWILIO", form, twiml],
    ["TWILIO", "", twiml],
    ["TWILIO", "application/json", queued],
    ["SLACK", form, empty],
    ["SLACK", "application/json", queued],
    ["MICROSOFT_TEAMS", "application/json", { ...queued, body: '{"type":"message","text":"Received."}' }],
    ["GITHUB", form, queued],
    ["WEBHOOK", form, queued]
  ]
  for (const [type, contentType, answer] of answers) {
    it(`Answer to an accepted request has the form that ${type} expects for ${contentType || "a request without a body"}`, () => {
      expect(typed(type, contentType)).toMatchObject(answer)
    })
  }

  it("Custom response of a source replaces the answer of its type", () => {
    const customResponse = Result.getOrThrow(compileCustomResponse({ content_type: "text", body: "mine" }))
    for (const type of ["XERO", "TWILIO", "SLACK", "MICROSOFT_TEAMS", "DISCORD", "DISCORD_EVENTS"]) {
      const acknowledgement = acknowledgementOf(type, false)
      expect(reply({ customResponse, acknowledgement })).toMatchObject({ status: 200, body: "mine" })
    }
  })

  it("Answer to a refused request has no body if the source type expects none", () => {
    const refusal = fail("SOURCE_AUTH_FAILED", "the request could not be verified")
    const refused = (type: string) =>
      rejectedReply({ ...nothing, acknowledgement: acknowledgementOf(type, false) }, refusal, {})
    expect(refused("XERO")).toEqual({ status: 401, contentType: null, headers: {}, body: "" })
    for (const type of ["TWILIO", "DISCORD_EVENTS", "WEBHOOK"]) {
      expect(JSON.parse(refused(type).body)).toMatchObject({ status: 401, code: "SOURCE_AUTH_FAILED" })
    }
  })

  it("Answer to a Discord body that is not an interaction is also deferred", () => {
    expect(JSON.parse(reply({ acknowledgement: acknowledgementOf("DISCORD", false) }, "no JSON").body)).toEqual({
      type: 5
    })
  })
})
