import { Result, type Schema } from "effect"
import { describe, expect, it } from "vitest"
import type { SendCall } from "@tidegate/actions/Call"
import { callOf, providerOf } from "@tidegate/actions/Providers"
import type { AttemptFacts, HttpSender } from "@tidegate/connectors/Connector"
import { compileOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"

const name = (provider_key: string) => ({ provider_key, action_key: "send", version: "1.0.0" })

const facts: AttemptFacts = {
  eventId: "wse_1",
  requestId: "req_1",
  teamId: "tm_1",
  sourceId: "src_1",
  connectionId: "wfl_1",
  destinationId: "wfl_1",
  webhookId: "wse_1",
  attemptNumber: 1,
  trigger: "INITIAL",
  willRetryAfter: null,
  sourceName: "shop",
  connectionName: "flow",
  destinationName: "step",
  verified: true,
  originalIp: null,
  createdAt: 0,
  timestampSeconds: 0,
  orderingKey: null,
  shown: { method: "POST", path: "/", query: "", headers: {} }
}

const credentials = {
  chat_webhook: { mode: "none", values: { url: "https://discord.com/api/webhooks/1234/token-of-the-webhook" } },
  email_api_email: { mode: "email_api_key", values: { api_key: "SG.key-of-the-account" } },
  chat_bot: { mode: "chat_bot_token", values: { bot_token: "xoxb-token-of-the-bot" } },
  messenger_message: { mode: "chat_bot_token", values: { bot_token: "123456:token-of-the-bot" } },
  messaging_sms: { mode: "messaging_auth_token", values: { account_sid: "AC0", auth_token: "token-of-the-account" } },
  spreadsheet: {
    mode: "service_account",
    values: { client_email: "a@example.com", private_key: "key-of-the-account" }
  },
  object_store_s: {
    mode: "object_store_s_access_key",
    values: { access_key_id: "AKIA0000000000000000", secret_access_key: "secret-of-the-store" }
  }
} as const

/** The request that a step's inputs make. */
const sent = (provider: keyof typeof credentials, inputs: Schema.JsonObject) => {
  const call = Result.getOrThrow(callOf(name(provider), inputs, credentials[provider])) as SendCall
  const { headers } = compileOutboundAuth(call.auth)
  const auth = { headers, signing: null, settings: call.auth.auth }
  const sender = call.connector.open(call.settings, auth, (origin) => origin) as HttpSender
  const request = sender.prepare(call.message, facts)
  if (!("body" in request)) throw new Error(request.message)
  return { call, request, text: Buffer.from(request.body).toString() }
}

const failing = (provider: keyof typeof credentials, inputs: Schema.JsonObject) => {
  const call = callOf(name(provider), inputs, credentials[provider])
  return Result.isFailure(call) ? call.failure : null
}

describe("Destination type as an action", () => {
  const tricky = "{{payload}} {{headers.authorization}} {{{ {{ }} {{event_id}}"

  it("Action of a destination type sends its resolved inputs and reads no templates in them", () => {
    const chat = sent("chat_webhook", { content_template: tricky, payload: { secret: 1 } })
    expect(JSON.parse(chat.text)).toMatchObject({ content: tricky })
    const bot = sent("chat_bot", { channel: "C1", text_template: tricky })
    expect(JSON.parse(bot.text)).toMatchObject({ channel: "C1", text: tricky })
    const mail = sent("email_api_email", {
      from: "a@example.com",
      to: ["b@example.com", "c@example.com"],
      subject: tricky,
      html_template: `<b>${tricky}</b>`
    })
    expect(JSON.parse(mail.text)).toMatchObject({
      content: [{ type: "text/html", value: `<b>${tricky}</b>` }],
      subject: tricky
    })
    const sms = sent("messaging_sms", { from: "+15005550006", to: "+15005550007", body_template: tricky })
    expect(new URLSearchParams(sms.text).get("Body")).toBe(tricky)
    const sheet = sent("spreadsheet", {
      spreadsheet_id: "1BxiMVs0XRA5nFMd",
      values: [tricky, 12.5, true, null, { a: 1 }, "=1+1"]
    })
    expect(JSON.parse(sheet.text)).toMatchObject({ values: [[tricky, 12.5, true, "", '{"a":1}', "=1+1"]] })
  })

  it("Action takes JSON directly where the destination's setting is a text of JSON", () => {
    const blocks = [{ type: "section", text: { type: "mrkdwn", text: "{{payload}}" } }]
    for (const blocks_template of [blocks, JSON.stringify(blocks)]) {
      expect(JSON.parse(sent("chat_bot", { channel: "C1", text_template: "x", blocks_template }).text)).toMatchObject({
        blocks
      })
    }
    expect(JSON.parse(sent("messenger_message", { chat_id: -100_123, text_template: "x" }).text)).toMatchObject({
      chat_id: "-100123"
    })
  })

  it("Action of a storage destination sends the payload as its body", () => {
    const store = { region: "eu-central-1", bucket: "archive", key_template: "a/{{b}}.json", include_metadata: false }
    const { request, text } = sent("object_store_s", { ...store, payload: { id: "{{payload}}" } })
    expect(new URL(request.url).pathname).toBe("/a/%7B%7Bb%7D%7D.json")
    expect(JSON.parse(text)).toEqual({ id: "{{payload}}" })
    expect(sent("object_store_s", { ...store, payload: "as it is" }).text).toBe("as it is")
  })

  it("Action lists its secrets and shows none of them in its URL", () => {
    const made = [
      sent("chat_webhook", { content_template: "x" }),
      sent("messenger_message", { chat_id: "1", text_template: "x" })
    ]
    for (const { call, request } of made) {
      expect(call.secrets.length).toBeGreaterThan(0)
      for (const secret of call.secrets) expect(request.shownUrl).not.toContain(secret)
    }
    for (const [provider, { values }] of Object.entries(credentials)) {
      const inputs = providerOf(provider)!.actions[0]!.sample.inputs
      const call = Result.getOrThrow(callOf(name(provider), inputs, credentials[provider as "chat_bot"])) as SendCall
      const secret = Object.entries(values).filter(([key]) => !/account_sid|client_email|access_key_id/.test(key))
      expect(call.secrets).toEqual(expect.arrayContaining(secret.map(([, value]) => value)))
    }
  })

  it("Action refuses what its destination type refuses and names the input", () => {
    expect(failing("email_api_email", { from: "a@example.com", to: "nobody", subject: "x" })).toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringMatching(/^to: /)
    })
    expect(failing("spreadsheet", { spreadsheet_id: "1BxiMVs0XRA5nFMd", values: [] })?.message).toMatch(/^values: /)
    expect(failing("chat_bot", { channel: "C1" })?.message).toMatch(/^text_template: is required/)
    expect(failing("chat_bot", { channel: "C1", text_template: "x", rate_limit: 5 })?.message).toMatch(/^rate_limit/)
  })
})

