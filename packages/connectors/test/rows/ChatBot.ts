import type { ConformanceRow, Failing } from "./Row.ts"

/** It says no in a 200. */
const saying = (error: string, code: Failing["code"], final: boolean): Failing => ({
  status: 200,
  body: JSON.stringify({ ok: false, error }),
  code,
  final
})

export const chatBot: ConformanceRow = {
  type: "CHAT_BOT",
  mock: () => ({ config: {} }),
  accepted: { status: 200, body: '{"ok":true,"channel":"C1","ts":"1.2"}' },
  failures: {
    credentials: [
      saying("invalid_auth", "AUTH_REJECTED", false),
      saying("token_revoked", "AUTH_REJECTED", false),
      saying("missing_scope", "AUTH_REJECTED", false)
    ],
    tooMuch: [
      {
        status: 429,
        headers: { "retry-after": "30" },
        body: '{"ok":false,"error":"ratelimited"}',
        code: "BAD_RESPONSE",
        final: false
      },
      saying("ratelimited", "BAD_RESPONSE", false)
    ],
    refused: [saying("channel_not_found", "BAD_RESPONSE", true), saying("invalid_blocks", "BAD_RESPONSE", true)],
    trouble: [
      saying("internal_error", "BAD_RESPONSE", false),
      { status: 503, code: "BAD_RESPONSE", final: false },
      { status: 200, body: "<html>", code: "BAD_RESPONSE", final: false }
    ]
  },
  addresses: {},
  triedWith: "a mock server that @slack/web-api also calls"
}
