import type { ConformanceRow } from "./Row.ts"

export const kafka: ConformanceRow = {
  type: "KAFKA",
  mock: null,
  accepted: { status: 200 },
  failures: null,
  addresses: {
    bootstrap_servers: ({ host }) => ({ config: { bootstrap_servers: `${host}:9092`, topic: "orders" } })
  },
  triedWith: "Kafka 4.0 where it is installed, and servers that are none"
}
