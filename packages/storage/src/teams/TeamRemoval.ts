import { Clock, Context, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type Table, type TableName, tables } from "../Tables.ts"

/*
 * Carries out the deletions of teams. Everything about the progress is in the deletion's row, which is written in the transaction of
 * each piece: a process may die at any line, and the next one goes on with the same numbers.
 *
 * A pass goes through all tables, from the end of `Tables.ts` to its beginning: rows before those that they refer to. A statement
 * looks at some pages of one table. This needs no index by team, which most tables do not have; so a new table is covered without
 * any code. What was under way when the deletion began may still write rows. Therefore passes are repeated, each a while after the
 * one before, until one has found nothing.
 */

export interface DeletionPace {
  /** Pages (8 KiB) that one statement looks at. */
  readonly pages: number
  /** The time (ms) between two passes: longer than anything that was under way takes, and than retention tries to replace a day. */
  readonly quietMs: number
  /** How long (ms) channels may take to unsubscribe at their providers. After that their rows are deleted. */
  readonly channelsMs: number
}

export const DeletionPace = Context.Reference<DeletionPace>("@tidegate/storage/DeletionPace", {
  defaultValue: () => ({ pages: 128, quietMs: 90_000, channelsMs: 600_000 })
})

/** A deletion that is not done. */
export interface OpenDeletion {
  readonly id: string
  readonly stage: "stopping" | "removing" | "checking"
  readonly requested_at: Date
}

/** Deletions that are not done, the oldest first. */
export const openDeletions: Effect.Effect<
  ReadonlyArray<OpenDeletion>,
  SqlError.SqlError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<OpenDeletion>`
    select id, stage, requested_at from team_deletions where finished_at is null order by requested_at, id limit 100`
})

/** Some of the team's destinations, behind the id `after`. */
export const destinationsBehind = Effect.fnUntraced(function* (
  team: string,
  after: string
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`
    select id from destinations where team_id = ${team} and id > ${after} order by id limit 500`
  return rows.map(({ id }) => id)
})

/** Workflows of the team with runs that are not at their end. */
export const workflowsUnderWay = Effect.fnUntraced(function* (
  team: string
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`
    select w.id from workflows w where w.team_id = ${team}
      and exists (select from workflow_queue q where q.workflow_id = w.id) order by w.id`
  return rows.map(({ id }) => id)
})

/** The sources whose channels have not yet unsubscribed. */
export const channelsLeft = Effect.fnUntraced(function* (
  team: string
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{
    id: string
  }>`select source_id as id from channels where team_id = ${team} order by source_id`
  return rows.map(({ id }) => id)
})

/** Everything has stopped: rows may be deleted. */
export const beginRemoval = Effect.fnUntraced(function* (
  team: string
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update team_deletions set stage = 'removing' where id = ${team} and stage = 'stopping'`
})

/** Begins the pass again, because its tables or rows have changed in a way that stops it. */
export const beginPassAgain = Effect.fnUntraced(function* (
  team: string
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    update team_deletions set at_table = null, at_block = 0 where id = ${team} and finished_at is null`
})

interface Place {
  readonly table: TableName
  /** The table itself, or one of its partitions. */
  readonly name: string
  readonly team: string
}

/** All tables with rows of teams, and for a partitioned one its partitions, in the order in which a pass looks at them. */
const places = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Tables that an interrupted retention run has left are included (`…_detached`, `…_copy`). A day that an operator has detached and renamed is not
  // included, because it belongs to the operator.
  const rows = yield* sql<{ name: string }>`
    select relname as name from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r'
    order by relname desc`
  const names = rows.map(({ name }) => name)
  return Object.entries<Table>(tables)
    .toReversed()
    .flatMap(([table, { kind, team }]): ReadonlyArray<Place> => {
      if (team === null || table === "teams") return []
      const ofDay = new RegExp(`^${table}_\\d{8}(_detached|_copy)?$`)
      const own = kind === "grows" ? names.filter((name) => ofDay.test(name)) : [table]
      return own.map((name) => ({ table: table as TableName, name, team }))
    })
})

interface State {
  readonly stage: OpenDeletion["stage"]
  readonly at_table: string | null
  readonly at_block: number
  readonly found: number
  readonly pass_at: Date | null
}

/**
 * Deletes the team's rows in the next pages, in one transaction. Returns how long (ms) the next piece has to wait, 0: not at all;
 * null: the deletion is done.
 */
export const removePiece = Effect.fnUntraced(function* (
  team: string
): Effect.fn.Return<number | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const pace = yield* DeletionPace
  const now = yield* Clock.currentTimeMillis
  const all = yield* places
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      const [state] = yield* sql<State>`
        select stage, at_table, at_block::float8 as at_block, found::float8 as found, pass_at from team_deletions
        where id = ${team} and finished_at is null and stage <> 'stopping' for update`
      if (state === undefined) return null
      if (state.at_table === null && state.pass_at !== null && now < state.pass_at.getTime()) {
        return state.pass_at.getTime() - now
      }
      // A partition that retention has dropped meanwhile is in no list: the pass begins again, which costs little.
      const index = Math.max(
        0,
        all.findIndex(({ name }) => name === state.at_table)
      )
      const from = all[index]!.name === state.at_table ? state.at_block : 0
      const { name, table, team: column } = all[index]!
      const to = from + pace.pages
      const [gone] = yield* sql.unsafe<{ count: number; pages: number }>(
        `with gone as (delete from ${name} where ctid >= '(${from},0)' and ctid < '(${to},0)' and ${column} = $1 returning 1)
          select (select count(*)::float8 from gone) as count,
            (pg_relation_size('${name}') / current_setting('block_size')::int)::float8 as pages`,
        [team]
      )
      const { count, pages } = gone!
      if (count > 0) {
        yield* sql`
          update team_deletions set found = found + ${count}, deleted = jsonb_set(deleted, array[${table}],
            to_jsonb(coalesce((deleted ->> ${table})::bigint, 0) + ${count}::bigint))
          where id = ${team}`
      }
      const isLast = to >= pages
      const next = isLast ? all[index + 1]?.name : name
      if (next !== undefined) {
        yield* sql`update team_deletions set at_table = ${next}, at_block = ${isLast ? 0 : to} where id = ${team}`
        return 0
      }
      return yield* passEnded(team, { ...state, found: state.found + count }, now + pace.quietMs)
    })
  )
})

const passEnded = Effect.fnUntraced(function* (team: string, { found, stage }: State, nextPassAt: number) {
  const sql = yield* SqlClient.SqlClient
  if (found > 0 || stage === "removing") {
    yield* sql`
      update team_deletions set stage = 'checking', at_table = null, at_block = 0, found = 0, pass_at = ${new Date(nextPassAt)}
      where id = ${team}`
    return Math.max(0, nextPassAt - (yield* Clock.currentTimeMillis))
  }
  // Fails when anything refers to the team: then the pass has missed something.
  yield* sql`delete from teams where id = ${team}`
  yield* sql`
    update team_deletions set stage = 'done', at_table = null, finished_at = ${new Date(yield* Clock.currentTimeMillis)},
      deleted = jsonb_set(deleted, '{teams}', '1')
    where id = ${team}`
  return null
})
