import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"

/** The rows behind what processes have in hand: see the migration. */

export type WorkKind = "run" | "route" | "event" | "bulk"

export interface Work {
  readonly kind: WorkKind
  readonly id: string
  readonly team_id: string
}

/** Work that is taken in hand, and how many ends of processes it counts. */
export interface Taken extends Pick<Work, "kind" | "id"> {
  readonly ends: number
}

/** How long what nobody comes back to is kept in mind. */
const forgotten = "7 days"
/** A process that has not been seen for so long (ms) has died, or its database is out of its reach. */
const deadAfter = 6_000
/** A death is forgotten so long after it could be found (ms), once somebody has heard of it: by then all that live have. */
const toldFor = 10_000
/** More rows of others than these are not looked at. */
const maxRead = 10_000

/** Says that the process lives; answers what others have in hand, and whether some have died lately. */
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
    yield* sql`delete from processes where seen_at < now() - ${deadAfter + toldFor}::int * interval '1 millisecond'`
  }
  const others = yield* sql<Pick<Work, "kind" | "id">>`
    select kind, id from work_in_hand where process <> ${process} limit ${maxRead}`
  return { others, died: dead.length > 0 }
})

/** A clean end: nothing is suspected for it. */
export const leaveProcesses = Effect.fnUntraced(function* (
  process: string
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`delete from processes where id = ${process}`
  yield* letGo(process, null)
})

/**
 * Takes work in hand, before it begins; answers how often other processes have ended with it. What another one had beside other work may
 * have been innocent, and counts once; what it had alone was the cause, and counts each time.
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

/** From here on, nothing else that is suspected is under way in the process. */
export const haveAlone = Effect.fnUntraced(function* (
  process: string,
  { id, kind }: Pick<Work, "kind" | "id">,
  alone: boolean
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update work_in_hand set alone = ${alone} where kind = ${kind} and id = ${id} and process = ${process}`
})

/** Work that has come to something without an end of the process. */
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

/** Work that was broken off, and not by its own doing: what is suspected of it stays so. Null: all of the process. */
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
