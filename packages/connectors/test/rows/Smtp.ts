import type { ConformanceRow } from "./Row.ts"

export const smtp: ConformanceRow = {
  type: "SMTP",
  mock: null,
  accepted: { status: 200 },
  failures: null,
  addresses: {
    host: ({ host }) => ({ config: { host, from: "orders@example.com", to: "ops@example.com" } })
  },
  triedWith: "the package smtp-server, over TLS, by STARTTLS and in the clear, and servers that are none"
}
