import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"

interface Row {
  readonly size: number
  /** Null when it was not asked for. */
  readonly bytes: Uint8Array | null
}

const stored = Effect.fnUntraced(function* (
  team: string,
  id: string,
  part: "size" | "bytes"
): Effect.fn.Return<Row, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row & { readonly kept: boolean }>`
    select r.body is not null as kept, r.body_size as size, ${sql.literal(part === "bytes" ? "r.body" : "null::bytea")} as bytes
    from requests r where r.id = ${id} and r.team_id = ${team}`
  if (row === undefined) return yield* notFound("request", id)
  // Retention took it, or it was too large to be kept.
  return row.kept ? row : yield* notFound("request body", id)
})

/** The body of a request as it was received, byte for byte; it was bounded when it was taken in. */
export const requestBody = (team: string, id: string) =>
  Effect.map(stored(team, id, "bytes"), ({ bytes }) => bytes ?? new Uint8Array())

/** How many bytes that body has, without reading them. */
export const requestBodySize = (team: string, id: string) => Effect.map(stored(team, id, "size"), ({ size }) => size)
