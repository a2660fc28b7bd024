import type { ConformanceRow, Failing } from "./Row.ts"

const status = (status: number): Failing => ({ status, code: "BAD_RESPONSE", final: false })

export const cli: ConformanceRow = {
  type: "CLI",
  mock: null,
  accepted: { status: 204 },
  failures: {
    credentials: [status(401), status(403)],
    tooMuch: [status(429), status(503)],
    refused: [status(404), status(413)],
    trouble: [status(500), status(502)]
  },
  addresses: {},
  triedWith:
    "clients that hold a tunnel open, stop, come back and are taken over, beside runners and edges that are killed"
}
