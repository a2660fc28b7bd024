import type { ConformanceRow } from "./Row.ts"

const table = { host: "db.example.com", database: "shop", table: "orders" }

export const sqlDatabase: ConformanceRow = {
  type: "SQL_DATABASE",
  mock: null,
  accepted: { status: 200 },
  failures: null,
  addresses: {
    host: ({ host }) => ({ config: { ...table, host } })
  },
  triedWith: "PostgreSQL 18, over TLS and in the clear, PgBouncer where it is installed, and servers that are none"
}
