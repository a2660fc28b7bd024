import { Clock, Context, Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { connectorOf, shownSettings } from "@tidegate/connectors/Connectors"
import { unsealed } from "@tidegate/connectors/SecretSettings"
import type { Destination } from "@tidegate/model/Destination"
import { destination, type DestinationConfig } from "@tidegate/resources/Destination"
import { openAuth } from "../secrets/AuthColumn.ts"
import { maskAuth } from "@tidegate/redaction/Masking"
import { tokenAuths } from "@tidegate/outbound-auth/types/OAuth"
import { gathered } from "../Gathered.ts"
import { noCounts, rollupBins, total } from "../retention/RollupBins.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { makeStore } from "./MakeStore.ts"
import { type Concerned, nobody, type Store, type StoredRow } from "./Store.ts"
import { refuseUsedBySteps } from "../workflows/WorkflowLinks.ts"

/** A row of `destinations`. */
export interface DestinationRow extends StoredRow {
  readonly description: string | null
  readonly type: string
  readonly config: DestinationConfig
  /** Encrypted. */
  readonly auth: string | null
  readonly disabled_at: Date | null
  /** See `DestinationHolds.ts`. */
  readonly held_until: Date | null
}

/**
 * The destinations of teams. A change that decides whether events may go there raises the version of every source with a
 * connection to it, so that ingress stops using the old settings. A delete also deletes its connections; their events stay. Rows
 * are locked in the order destinations, sources, connections.
 */
export class Destinations extends Context.Service<Destinations, Store<typeof destination>>()(
  "@tidegate/storage/Destinations"
) {
  static readonly layer: Layer.Layer<Destinations, never, SqlClient.SqlClient | Secrets> = Layer.effect(
    Destinations,
    Effect.suspend(() => make)
  )
}

const isTokenAuth = ({ config }: DestinationRow): boolean => tokenAuths.includes(config.auth_type ?? "")

/** Whether a change may mean another target or credential: then a pause that the old target asked for ends. */
const isSetAnew = (before: DestinationRow, after: DestinationRow): boolean =>
  before.type !== after.type ||
  before.auth !== after.auth ||
  JSON.stringify(before.config) !== JSON.stringify(after.config)

/** Disabling a destination cancels its waiting events. */
const concerned = ({ deleted_at, disabled_at, id }: DestinationRow): Concerned =>
  deleted_at === null && disabled_at === null ? nobody : { destinations: [], cancelled: [{ destination_id: id }] }

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets

  /**
   * Raises the versions of the sources that route to this destination, so that ingress routes again. Sources are locked in id
   * order.
   */
  const raiseVersions = (id: string) => sql`
    with concerned as materialized (
      select id from sources
      where id in (select source_id from connections where destination_id = ${id} and deleted_at is null)
      order by id for update
    )
    update sources set version = version + 1 from concerned where sources.id = concerned.id`

  /**
   * Whether its authentication uses tokens. If not, stored tokens are deleted: also after a change of the method, or when
   * authentication is switched off.
   */
  const obtainsTokens = (row: DestinationRow) =>
    isTokenAuth(row)
      ? Effect.map(openAuth(secrets, "destinations", row), ({ disabled }) => disabled !== true)
      : Effect.succeed(false)

  const attemptsOf = yield* gathered((ids) =>
    Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
      rollupBins(sql, ids, ["attempt_successful", "attempt_failed"], nowMs)
    )
  )

  return yield* makeStore<DestinationRow, typeof destination>(destination, {
    show: Effect.fnUntraced(function* (rows, options) {
      const now = yield* Clock.currentTimeMillis
      const counts = options.counts && rows.length > 0 ? yield* attemptsOf(rows.map((row) => row.id)) : null
      return yield* Effect.forEach(rows, (row) =>
        Effect.map(openAuth(secrets, "destinations", row), (sealed): Destination => {
          const { auth, config } = unsealed({ auth: sealed, config: row.config })
          const attempts = counts?.get(row.id) ?? noCounts()
          return {
            id: row.id,
            team_id: row.team_id,
            name: row.name,
            description: row.description,
            type: row.type,
            config: {
              // For a type that this process does not know, it is not known which settings may be shown.
              ...shownSettings(row.type, connectorOf(row.type) === undefined ? row.config : config),
              auth_type: row.config.auth_type,
              auth: maskAuth(row.config.auth_type, auth)
            },
            disabled_at: row.disabled_at?.toISOString() ?? null,
            held_until:
              row.held_until === null || row.held_until.getTime() <= now ? null : row.held_until.toISOString(),
            attempts_24h_count: total(attempts),
            attempts_24h_bins: attempts,
            created_at: row.created_at.toISOString(),
            updated_at: row.updated_at.toISOString()
          }
        })
      )
    }),
    fields: (fields) => ({ ...fields, ...unsealed(fields) }),
    // Enabling cancels too: events that waited meanwhile do not come back.
    transition: ({ disabled_at }, asked, at) =>
      Result.succeed(
        typeof asked !== "string"
          ? asked
          : (disabled_at !== null) === (asked === "disable")
            ? null
            : { disabled_at: asked === "disable" ? at : null, cancel_before: at }
      ),
    remove: (row, at) => Effect.as(refuseUsedBySteps(sql, "destination", row), { cancel_before: at }),
    follow: Effect.fnUntraced(function* (before, after, at) {
      if (before === null) return nobody
      const { deleted_at, id } = after
      if (before.held_until !== null && isSetAnew(before, after)) {
        yield* sql`update destinations set held_until = null where id = ${id}`
      }
      if (deleted_at !== null || (isTokenAuth(before) && !(yield* obtainsTokens(after)))) {
        yield* sql`delete from destination_tokens where destination_id = ${id}`
      }
      const isTurned = (before.disabled_at === null) !== (after.disabled_at === null)
      if (deleted_at === null && !isTurned && before.type === after.type) return nobody
      yield* raiseVersions(id)
      if (deleted_at !== null) {
        yield* sql`
          update connections set deleted_at = ${at}, cancel_before = ${at}, updated_at = ${at}
          where destination_id = ${id} and deleted_at is null`
      }
      return deleted_at !== null || isTurned ? concerned(after) : nobody
    }),
    concerns: (row) => Effect.succeed(concerned(row)),
    narrow: (_team_id, { type }) => (type === undefined ? [] : [sql`t.type = ${type}`])
  })
})
