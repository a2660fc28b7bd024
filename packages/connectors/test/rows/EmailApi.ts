import type { ConformanceRow, Failing } from "./Row.ts"

const errors = JSON.stringify({ errors: [{ message: "no", field: null }] })
const failing = (status: number, code: Failing["code"], final: boolean): Failing => ({
  status,
  body: errors,
  code,
  final
})

export const emailApi: ConformanceRow = {
  type: "EMAIL_API_EMAIL",
  mock: () => ({ config: {} }),
  accepted: { status: 202 },
  failures: {
    credentials: [failing(401, "AUTH_REJECTED", false), failing(403, "AUTH_REJECTED", false)],
    tooMuch: [failing(429, "BAD_RESPONSE", false)],
    refused: [failing(400, "BAD_RESPONSE", true), failing(413, "BAD_RESPONSE", true)],
    trouble: [failing(500, "BAD_RESPONSE", false), failing(503, "BAD_RESPONSE", false)]
  },
  addresses: {},
  notReached: { api_base: "one of the two origins of the API" },
  triedWith: "a mock server that @sendgrid/mail also calls"
}
