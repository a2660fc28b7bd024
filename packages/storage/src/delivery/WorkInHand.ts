import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"

/** Heavy work that processes have begun: see the migration. */

export type WorkKind = "run" | "route" | "event" | "bulk"

export interface Work {
  readonly kind: WorkKind
  readonly id: string
  readonly team_id: string
}

/** Begun work, and how many crashes of processes it is suspected of. */
export interface Taken extends Pick<Work, "kind" | "id"> {
  readonly ends: number
}

/** How long a suspicion is kept if the work does not come back. */
const forgotten = "7 days"
/** A process that has not been seen for this time (ms) has crashed, or it cannot reach the database. */
const deadAfter = 6_000
/** How long (ms) a crash is remembered after it can be noticed: by then all living processes have noticed it. */
const rememberedMs = 10_000
/** The largest number of rows of other processes that are read. */
const maxRead = 10_000

/** Records that the process is alive. Returns the begun work of other processes, and whether some have crashed lately. */
export const seeProcesses = Effect.fnUntraced(function* (
  process: string
): Effect.fn.Return<
  { readonly others: ReadonlyArray<Pick<Work, "kind" | "id">>; readonly died: boolean },
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into processes (id, seen_at) values (${process}, now()) on conflict (id) do update set seen_at = now()`
  const dead = yield* sql`
    select id from processes where seen_at < now() - ${deadAfter}::int * interval '1 millisecond' limit 1`
  if (dead.length > 0) {
    yield* sql`delete from processes where seen_at < now() - ${deadAfter + rememberedMs}::int * interval '1 millisecond'`
  }
  const others = yield* sql<Pick<Work, "kind" | "id">>`
    select kind, id from work_in_hand where process <> ${process} limit ${maxRead}`
  return { others, died: dead.length > 0 }
})

/** A clean shutdown: no work is suspected for it. */
export const leaveProcesses = Effect.fnUntraced(function* (
  process: string
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`delete from processes where id = ${process}`
  yield* letGo(process, null)
})

/**
 * Records work before it begins. Returns how many crashes of other processes it may have caused. Work that ran together with other work may be
 * innocent, and counts once. Work that ran alone was the cause, and counts each time.
 */
export const takeInHand = Effect.fnUntraced(function* (
  process: string,
  works: ReadonlyArray<Work>
): Effect.fn.Return<ReadonlyArray<Taken>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Taken>`
    insert into work_in_hand as w (kind, id, team_id, process, expires_at)
    select distinct kind, id, team_id, ${process}, now() + ${forgotten}::interval
    from unnest(${Columns.text(works.map(({ kind }) => kind))}, ${Columns.text(works.map(({ id }) => id))},
      ${Columns.text(works.map(({ team_id }) => team_id))}) as t (kind, id, team_id)
    where exists (select from teams where teams.id = t.team_id)
    order by kind, id
    on conflict (kind, id) do update set process = excluded.process, alone = false, expires_at = excluded.expires_at,
      ends = case when w.process in ('', excluded.process) then w.ends when w.alone then w.ends + 1 else greatest(w.ends, 1) end
    returning kind, id, ends`
})

/** From now on, no other suspected work is under way in the process. */
export const haveAlone = Effect.fnUntraced(function* (
  process: string,
  { id, kind }: Pick<Work, "kind" | "id">,
  alone: boolean
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update work_in_hand set alone = ${alone} where kind = ${kind} and id = ${id} and process = ${process}`
})

/** Removes work that has ended without a crash. */
export const outOfHand = Effect.fnUntraced(function* (
  process: string,
  works: ReadonlyArray<Pick<Work, "kind" | "id">>
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    delete from work_in_hand w
    using unnest(${Columns.text(works.map(({ kind }) => kind))}, ${Columns.text(works.map(({ id }) => id))}) as t (kind, id)
    where w.kind = t.kind and w.id = t.id and w.process = ${process}`
})

/** Releases work that was interrupted from outside: its suspicion stays. Null: all work of the process. */
export const letGo = Effect.fnUntraced(function* (
  process: string,
  works: ReadonlyArray<Pick<Work, "kind" | "id">> | null
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const those =
    works === null
      ? sql`true`
      : sql`(kind, id) in (select * from unnest(${Columns.text(works.map(({ kind }) => kind))}, ${Columns.text(works.map(({ id }) => id))}))`
  yield* sql`delete from work_in_hand where process = ${process} and ends = 0 and ${those}`
  yield* sql`update work_in_hand set process = '', alone = false where process = ${process} and ${those}`
})