describe("Size of action inputs", () => {
  it("Action inputs with too many values are refused before they are read", () => {
    const many = Array.from({ length: 1_001 }, () => "a@example.com")
    for (const to of [many, [many], { many }]) {
      expect(failing("email_api_email", { from: "a@example.com", to })?.message).toBe(
        "to: must have at most 1000 values"
      )
    }
    expect(failing("spreadsheet", { spreadsheet_id: "1BxiMVs0XRA5nFMd", values: many })?.message).toMatch(/^values: /)
    const body = Array.from({ length: 100_000 }, () => ({ a: 1 }))
    const request = { provider_key: "http", action_key: "request", version: "1.0.0" }
    const none = { mode: "none", values: {} }
    expect(Result.isSuccess(callOf(request, { url: "https://example.com", body }, none))).toBe(true)
    const headers = Object.fromEntries(many.map((value, at) => [`x-${at}`, value]))
    expect(callOf(request, { url: "https://example.com", headers }, none)).toMatchObject({
      failure: { code: "INPUT_INVALID", message: "headers: must have at most 1000 values" }
    })
  })
})

describe("Action credentials", () => {
  const judge = (provider: string, mode: string, values: Schema.JsonObject) =>
    providerOf(provider)!
      .auth.find(({ key }) => key === mode)!
      .judge(values)

  it("Action credentials must have every required field and no other", () => {
    expect(Result.isSuccess(judge("chat_bot", "chat_bot_token", { bot_token: "xoxb-1" }))).toBe(true)
    const wrong = [
      ["chat_bot", "chat_bot_token", {}, "bot_token"],
      ["chat_bot", "chat_bot_token", { bot_token: "xoxb-1", other: "x" }, "other"],
      ["chat_webhook", "none", {}, "url"],
      ["chat_webhook", "none", { url: "nowhere" }, "url"],
      ["http", "basic", { username: "ada" }, "password"],
      ["http", "bearer", { token: "two\nlines" }, "token"],
      ["http", "none", { token: "x" }, "token"]
    ] as const
    for (const [provider, mode, values, path] of wrong) {
      const judged = judge(provider, mode, values)
      expect([provider, Result.isFailure(judged) && judged.failure[0]?.path]).toEqual([provider, path])
    }
  })
})
