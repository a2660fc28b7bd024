import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { type Answer, type HttpSender, Refusal } from "@tidegate/connectors/Connector"
import { connectorOf, settingsOf } from "@tidegate/connectors/Connectors"
import { secretsIn } from "@tidegate/connectors/SecretSettings"
import type { Config } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { Echoes } from "@tidegate/redaction/Echoes"
import { compileOutboundAuth, validateOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import { factsOf } from "./Facts.ts"

/** What the types that call somebody's API send, byte for byte, and what they make of its answers. */

interface Written {
  readonly auth?: { readonly auth_type: string; readonly auth: Readonly<Record<string, string>> }
  readonly config: Config
}

const open = (type: string, { auth, config }: Written): HttpSender => {
  const row = connectorOf(type)!
  const checked = Result.getOrThrow(
    validateOutboundAuth(auth?.auth_type ?? null, auth?.auth ?? {}, row.auths.concat("NO_AUTH"))
  )
  const { headers } = compileOutboundAuth(checked)
  const origins = (origin: string) => origin.replace("https://", "https://stand-in-of-")
  const sender = row.open(
    Result.getOrThrow(settingsOf(row, config)),
    { headers, signing: null, settings: checked.auth },
    origins
  )
  if (sender.kind !== "http") throw new Error("it does not send by HTTP")
  return sender
}

const faultsOf = (type: string, config: Config): ReadonlyArray<string> =>
  Result.match(settingsOf(connectorOf(type)!, config), {
    onFailure: (faults) => faults.map(({ message, path }) => `${path} ${message}`),
    onSuccess: () => []
  })

const event = (payload: unknown, rest: Partial<Message> = {}): Message => ({
  method: "POST",
  path: "/in",
  query: "a=1&a=2",
  headers: { "content-type": "application/json", "x-tenant": "acme" },
  body: Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload)),
  ...rest
})

const sent = (sender: HttpSender, message: Message) => {
  const request = sender.prepare(message, factsOf(message, { createdAt: Date.UTC(2026, 0, 2) }))
  if (request instanceof Refusal) throw new Error(`${request.code}: ${request.message}`)
  const headers = Object.fromEntries(
    request.headers.flatMap((name, i) => (i % 2 === 0 ? [[name, request.headers[i + 1]!]] : []))
  )
  return { ...request, headers, text: Buffer.from(request.body).toString() }
}

const refusalOf = (sender: HttpSender, message: Message): Refusal => {
  const request = sender.prepare(message, factsOf(message))
  if (!(request instanceof Refusal)) throw new Error("it is sent")
  return request
}

const answer = (status: number, body: unknown = "", headers: Answer["headers"] = {}): Answer => ({
  status,
  headers,
  body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
  bodyTruncated: false
})

