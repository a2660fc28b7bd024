import { bearer, formOf, headerOf, isForm, jsonOf, type Oracle, posted, secret } from "./Oracle.ts"

const blocks = [{ type: "section", text: { type: "mrkdwn", text: 'an "order"\n*7*', verbatim: true } }]

export const slack: Oracle = {
  type: "CHAT_BOT",
  config: {
    channel: "C0123456789",
    text_template: "Order {{payload.id}} — ok?",
    blocks_template: '[{"type":"section","text":{"type":"mrkdwn","text":"{{payload.text}}"}}]'
  },
  auth: bearer,
  payload: { id: 7, text: 'an "order"\n*7*' },
  call: async (origin) => {
    const { LogLevel, WebClient } = await import("@slack/web-api")
    const client = new WebClient(secret, {
      slackApiUrl: `${origin}/api/`,
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      logLevel: LogLevel.ERROR
    })
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is no window's
    return client.chat.postMessage({ channel: "C0123456789", text: "Order 7 — ok?", blocks })
  },
  meaning: (request) => {
    posted(request, "/api/chat.postMessage")
    // It takes either; in a form, what is no text is JSON.
    const fields = isForm(request) ? formOf(request) : jsonOf(request)
    const layout = fields["blocks"]
    return {
      authorization: headerOf(request, "authorization"),
      ...fields,
      blocks: typeof layout === "string" ? (JSON.parse(layout) as unknown) : layout
    }
  },
  expected: { authorization: `Bearer ${secret}`, channel: "C0123456789", text: "Order 7 — ok?", blocks },
  accepted: { status: 200, body: { ok: true, channel: "C0123456789", ts: "1.2", message: {} } },
  noes: [
    {
      what: "no such channel, in a 200",
      answer: { status: 200, body: { ok: false, error: "channel_not_found" } },
      client: { code: "slack_webapi_platform_error", data: { error: "channel_not_found" } },
      verdict: { code: "BAD_RESPONSE", final: true }
    },
    {
      what: "a token that was taken back, in a 200",
      answer: { status: 200, body: { ok: false, error: "token_revoked" } },
      client: { code: "slack_webapi_platform_error", data: { error: "token_revoked" } },
      verdict: { code: "AUTH_REJECTED", final: false }
    },
    {
      what: "too many",
      answer: { status: 429, headers: { "retry-after": "30" }, body: { ok: false, error: "ratelimited" } },
      client: { code: "slack_webapi_rate_limited_error", retryAfter: 30 },
      verdict: { code: "BAD_RESPONSE", final: false }
    },
    {
      what: "trouble",
      answer: { status: 503, body: { ok: false, error: "service_unavailable" } },
      client: { code: "slack_webapi_http_error", statusCode: 503 },
      verdict: { code: "BAD_RESPONSE", final: false }
    }
  ]
}
