import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { notFound } from "@tidegate/model/GatewayError"
import { presentOf } from "./PresentOf.ts"

/** How the write of a connection locks its destination and its sources, inside its own transaction. */
export const connectionEnds = (sql: SqlClient.SqlClient) => {
  /**
   * Locks the destination against deletion until the transaction ends (null: the destination does not change). Then raises the
   * versions of these sources, so that ingress routes again, and locks them. When the destination does not exist, no source is
   * raised.
   */
  const held = (team_id: string, destination_id: string | null, source_ids: ReadonlyArray<string>) => sql`
    held as materialized (
      select 1 from destinations where id = ${destination_id} and ${presentOf(sql, team_id)} for share
    ), concerned as materialized (
      select id from sources where id = any(${source_ids}) and ${presentOf(sql, team_id)}
        and (${destination_id}::text is null or exists (select from held))
      order by id for update
    )`
  const raise = sql`update sources set version = version + 1 from concerned where sources.id = concerned.id`

  /** Fails with the first one that does not exist. */
  const hold = Effect.fnUntraced(function* (
    team_id: string,
    destination_id: string | null,
    source_ids: ReadonlyArray<string>
  ) {
    const [ends] = yield* sql<{ held: boolean; raised: ReadonlyArray<string> }>`
      with ${held(team_id, destination_id, source_ids)}, raised as (${raise} returning sources.id)
      select exists (select from held) as held, array(select id from raised) as raised`
    if (destination_id !== null && ends?.held !== true) yield* notFound("destination", destination_id)
    const missing = source_ids.find((id) => !ends?.raised.includes(id))
    if (missing !== undefined) yield* notFound("source", missing)
  })

  return { held, hold, raise }
}
