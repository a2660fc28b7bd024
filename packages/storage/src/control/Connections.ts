import { Context, Effect, Layer, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Connection } from "@tidegate/model/Connection"
import { fail } from "@tidegate/model/GatewayError"
import type { Ordering } from "@tidegate/model/Ordering"
import type { Rule } from "@tidegate/model/Rule"
import { connection, type ConnectionFields } from "@tidegate/resources/Connection"
import type { AnyResource } from "@tidegate/resources/Resource"
import { connectionEnds } from "./ConnectionEnds.ts"
import { type ConnectionState, transitions, write } from "./ConnectionState.ts"
import { type DestinationRow, Destinations } from "./Destinations.ts"
import { holdFilters, linkFilters } from "./FilterLinks.ts"
import { gathered } from "../Gathered.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { type SourceRow, Sources } from "./Sources.ts"
import { makeStore } from "./MakeStore.ts"
import { nobody, type Store, type StoredRow, type Values } from "./Store.ts"
import { linkTransformations } from "./TransformationLinks.ts"

/** A row of `connections`. */
export interface ConnectionRow extends StoredRow, ConnectionState {
  readonly name: string
  readonly deleted_at: Date | null
  readonly lines: AssignedBy | null
}

/** Where the ordering positions of a connection's events are assigned: at ingress only, or by the connection's actor too. */
export type AssignedBy = "door" | "actor"

/**
 * The connections of teams. Every change raises the version of the source (of both sources when the connection moves), so that
 * ingress stops using the old settings. Rows are locked in the order filters, destinations, sources, connections,
 * transformations.
 */
export class Connections extends Context.Service<Connections, Store<typeof connection>>()(
  "@tidegate/storage/Connections"
) {
  static readonly layer: Layer.Layer<Connections, never, SqlClient.SqlClient | Secrets | Sources | Destinations> =
    Layer.effect(
      Connections,
      Effect.suspend(() => make)
    )
}

/** The columns of the state that are written: all but its end, which only a delete writes. */
const written = [
  "cancel_before",
  "description",
  "destination_id",
  "disabled_at",
  "disabled_by",
  "name",
  "ordering",
  "paused_at",
  "resumed_at",
  "rules",
  "source_id"
] as const satisfies ReadonlyArray<keyof ConnectionState>

const columnsOf = (state: ConnectionState): Values =>
  Object.fromEntries(written.map((column) => [column, state[column]]))

/**
 * Pairs of a source and a destination that one connection may have had. Each is a row of `connection_links`, along which lists of events
 * read, until one of the two is removed.
 */
const maxLinks = 1_000

