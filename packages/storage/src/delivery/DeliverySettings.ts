import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { unsealed } from "@tidegate/connectors/SecretSettings"
import { fromJsonText } from "@tidegate/json/JsonSchema"
import type { Ordering } from "@tidegate/model/Ordering"
import type { Rule } from "@tidegate/model/Rule"
import type { DestinationConfig } from "@tidegate/resources/Destination"
import { HotSql } from "../Database.ts"
import { Secrets } from "../secrets/Secrets.ts"

/** A destination with the settings that its actor needs. */
export interface DeliveringDestination {
  readonly id: string
  readonly team_id: string
  readonly name: string
  readonly type: string
  readonly config: DestinationConfig
  /** Decrypted; null: its key is gone. */
  readonly auth: Schema.JsonObject | null
  readonly disabled_at: Date | null
  readonly cancel_before: Date | null
  readonly deleted_at: Date | null
  /** Until when its target accepts no deliveries; null, or in the past: it accepts them. */
  readonly held_until: Date | null
}

/** A connection with the settings that the destination's actor needs. */
export interface DeliveringConnection {
  readonly id: string
  readonly name: string
  readonly source_name: string
  readonly rules: ReadonlyArray<Rule>
  readonly disabled_at: Date | null
  readonly deleted_at: Date | null
  readonly paused_at: Date | null
  readonly resumed_at: Date | null
  readonly cancel_before: Date | null
  readonly ordering: Ordering | null
  /** Whether its events may have ordering keys, even if it no longer has an ordering. */
  readonly has_lines: boolean
}

/** The settings for the deliveries of a destination. */
export interface DeliverySettings {
  readonly destination: DeliveringDestination
  /** Connections that deliver here, and earlier ones: their waiting events are still delivered, or have to be cancelled. */
  readonly connections: ReadonlyArray<DeliveringConnection>
}

const decode = Schema.decodeUnknownEffect(fromJsonText(Schema.JsonObject))

/** Null: there is no such destination. `shard`: the shard of its queue rows. */
export const readDeliverySettings = Effect.fnUntraced(function* (
  id: string,
  shard: number
): Effect.fn.Return<DeliverySettings | null, SqlError.SqlError, HotSql | Secrets> {
  const sql = yield* HotSql
  const secrets = yield* Secrets
  const [row] = yield* sql<Omit<DeliveringDestination, "auth"> & { readonly auth: string | null }>`
    select id, team_id, name, type, config, auth, disabled_at, cancel_before, deleted_at, held_until from destinations where id = ${id}`
  if (row === undefined) return null
  const connections = yield* sql<DeliveringConnection>`
    with recursive lanes as (
      (select connection_id from deliveries where shard = ${shard} and destination_id = ${id} order by connection_id limit 1)
      union all
      select (select d.connection_id from deliveries d where d.shard = ${shard} and d.destination_id = ${id}
        and d.connection_id > lanes.connection_id order by d.connection_id limit 1)
      from lanes where lanes.connection_id is not null
    )
    select c.id, c.name, s.name as source_name, c.rules, c.disabled_at, c.deleted_at, c.paused_at, c.resumed_at, c.cancel_before,
      c.ordering, c.lines is not null as has_lines
    from (
      select id from connections where destination_id = ${id} and deleted_at is null
      union select connection_id from lanes where connection_id is not null
    ) those
      cross join lateral (select * from connections where connections.id = those.id limit 1) c
      cross join lateral (select name from sources where sources.id = c.source_id limit 1) s`
  const auth =
    row.auth === null
      ? {}
      : yield* secrets.decrypt({ team_id: row.team_id, table: "destinations", column: "auth", id }, row.auth).pipe(
          Effect.flatMap(decode),
          Effect.orElseSucceed(() => null)
        )
  return {
    destination: auth === null ? { ...row, auth } : { ...row, ...unsealed({ config: row.config, auth }) },
    connections
  }
})
