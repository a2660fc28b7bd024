import type { ConformanceRow } from "./Row.ts"

export const redisStream: ConformanceRow = {
  type: "REDIS_STREAM",
  mock: null,
  accepted: { status: 200 },
  failures: null,
  addresses: {
    host: ({ host }) => ({ config: { host, stream: "orders" } })
  },
  triedWith: "Redis 7.0 where it is installed, and servers that are none"
}
