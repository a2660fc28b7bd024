import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Filter, FilterConnection } from "@tidegate/model/Filter"
import type { DetachedFilter, FilterConditions } from "@tidegate/model/Rule"
import { filter, maxFilterConnections } from "@tidegate/resources/Filter"
import { linkedRule } from "@tidegate/rules/StoredFilter"
import { definitionHash } from "@tidegate/workflows/DefinitionHash"
import type { Secrets } from "../secrets/Secrets.ts"
import { makeStore } from "./MakeStore.ts"
import { nobody, type Store, type StoredRow } from "./Store.ts"
import { overtaken } from "../Transaction.ts"
import { namedBy, stepsNaming } from "../workflows/WorkflowLinks.ts"
import type { WorkflowRow } from "../workflows/WorkflowRow.ts"
import { keepVersion } from "../workflows/WorkflowVersions.ts"

/** A row of `filters`. */
export interface FilterRow extends StoredRow {
  readonly conditions: FilterConditions
  readonly hash: string
}

type Linked = Omit<FilterConnection, "disabled_at" | "paused_at"> & {
  readonly disabled_at: Date | null
  readonly paused_at: Date | null
}

const linking = (id: string): string => JSON.stringify([{ filter_id: id }])
/** The id and name of a deleted filter, which remain in the copies of its conditions. */
const detachedFrom = ({ id, name }: FilterRow, at: Date): DetachedFilter => ({
  id,
  name,
  detached_at: at.toISOString()
})
const leftBy = (id: string): string => JSON.stringify([{ detached_from_filter: { id } }])

/**
 * The stored filters of teams. Requests are judged by the copies of conditions in the rules of connections. A change of a filter
 * updates every such copy and raises the versions of the sources in its own transaction, so it holds for every request after the
 * change has returned. After a delete, the rules keep their copies as their own conditions, and so do workflow steps that named
 * the filter. Rows are locked in the order filters, destinations, sources, connections, workflows: a connection that comes to
 * link a filter waits for the filter's change, so no link is missed.
 */