describe("CHAT_BOT destination", () => {
  const auth = { auth_type: "CHAT_BOT_TOKEN", auth: { bot_token: "xoxb-1" } }
  const bot = (config: Config) =>
    open("CHAT_BOT", { auth, config: { channel: "C1", text_template: "{{payload.text}}", ...config } })

  it("CHAT_BOT destination posts a message as its bot", () => {
    const { headers, shownUrl, text, url } = sent(bot({}), event({ text: 'a "b" <c>' }))
    expect([url, shownUrl]).toEqual(Array(2).fill("https://stand-in-of-slack.com/api/chat.postMessage"))
    expect(headers).toEqual({
      "user-agent": "event-gateway/1",
      "content-type": "application/json; charset=utf-8",
      authorization: "Bearer xoxb-1"
    })
    // Nobody is notified, and no link hidden, by what a payload holds.
    expect(JSON.parse(text)).toEqual({ channel: "C1", text: 'a "b" &lt;c&gt;' })
  })

  it("CHAT_BOT destination sends blocks that stay valid JSON for any payload", () => {
    const section = { type: "section", text: { type: "mrkdwn", text: "{{payload.text}}" } }
    for (const layout of [[section], { blocks: [section] }]) {
      const { text } = sent(bot({ blocks_template: JSON.stringify(layout) }), event({ text: '"}],"x":"\n' }))
      expect(JSON.parse(text).blocks).toEqual([
        { type: "section", text: { type: "mrkdwn", text: '"}],"x":"\n', verbatim: true } }
      ])
    }
  })

  it.each([
    [{ channel: "{{payload.none}}" }, "config.channel makes an empty text of this event"],
    [{ text_template: " {{payload.none}} " }, "config.text_template makes an empty text of this event"],
    [{ blocks_template: "[{{payload.text}}" }, "config.blocks_template does not make JSON of this event"],
    [
      { blocks_template: '"{{payload.text}}"' },
      "config.blocks_template makes neither a list of blocks nor an object with one"
    ],
    [{ blocks_template: `[${Array(51).fill("{}").join()}]` }, "config.blocks_template makes more than 50 blocks"]
  ])("CHAT_BOT destination refuses an event for the config %j without quoting it", (config, message) => {
    const refusal = refusalOf(bot(config), event({ text: "secret of the event" }))
    expect([refusal.code, refusal.message]).toEqual(["TEMPLATE_ERROR", message])
  })

  it.each([
    [200, { ok: true, ts: "1" }, "successful"],
    [200, { ok: false, error: "channel_not_found" }, ["BAD_RESPONSE", true]],
    [200, { ok: false, error: "ratelimited" }, ["BAD_RESPONSE", false]],
    [200, { ok: false, error: "internal_error" }, ["BAD_RESPONSE", false]],
    [200, { ok: false, error: "token_revoked" }, ["AUTH_REJECTED", false]],
    [200, { ok: false, error: "rate_limited" }, ["BAD_RESPONSE", false]],
    [200, "<html>", ["BAD_RESPONSE", false]],
    [200, { ok: "true" }, ["BAD_RESPONSE", false]],
    [429, "", ["BAD_RESPONSE", false]],
    [503, "", ["BAD_RESPONSE", false]]
  ])("CHAT_BOT destination judges the answer %i %j as %j", (status, body, expected) => {
    const verdict = bot({}).judge(answer(status, body))
    expect(verdict === "successful" ? verdict : [verdict.code, verdict.final]).toEqual(expected)
  })

  it("CHAT_BOT destination recognizes success in an answer that was cut", () => {
    const long = { ...answer(200, `{"ok":true,"message":{"text":"${"x".repeat(70_000)}`), bodyTruncated: true }
    expect(bot({}).judge(long)).toBe("successful")
    expect(bot({}).judge({ ...long, body: Buffer.from('{"ok":false,') })).not.toBe("successful")
  })
})

describe("Event body of more than a megabyte", () => {
  const auth = { auth_type: "CHAT_BOT_TOKEN", auth: { bot_token: "xoxb-1" } }
  const bot = (text_template: string) => open("CHAT_BOT", { auth, config: { channel: "C1", text_template } })
  const long = "x".repeat(2 * 1024 * 1024)
  const large = (payload: object) => event({ ...payload, long })

  it("Members of a large event body can be used in templates", () => {
    const message = large({ id: 7, message: "hello", items: [{ sku: "a" }, { sku: "b", n: [1] }] })
    const template = "{{payload.id}} {{message}} {{payload.items[1].sku}} {{payload.items[1]}} [{{payload.none}}]"
    expect(JSON.parse(sent(bot(template), message).text).text).toBe('7 hello b {"sku":"b","n":[1]} []')
  })

  it.each(["{{payload}}", "{{payload.long}}"])("Template %s of a large event body makes too much text", (template) => {
    expect(refusalOf(bot(template), large({})).message).toBe("a template makes more text than it may")
  })

  it("Large event body that is not JSON has no members for templates and is refused as a whole", () => {
    expect(refusalOf(bot("{{payload}}"), event(long)).code).toBe("TEMPLATE_ERROR")
    expect(JSON.parse(sent(bot("a{{payload.id}}{{message}}"), event(`{"id":7,${long}`)).text).text).toBe("a")
  })
})

