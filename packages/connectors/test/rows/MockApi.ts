import type { ConformanceRow, Failing } from "./Row.ts"

const status = (status: number): Failing => ({ status, code: "BAD_RESPONSE", final: false })

export const mockApi: ConformanceRow = {
  type: "MOCK_API",
  mock: null,
  accepted: { status: 200 },
  failures: {
    credentials: [status(401)],
    tooMuch: [status(429)],
    refused: [status(404)],
    trouble: [status(500), status(503)]
  },
  addresses: {},
  triedWith: "itself: it answers without a network"
}
