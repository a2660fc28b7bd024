import type { ConformanceRow } from "./Row.ts"

export const rabbitMq: ConformanceRow = {
  type: "RABBITMQ",
  mock: null,
  accepted: { status: 200 },
  failures: null,
  addresses: {
    host: ({ host }) => ({ config: { host, exchange: "orders" } })
  },
  notReached: { vhost: "a name inside the broker" },
  triedWith: "RabbitMQ 3.10 where it is installed, and servers that are none"
}