describe("CHAT_WEBHOOK destination", () => {
  const url = "https://chat.example.com/api/webhooks/1/t0ken-of-the-webhook?thread_id=5"
  const webhook = (config: Config = {}) => open("CHAT_WEBHOOK", { config: { url, ...config } })

  it("CHAT_WEBHOOK destination posts the event and allows no mentions by default", () => {
    const { headers, shownUrl, text, url } = sent(webhook(), event({ a: "@everyone" }))
    expect(url).toBe("https://chat.example.com/api/webhooks/1/t0ken-of-the-webhook?thread_id=5&wait=true")
    expect(shownUrl).toBe("https://chat.example.com/api/webhooks/1/****hook")
    expect(headers).not.toHaveProperty("authorization")
    expect(JSON.parse(text)).toEqual({ content: 'Event evt_1\n{"a":"@everyone"}', allowed_mentions: { parse: [] } })
  })

  it("CHAT_WEBHOOK destination sends a name, a picture, embeds and allowed mentions", () => {
    const { text } = sent(
      webhook({
        username: "{{payload.who}}",
        avatar_url: "https://example.com/{{payload.who}}.png",
        embeds: '{"title":"{{payload.who}}"}',
        allowed_mentions: ["users"]
      }),
      event({ who: "ada" })
    )
    expect(JSON.parse(text)).toMatchObject({
      username: "ada",
      avatar_url: "https://example.com/ada.png",
      embeds: [{ title: "ada" }],
      allowed_mentions: { parse: ["users"] }
    })
  })

  it("CHAT_WEBHOOK destination masks the secret part of its URL in what a target repeats", () => {
    const echoes = Echoes.of(secretsIn(connectorOf("CHAT_WEBHOOK")!, { url }))!
    expect(echoes.text(`POST /api/webhooks/1/t0ken-of-the-webhook?thread_id=5&wait=true`)).toBe(
      "POST ****id=5&wait=true"
    )
    expect(echoes.text(`no webhooks of t0ken-of-the-webhook`)).toBe("no webhooks of ****hook")
  })

  it("CHAT_WEBHOOK destination lists the pictures that the API will fetch and refuses invalid URLs", () => {
    const picture = (name: string) => `https://example.com/${name}.png`
    const sender = webhook({
      avatar_url: "{{payload.a}}",
      embeds: JSON.stringify([
        { image: { url: picture("i") }, author: { name: "x", icon_url: picture("o") } },
        { thumbnail: { url: "{{payload.t}}" }, footer: { text: "y", icon_url: picture("f") }, url: picture("link") }
      ])
    })
    const prepared = (body: object) => {
      const made = event(body)
      return sender.prepare(made, factsOf(made))
    }
    const urls = ["a", "i", "o", "t", "f"].map(picture)
    expect(prepared({ a: picture("a"), t: picture("t") })).toMatchObject({ fetched: urls })
    expect(prepared({ a: "file:///a", t: picture("t") })).toMatchObject({ code: "TEMPLATE_ERROR" })
    expect(prepared({ a: picture("a"), t: 7 })).toMatchObject({ code: "TEMPLATE_ERROR" })
  })

  it.each([
    ["https://chat.example.com/api/webhooks/1/t0ken-of-it/slack", "https://chat.example.com/api/webhooks/1/****f-it"],
    ["https://chat.example.com/api/webhooks/1/t0ken-of-it/", "https://chat.example.com/api/webhooks/1/****f-it"],
    ["https://chat.example.com/hook/t0ken-of-it", "https://chat.example.com/****"]
  ])("CHAT_WEBHOOK destination records its URL %s as %s", (url, shown) => {
    expect(sent(webhook({ url }), event({})).shownUrl).toBe(shown)
  })

  it("CHAT_WEBHOOK destination cuts a long message between characters", () => {
    const contentOf = (payload: string): string =>
      (JSON.parse(sent(webhook({ content_template: "{{payload}}" }), event(payload)).text) as { content: string })
        .content
    // It counts code points.
    expect(contentOf("😀".repeat(2_000))).toBe("😀".repeat(2_000))
    expect(contentOf("😀".repeat(2_001))).toBe(`${"😀".repeat(1_999)}…`)
  })

  it.each([
    ["", 1.2, {}, 2],
    ["", 64_000, {}, 64],
    ["", 64_000, { "x-ratelimit-reset-after": "63.4" }, 64],
    ["/v6", 1_500, { "retry-after": "1500" }, 2],
    ["/v7", 64_000, {}, 64],
    ["/v8", 64, {}, 64],
    ["/v10", 64.57, { "retry-after": "65" }, 65],
    ["/v10", 0.3, { "x-ratelimit-reset-after": "0.300" }, 1],
    ["/v10", 3, { "x-ratelimit-reset-after": "soon" }, 3]
  ])(
    "CHAT_WEBHOOK destination on api%s reads retry_after %d of a 429 with headers %j as %i s",
    (version, retry_after, headers, seconds) => {
      const sender = webhook({ url: `https://discord.com/api${version}/webhooks/1/t0ken-of-it` })
      const limited = { message: "You are being rate limited.", retry_after, global: false }
      expect(sender.judge(answer(429, limited, headers))).toMatchObject({ retryAfter: seconds, final: false })
    }
  )

  it("CHAT_WEBHOOK destination leaves a proxy's 429 to its header and reports the API's error number", () => {
    expect(webhook().judge(answer(429, "<html>", { "retry-after": "600" }))).not.toHaveProperty("retryAfter")
    expect(webhook().judge(answer(429, { retry_after: "soon" }))).not.toHaveProperty("retryAfter")
    expect(webhook().judge(answer(404, { code: 10015 }))).toEqual({
      code: "BAD_RESPONSE",
      message: "HTTP 404 from the API (10015)",
      final: true
    })
  })
})