/** Where ordering positions are assigned from now on: see the column. */
const assignedBy = (
  before: AssignedBy | null,
  ordering: Ordering | null,
  rules: ReadonlyArray<Rule>
): AssignedBy | null => {
  if (ordering === null || before === "actor") return before
  return rules.some(({ type }) => type === "deduplicate" || type === "transform") ? "actor" : "door"
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const sources = yield* Sources
  const destinations = yield* Destinations
  const ends = connectionEnds(sql)

  const rowsOf = <Row extends StoredRow>(table: "sources" | "destinations") =>
    gathered((ids) =>
      Effect.map(
        sql<Row>`select * from ${sql(table)} where id = any(${[...ids]})`,
        (rows) => new Map(rows.map((row) => [row.id, row]))
      )
    )
  const sourceRows = yield* rowsOf<SourceRow>("sources")
  const destinationRows = yield* rowsOf<DestinationRow>("destinations")

  /** The sources, or the destinations, of connections by id. */
  const recordsOf =
    <Row extends StoredRow, R extends AnyResource>(
      read: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Row>, SqlError.SqlError>,
      store: Store<R>,
      options: { readonly counts: boolean }
    ) =>
    (ids: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const wanted = [...new Set(ids)]
        const found = yield* read(wanted)
        const records = yield* store.records(
          wanted.flatMap((id) => found.get(id) ?? []),
          options
        )
        return new Map(records.map((record) => [(record as { readonly id: string }).id, record]))
      })

  /** To be called after the move, which has stored its pair. */
  const refuseManyLinks = Effect.fnUntraced(function* (id: string) {
    const links = yield* sql`select from connection_links where connection_id = ${id} limit ${maxLinks + 1}`
    if (links.length <= maxLinks) return
    yield* fail(
      "LIMIT_EXCEEDED",
      `the connection has been moved between ${maxLinks} pairs of a source and a destination; make another connection`,
      { limit: maxLinks }
    )
  })

  return yield* makeStore<ConnectionRow, typeof connection>(connection, {
    show: Effect.fnUntraced(function* (rows) {
      if (rows.length === 0) return []
      const [sourceOf, destinationOf] = yield* Effect.all(
        [
          recordsOf(sourceRows, sources, { counts: false })(rows.map((row) => row.source_id)),
          recordsOf(destinationRows, destinations, { counts: true })(rows.map((row) => row.destination_id))
        ],
        { concurrency: 2 }
      )
      return rows.map((row): Connection => ({
        id: row.id,
        team_id: row.team_id,
        name: row.name,
        description: row.description,
        source_id: row.source_id,
        destination_id: row.destination_id,
        // Foreign keys guarantee both rows, deleted or not.
        source: sourceOf.get(row.source_id)!,
        destination: destinationOf.get(row.destination_id)!,
        rules: row.rules,
        ordering: row.ordering,
        disabled_at: row.disabled_at?.toISOString() ?? null,
        paused_at: row.paused_at?.toISOString() ?? null,
        created_at: row.created_at.toISOString(),
        updated_at: row.updated_at.toISOString()
      }))
    }),

    // Locks the filters that its rules will link, then its destination, then its sources (both, when it moves).
    hold: Effect.fnUntraced(function* (team_id, before, next) {
      const { destination_id, disabled_at, paused_at, rules, source_id } = {
        ...before,
        ...next
      } as unknown as ConnectionState
      if (before === null && disabled_at !== null && paused_at !== null) {
        yield* fail("CONNECTION_DISABLED", "a disabled connection cannot be paused")
      }
      if (rules !== before?.rules) yield* holdFilters(sql, team_id, rules)
      const held = destination_id === before?.destination_id ? null : destination_id
      yield* ends.hold(team_id, held, [...new Set([before?.source_id ?? source_id, source_id])])
    }),
    // Filters and transformations of its rules need statements of their own before the row.
    alone: (team_id, next) => {
      const { destination_id, disabled_at, paused_at, rules, source_id } = next as unknown as ConnectionState
      if (disabled_at !== null && paused_at !== null) return null
      if (rules.some((rule) => rule.type === "transform" || "filter_id" in rule)) return null
      return {
        rows: ends.held(team_id, destination_id, [source_id]),
        areThere: sql`exists (select from concerned)`,
        concerned: sql`${ends.raise} and exists (select from made)`
      }
    },
    prepare: Effect.fnUntraced(function* ({ team_id }, before, next) {
      const rules = next["rules"] as ConnectionFields["rules"] | undefined
      if (rules === undefined) return next
      const linked =
        rules === before?.rules
          ? rules
          : yield* linkTransformations(sql, secrets, team_id, yield* linkFilters(sql, team_id, rules))
      const ordering = next["ordering"] as ConnectionFields["ordering"]
      return {
        ...next,
        rules: JSON.stringify(linked),
        ordering: ordering === null ? null : JSON.stringify(ordering),
        lines: assignedBy(before?.lines ?? null, ordering, linked)
      }
    }),
    transition: (row, asked, at) =>
      typeof asked === "string"
        ? Result.map(transitions[asked](row, at), (next) => (next === row ? null : columnsOf(next)))
        : Result.map(write(asked as unknown as ConnectionFields)(row, at), columnsOf),
    remove: (_row, at) => Effect.succeed({ cancel_before: at }),
    // A destination loads an unknown connection with its first event, so nobody has to be notified about a new one.
    follow: Effect.fnUntraced(function* (before, after) {
      if (before === null) return nobody
      const isMoved = before.source_id !== after.source_id || before.destination_id !== after.destination_id
      if (isMoved) yield* refuseManyLinks(after.id)
      return {
        destinations: [...new Set([before.destination_id, after.destination_id])],
        cancelled:
          after.cancel_before?.getTime() === before.cancel_before?.getTime() ? [] : [{ connection_id: after.id }]
      }
    }),
    concerns: ({ destination_id }) => Effect.succeed({ ...nobody, destinations: [destination_id] }),
    narrow: (team_id, { type }) =>
      type === undefined
        ? []
        : [sql`t.source_id in (select id from sources where team_id = ${team_id} and type = ${type})`]
  })
})