export class Filters extends Context.Service<Filters, Store<typeof filter>>()("@tidegate/storage/Filters") {
  static readonly layer: Layer.Layer<Filters, never, SqlClient.SqlClient | Secrets> = Layer.effect(
    Filters,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** How many connections link each filter, and the first of them. */
  const counted = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const rows = yield* sql<{ id: string; count: number; sample: string | null }>`
      select f.id, count(c.id)::int4 as count, min(c.id) as sample
      from filters f left join connections c on c.team_id = f.team_id and c.deleted_at is null
        and c.rules @> jsonb_build_array(jsonb_build_object('filter_id', f.id))
      where f.id = any(${[...ids]}) group by f.id`
    return new Map(rows.map((row) => [row.id, row]))
  })

  const connectionsOf = Effect.fnUntraced(function* ({
    id,
    team_id
  }: FilterRow): Effect.fn.Return<ReadonlyArray<FilterConnection>, SqlError.SqlError> {
    const rows = yield* sql<Linked>`
      select id, name, source_id, destination_id, disabled_at, paused_at from connections
      where team_id = ${team_id} and deleted_at is null and rules @> ${linking(id)}::jsonb
      order by id limit ${maxFilterConnections}`
    return rows.map(({ destination_id, disabled_at, id, name, paused_at, source_id }) => {
      const since = { disabled_at: disabled_at?.toISOString() ?? null, paused_at: paused_at?.toISOString() ?? null }
      return Object.assign({ id, name, source_id, destination_id }, since)
    })
  })

  /**
   * When a filter is deleted, workflow steps that name it get its conditions as their own, in a new version. Workflows are read
   * one at a time, because all of a team's may be too large for memory.
   */
  const detachSteps = Effect.fnUntraced(function* (after: FilterRow, at: Date, by: string | null) {
    const { conditions, id } = after
    const own = { conditions, detached_from_filter: detachedFrom(after, at) }
    const held = yield* sql<Pick<WorkflowRow, "id" | "source_id">>`
      select id, source_id from workflows where ${namedBy(sql, after)} order by id for update`
    for (const workflow of held) {
      const [row] = (yield* sql<WorkflowRow>`select * from workflows where id = ${workflow.id}`) as [WorkflowRow]
      const steps = row.steps.map((step) =>
        step.resource_id === id ? { ...step, resource_id: null, config: { ...step.config, ...own } } : step
      )
      const [after] = yield* sql<WorkflowRow>`
        update workflows set steps = ${JSON.stringify(steps)}::jsonb, version = version + 1, updated_at = ${at},
          definition_hash = ${definitionHash(steps, row.edges)} where id = ${row.id} returning *`
      if (after !== undefined) yield* keepVersion(sql, row, after, by)
    }
    return held
  })

  /** Updates each rule that links the filter. */
  const rewrite = Effect.fnUntraced(function* (after: FilterRow, at: Date, by: string | null) {
    const { deleted_at, id, team_id } = after
    const concerned = sql`team_id = ${team_id} and deleted_at is null and rules @> ${linking(id)}::jsonb`
    const raised = yield* sql<{ id: string }>`
      with held as materialized (
        select id from sources where id in (
          select source_id from connections where ${concerned}
          ${deleted_at === null ? sql`` : sql`union all select source_id from workflows where ${namedBy(sql, after)}`}
        ) order by id for update
      )
      update sources set version = version + 1 from held where sources.id = held.id returning sources.id`
    const sources = new Set(raised.map((source) => source.id))
    const held = yield* sql<{ id: string; source_id: string }>`
      select id, source_id from connections where ${concerned} order by id for update`
    if (held.some(({ source_id }) => !sources.has(source_id))) {
      yield* overtaken("a connection has moved to another source")
    }
    const detached = deleted_at === null ? [] : yield* detachSteps(after, at, by)
    if (detached.some(({ source_id }) => source_id !== null && !sources.has(source_id))) {
      yield* overtaken("a workflow has moved to another source")
    }
    if (held.length === 0) return
    const rule =
      deleted_at === null
        ? sql`${JSON.stringify(linkedRule(after, at))}::jsonb`
        : sql`(rule - 'filter_id' - 'filter_snapshot') || ${JSON.stringify({
            detached_from_filter: detachedFrom(after, at)
          })}::jsonb`
    yield* sql`
      update connections set updated_at = ${at}, rules = (
        select jsonb_agg(case when rule ->> 'filter_id' = ${id} then ${rule} else rule end order by place)
        from jsonb_array_elements(connections.rules) with ordinality as element (rule, place)
      ) where id = any(${held.map((connection) => connection.id)})`
  })

  return yield* makeStore<FilterRow, typeof filter>(filter, {
    show: Effect.fnUntraced(function* (rows, options) {
      if (rows.length === 0) return []
      const ids = rows.map((row) => row.id)
      const links = yield* counted(ids)
      const steps = yield* stepsNaming(sql, rows[0]!.team_id, ids)
      return yield* Effect.forEach(rows, (row) =>
        Effect.map(options.counts ? connectionsOf(row) : Effect.succeed([]), (connections): Filter => {
          const { body = null, headers = null, path = null, query = null } = row.conditions
          const link = links.get(row.id)
          return {
            id: row.id,
            team_id: row.team_id,
            name: row.name,
            conditions: row.conditions,
            headers,
            body,
            query,
            path,
            connections_count: link?.count ?? 0,
            sample_connection_id: link?.sample ?? null,
            workflow_steps_count: steps.get(row.id) ?? 0,
            connections,
            created_at: row.created_at.toISOString(),
            updated_at: row.updated_at.toISOString()
          }
        })
      )
    }),
    follow: Effect.fnUntraced(function* (before, after, at, by) {
      if (before === null) return nobody
      const isSame = before.hash === after.hash && before.name === after.name
      if (after.deleted_at !== null || !isSame) yield* rewrite(after, at, by)
      // No destination uses filters.
      return nobody
    }),
    deleted: Effect.fnUntraced(function* ({ id, team_id }) {
      const [detached] = yield* sql<{ count: number }>`
        select count(*)::int4 as count from connections
        where team_id = ${team_id} and deleted_at is null and rules @> ${leftBy(id)}::jsonb`
      return { detached_connections: detached?.count ?? 0 }
    })
  })
})