describe("MESSENGER_MESSAGE destination", () => {
  const auth = { auth_type: "CHAT_BOT_TOKEN", auth: { bot_token: "123:abc/../x" } }
  const messenger = (config: Config = {}) =>
    open("MESSENGER_MESSAGE", {
      auth,
      config: { chat_id: "-100{{payload.chat}}", text_template: "{{payload.text}}", ...config }
    })

  it("MESSENGER_MESSAGE destination sends as its bot and does not record the bot's token", () => {
    const { shownUrl, text, url } = sent(messenger(), event({ chat: 7, text: "hello" }))
    expect(url).toBe("https://stand-in-of-api.telegram.org/bot123:abc%2F..%2Fx/sendMessage")
    expect(shownUrl).toBe("https://stand-in-of-api.telegram.org/bot****/sendMessage")
    expect(JSON.parse(text)).toEqual({ chat_id: "-1007", text: "hello", disable_notification: false })
  })

  it("MESSENGER_MESSAGE destination can send with markup, silently and without link previews", () => {
    const config = { parse_mode: "HTML", disable_link_previews: true, disable_notification: true }
    expect(JSON.parse(sent(messenger(config), event({ text: "x" })).text)).toMatchObject({
      parse_mode: "HTML",
      link_preview_options: { is_disabled: true },
      disable_notification: true
    })
  })

  it.each([
    ["HTML", "<b>{{payload.text}}</b>", "<b>a &lt; b.&quot;*&quot;</b>"],
    ["MarkdownV2", "*{{payload.text}}*", String.raw`*a < b\."\*"*`]
  ])("MESSENGER_MESSAGE destination in mode %s escapes template values", (parse_mode, text_template, expected) => {
    const { text } = sent(messenger({ parse_mode, text_template }), event({ text: 'a < b."*"' }))
    expect(JSON.parse(text).text).toBe(expected)
  })

  it("MESSENGER_MESSAGE destination recognizes success in an answer that was cut", () => {
    const long = { ...answer(200, `{"ok":true,"result":{"entities":["${"x".repeat(70_000)}`), bodyTruncated: true }
    expect(messenger().judge(long)).toBe("successful")
    expect(messenger().judge({ ...long, body: Buffer.from('{"ok":false,') })).not.toBe("successful")
    expect(messenger().judge({ ...long, body: Buffer.from("<html>") })).not.toBe("successful")
  })

  it("MESSENGER_MESSAGE destination reports a bot that is not found as a wrong token", () => {
    expect(messenger().judge(answer(404, { ok: false, error_code: 404 }))).toMatchObject({
      code: "AUTH_REJECTED",
      final: false
    })
  })

  it("MESSENGER_MESSAGE destination has a default rate limit of one message per second", () => {
    const row = connectorOf("MESSENGER_MESSAGE")!
    const config = { chat_id: "1", text_template: "x" }
    expect(Result.getOrThrow(settingsOf(row, config))).toMatchObject({ rate_limit: 1, rate_limit_period: "second" })
    expect(Result.getOrThrow(settingsOf(row, { ...config, rate_limit: 30 }))).toMatchObject({ rate_limit: 30 })
  })

  it("MESSENGER_MESSAGE destination waits for the time in the body when no header says it", () => {
    const limited = { ok: false, error_code: 429, description: "Too Many Requests", parameters: { retry_after: 31 } }
    expect(messenger().judge(answer(429, limited))).toEqual({
      code: "BAD_RESPONSE",
      message: "HTTP 429 from the API (429)",
      final: false,
      retryAfter: 31
    })
  })
})

