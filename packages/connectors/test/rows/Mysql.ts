import type { ConformanceRow } from "./Row.ts"

export const mysql: ConformanceRow = {
  type: "MYSQL",
  mock: null,
  accepted: { status: 200 },
  failures: null,
  addresses: {
    host: ({ host }) => ({ config: { host, database: "shop", table: "orders" } })
  },
  triedWith: "MariaDB 10.11 where it is installed, and servers that are none"
}
