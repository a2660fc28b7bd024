import type { ConformanceRow } from "./Row.ts"

export const natsJetStream: ConformanceRow = {
  type: "NATS_JETSTREAM",
  mock: null,
  accepted: { status: 200 },
  failures: null,
  addresses: {
    host: ({ host }) => ({ config: { host, subject: "orders" } })
  },
  triedWith: "NATS 2.9 where it is installed, and servers that are none"
}