describe("EMAIL_API_EMAIL destination", () => {
  const auth = { auth_type: "EMAIL_API_KEY", auth: { api_key: "SG.1" } }
  const config = { from: "orders@example.com", to: "ops@example.com" }
  const mail = (more: Config = {}) => open("EMAIL_API_EMAIL", { auth, config: { ...config, ...more } })

  it("EMAIL_API_EMAIL destination sends the payload as text", () => {
    const { headers, text, url } = sent(mail(), event({ a: 1 }))
    expect(url).toBe("https://stand-in-of-api.sendgrid.com/v3/mail/send")
    expect(headers).toMatchObject({ authorization: "Bearer SG.1" })
    expect(JSON.parse(text)).toEqual({
      personalizations: [{ to: [{ email: "ops@example.com" }] }],
      from: { email: "orders@example.com" },
      subject: "Event evt_1",
      content: [{ type: "text/plain", value: '{"a":1}' }]
    })
  })

  it("EMAIL_API_EMAIL destination sends names, copies, a reply address and HTML with escaped values", () => {
    const { text, url } = sent(
      mail({
        api_base: "https://api.eu.sendgrid.com",
        from_name: "Orders",
        to: ["{{payload.to}}", "b@example.com"],
        cc: "c@example.com",
        bcc: ["d@example.com"],
        reply_to: "e@example.com",
        subject: "New\r\nBcc: evil@example.com {{payload.text}}",
        html_template: "<p>{{payload.text}}</p>"
      }),
      event({ to: "a@example.com", text: "<script>" })
    )
    expect(url).toBe("https://stand-in-of-api.eu.sendgrid.com/v3/mail/send")
    expect(JSON.parse(text)).toEqual({
      personalizations: [
        {
          to: [{ email: "a@example.com" }, { email: "b@example.com" }],
          cc: [{ email: "c@example.com" }],
          bcc: [{ email: "d@example.com" }]
        }
      ],
      from: { email: "orders@example.com", name: "Orders" },
      reply_to: { email: "e@example.com" },
      subject: "New Bcc: evil@example.com <script>",
      content: [{ type: "text/html", value: "<p>&lt;script&gt;</p>" }]
    })
  })

  it("EMAIL_API_EMAIL destination waits until the reset time of a 429, by the API's clock", () => {
    const date = "Fri, 02 Jan 2026 00:00:00 GMT"
    const reset = String(Date.UTC(2026, 0, 2) / 1000 + 90)
    const wait = (headers: Answer["headers"]) => mail().judge(answer(429, { errors: [] }, headers))
    expect(wait({ date, "x-ratelimit-reset": reset })).toMatchObject({ code: "BAD_RESPONSE", retryAfter: 90 })
    const silent: ReadonlyArray<Answer["headers"]> = [
      { "x-ratelimit-reset": reset },
      { date, "x-ratelimit-reset": "1" },
      { date, "x-ratelimit-reset": "soon" },
      { date: "yesterday", "x-ratelimit-reset": reset },
      { date, "x-ratelimit-reset": [reset, reset] },
      { date, "x-ratelimit-reset": reset, "retry-after": "5" }
    ]
    for (const headers of silent) expect(wait(headers)).not.toHaveProperty("retryAfter")
  })

  it("EMAIL_API_EMAIL destination names each recipient once", () => {
    const { text } = sent(
      mail({ to: ["a@example.com", "A@example.com"], cc: "{{payload.to}}" }),
      event({ to: "a@example.com" })
    )
    expect(JSON.parse(text).personalizations).toEqual([{ to: [{ email: "a@example.com" }] }])
  })

  it.each(["a@example.com, b@example.com", "a@example.com\r\nBcc: b@example.com", "<a@example.com>", "nobody", ""])(
    "EMAIL_API_EMAIL destination sends nothing when the payload's recipient is %j",
    (to) => {
      const refusal = refusalOf(mail({ to: "{{payload.to}}" }), event({ to }))
      expect(refusal.code).toBe("TEMPLATE_ERROR")
      expect(refusal.message).not.toContain("example.com")
    }
  )

  it("EMAIL_API_EMAIL destination leaves out an empty sender name", () => {
    expect(JSON.parse(sent(mail({ from_name: "{{payload.none}}" }), event({})).text).from).toEqual({
      email: config.from
    })
  })

  it("EMAIL_API_EMAIL destination refuses invalid addresses and more than ten recipients", () => {
    expect(faultsOf("EMAIL_API_EMAIL", { ...config, cc: "a@example.com,b@example.com" })).toEqual([
      "config.cc must be an e-mail address, or a list of them: one address in each text"
    ])
    expect(faultsOf("EMAIL_API_EMAIL", { ...config, from: "orders" })).toHaveLength(1)
    const many = Array.from({ length: 5 }, (_, i) => `${i}@example.com`)
    expect(faultsOf("EMAIL_API_EMAIL", { ...config, to: many, cc: many })).toEqual([])
    expect(faultsOf("EMAIL_API_EMAIL", { ...config, to: many, cc: many, bcc: "x@example.com" })).toEqual([
      "config.to must be at most 10 recipients with cc and bcc"
    ])
  })

  it.each([
    [202, "successful"],
    [400, ["BAD_RESPONSE", true]],
    [401, ["AUTH_REJECTED", false]],
    [413, ["BAD_RESPONSE", true]],
    [429, ["BAD_RESPONSE", false]],
    [500, ["BAD_RESPONSE", false]]
  ])("EMAIL_API_EMAIL destination judges the status %i as %j", (status, expected) => {
    const verdict = mail().judge(answer(status, { errors: [{ message: "x" }] }))
    expect(verdict === "successful" ? verdict : [verdict.code, verdict.final]).toEqual(expected)
  })
})

