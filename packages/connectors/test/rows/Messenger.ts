import type { ConformanceRow } from "./Row.ts"

const said = (status: number, more: object = {}): string => JSON.stringify({ ok: false, error_code: status, ...more })

export const messenger: ConformanceRow = {
  type: "MESSENGER_MESSAGE",
  mock: () => ({ config: {} }),
  accepted: { status: 200, body: '{"ok":true,"result":{"message_id":1}}' },
  failures: {
    credentials: [
      { status: 401, body: said(401), code: "AUTH_REJECTED", final: false },
      // The token is a part of the path.
      { status: 404, body: said(404), code: "AUTH_REJECTED", final: false }
    ],
    tooMuch: [
      {
        status: 429,
        body: said(429, { parameters: { retry_after: 31 } }),
        code: "BAD_RESPONSE",
        final: false,
        retryAfter: 31
      }
    ],
    refused: [{ status: 400, body: said(400), code: "BAD_RESPONSE", final: true }],
    trouble: [{ status: 502, body: said(502), code: "BAD_RESPONSE", final: false }]
  },
  addresses: {},
  triedWith: "a mock server made from the provider's documentation"
}