describe("Messaging destinations", () => {
  const auth = { auth_type: "MESSAGING_AUTH_TOKEN", auth: { account_sid: "AC1", auth_token: "token" } }
  const config = { to: "{{payload.to}}", from: "+15005550001", body_template: "{{message}}/{{payload.message}}" }
  const payload = { to: "+15005550006", message: "50 % & more", media_url: "https://example.com/a b.png" }
  const fields = (type: string, more: Config) => {
    const request = sent(open(type, { auth, config: { ...config, ...more } }), event(payload))
    return { ...request, fields: [...new URLSearchParams(request.text)] }
  }

  it("MESSAGING_SMS destination posts a form with the account's credentials", () => {
    const { fields: form, headers, url } = fields("MESSAGING_SMS", {})
    expect(url).toBe("https://stand-in-of-api.twilio.com/2010-04-01/Accounts/AC1/Messages.json")
    expect(headers).toMatchObject({
      "content-type": "application/x-www-form-urlencoded; charset=utf-8",
      authorization: `Basic ${Buffer.from("AC1:token").toString("base64")}`
    })
    expect(form).toEqual([
      ["To", "+15005550006"],
      ["From", "+15005550001"],
      ["Body", "50 % & more/50 % & more"]
    ])
  })

  it("MESSAGING_MMS destination sends media URLs and refuses an event whose media URL is invalid", () => {
    const type = "MESSAGING_MMS"
    const media = ["https://example.com/1.png", "https://example.com/{{payload.to}}.png"]
    expect(fields(type, { media_urls: media }).fields.slice(3)).toEqual([
      ["MediaUrl", "https://example.com/1.png"],
      ["MediaUrl", "https://example.com/+15005550006.png"]
    ])
    const sender = open(type, { auth, config: { ...config, media_urls: ["{{media_url}}"] } })
    for (const media_url of [payload.media_url, "file:///etc/passwd", "javascript:1"]) {
      expect(refusalOf(sender, event({ ...payload, media_url })).code).toBe("TEMPLATE_ERROR")
    }
    expect(faultsOf(type, { ...config, media_urls: ["ftp://example.com/x"] })).toHaveLength(1)
  })

  it("MESSAGING_CHAT destination sends free text or an approved template with its variables", () => {
    expect(
      fields("MESSAGING_CHAT", {
        body_template: null,
        messaging_service_sid: "MG1",
        content_sid: "HX1",
        content_variables: '{"1":"{{payload.message}}"}'
      }).fields
    ).toEqual([
      ["To", "+15005550006"],
      ["From", "+15005550001"],
      ["MessagingServiceSid", "MG1"],
      ["ContentSid", "HX1"],
      ["ContentVariables", '{"1":"50 % & more"}']
    ])
  })

  it.each([
    ["+15005550006", "+15005550006"],
    ["+1 (500) 555-0006", "+15005550006"],
    ["+15005550006,+15005550007", null],
    ["+15005550006\r\nFrom: x", null],
    ["+1500\n5550006", null],
    ["whatsapp:+15005550006", null],
    ["5005550006", null],
    ["+05005550006", null],
    ["PN0000", null],
    ["", null]
  ])("SMS and MMS destinations map the payload's recipient %j to %j", (to, expected) => {
    for (const type of ["MESSAGING_SMS", "MESSAGING_MMS"]) {
      const sender = open(type, { auth, config: { ...config, media_urls: ["https://example.com/1.png"] } })
      const message = event({ ...payload, to })
      if (expected === null) expect(refusalOf(sender, message).code).toBe("TEMPLATE_ERROR")
      else expect(new URLSearchParams(sent(sender, message).text).get("To")).toBe(expected)
    }
  })

  it("MESSAGING_CHAT destination requires recipients on the channel of its sender", () => {
    const toOf = (from: string, to: string): string | null => {
      const sender = open("MESSAGING_CHAT", { auth, config: { ...config, from } })
      const request = sender.prepare(event({ ...payload, to }), factsOf(event({})))
      return request instanceof Refusal ? null : new URLSearchParams(Buffer.from(request.body).toString()).get("To")
    }
    expect(toOf("whatsapp:+15005550001", "whatsapp:+1 500 555 0006")).toBe("whatsapp:+15005550006")
    expect(toOf("whatsapp:+15005550001", "+15005550006")).toBeNull()
    expect(toOf("whatsapp:+15005550001", "rcs:+15005550006")).toBeNull()
    expect(toOf("whatsapp:+15005550001", "whatsapp:whatsapp:+15005550006")).toBeNull()
    expect(toOf("+15005550001", "+15005550006")).toBe("+15005550006")
  })

  it("MESSAGING_CHAT destination sends variables as non-empty texts of one line", () => {
    const layout = {
      1: "{{payload.lines}}",
      2: "{{payload.none}}",
      3: "{{payload.long}}",
      4: 7,
      5: null,
      6: true,
      7: "O'Brien"
    }
    const sender = open("MESSAGING_CHAT", {
      auth,
      config: {
        ...config,
        body_template: null,
        messaging_service_sid: "MG1",
        content_sid: "HX1",
        content_variables: JSON.stringify(layout)
      }
    })
    const message = event({ ...payload, lines: "a\r\n\tb     c", long: "x".repeat(2_000) })
    const variables = new URLSearchParams(sent(sender, message).text).get("ContentVariables")
    expect(JSON.parse(variables!)).toEqual({
      1: "a b c",
      3: `${"x".repeat(1_599)}…`,
      4: "7",
      6: "true",
      7: "O'Brien"
    })
  })

  it("MESSAGING_CHAT destination reports which settings are required together", () => {
    const chat = { to: "whatsapp:+1", from: null, body_template: null }
    expect(faultsOf("MESSAGING_CHAT", chat)).toEqual([
      "config.from is required: the sender, or config.messaging_service_sid",
      "config.body_template is required: the text of the message, or config.content_sid"
    ])
    expect(faultsOf("MESSAGING_CHAT", { ...chat, from: "x", content_sid: "HX1" })).toEqual([
      "config.messaging_service_sid is required with config.content_sid"
    ])
    expect(faultsOf("MESSAGING_CHAT", { ...chat, from: "x", body_template: "x", content_variables: "{}" })).toEqual([
      "config.content_variables has no effect without config.content_sid"
    ])
    expect(faultsOf("MESSAGING_SMS", { to: "1", body_template: "x", messaging_service_sid: "MG1" })).toEqual([])
  })

  it("Destinations refuse blank required texts like missing ones", () => {
    const blank = " "
    const message = { to: "+15005550006", from: "+15005550001", body_template: "x" }
    const hook = { url: "https://discord.com/api/webhooks/1/token" }
    const bot = { channel: "C1", text_template: "x" }
    const store = { account_id: "a".repeat(32), bucket: "archive", region: "eu-central-1" }
    const service = { messaging_service_sid: `MG${"0".repeat(32)}`, content_sid: `HX${"0".repeat(32)}` }
    for (const [type, config, wrong] of [
      ["MESSAGING_SMS", { ...message, from: blank }, "from"],
      ["MESSAGING_MMS", { ...message, from: "", media_urls: ["https://example.com/a.png"] }, "from"],
      ["MESSAGING_CHAT", { ...message, from: blank }, "from"],
      ["MESSAGING_CHAT", { ...message, body_template: blank }, "body_template"],
      ["MESSAGING_CHAT", { ...message, ...service, content_variables: blank }, "content_variables"],
      ["CHAT_WEBHOOK", { ...hook, content_template: blank }, "content_template"],
      ["CHAT_WEBHOOK", { ...hook, embeds: blank }, "embeds"],
      ["CHAT_BOT", { ...bot, blocks_template: blank }, "blocks_template"],
      ["OBJECT_STORE_S", { ...store, key_template: blank }, "key_template"],
      ["OBJECT_STORE_R", { ...store, key_template: blank }, "key_template"]
    ] as const) {
      expect(faultsOf(type, config), type).toEqual([`config.${wrong} must not be empty`])
    }
    // A message of embeds alone, or of a stored template alone, has no text of its own.
    expect(faultsOf("CHAT_WEBHOOK", { ...hook, content_template: "", embeds: "[]" })).toEqual([])
    expect(faultsOf("MESSAGING_CHAT", { ...message, ...service, body_template: "" })).toEqual([])
  })

  it("MESSAGING_SMS destination reports the API's error number", () => {
    const sender = open("MESSAGING_SMS", { auth, config })
    expect(sender.judge(answer(400, { code: 21211, message: "The 'To' number is not valid" }))).toEqual({
      code: "BAD_RESPONSE",
      message: "HTTP 400 from the API (21211)",
      final: true
    })
    expect(sender.judge(answer(201, { sid: "SM1" }))).toBe("successful")
  })

  it.each([
    [201, { sid: "SM1", status: "queued", error_code: null }, "successful"],
    [201, { sid: "SM1", status: "failed", error_code: 30007 }, ["BAD_RESPONSE", true]],
    [201, { sid: "SM1", status: "undelivered", error_code: null }, ["BAD_RESPONSE", true]],
    [201, { sid: "SM1", status: "failed", error_code: 30001 }, ["BAD_RESPONSE", false]],
    [400, { code: 21_611 }, ["BAD_RESPONSE", false]],
    [400, { code: 21_610 }, ["BAD_RESPONSE", true]],
    [401, { code: 20_003 }, ["AUTH_REJECTED", false]],
    [404, { code: 20_404 }, ["AUTH_REJECTED", false]],
    [429, { code: 20_429 }, ["BAD_RESPONSE", false]],
    [503, "", ["BAD_RESPONSE", false]]
  ])("MESSAGING_SMS destination judges the answer %i %j as %j", (status, body, expected) => {
    const verdict = open("MESSAGING_SMS", { auth, config }).judge(answer(status, body))
    expect(verdict === "successful" ? verdict : [verdict.code, verdict.final]).toEqual(expected)
  })

  it("MESSAGING_MMS destination lists the media that the API will fetch, so that they are checked first", () => {
    const media_urls = ["https://media.example.com/1.png", "{{media_url}}"]
    const sender = open("MESSAGING_MMS", { auth, config: { ...config, media_urls } })
    const request = sent(sender, event({ ...payload, media_url: "http://10.0.0.1/a.png" }))
    expect(request.fetched).toEqual(["https://media.example.com/1.png", "http://10.0.0.1/a.png"])
  })
})
