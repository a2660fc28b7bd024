import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { maxSamples, systemEventOf, type SystemEventType } from "@tidegate/model/SystemEvents"
import { systemType } from "@tidegate/model/SystemSource"
import * as Columns from "../journal/Columns.ts"
import { Rows } from "../journal/Rows.ts"

/*
 * What a team is to be told, a row for each type of event and subject. What happens within the window of a type is added to the row, and
 * told when the window is over. Teams without an enabled system source have no rows.
 */

const day = 86_400_000

/** The state of a destination is kept as long as its issues, and the last warning about a key until after its end. */
const keptDays: { readonly [type in SystemEventType]?: number } = { "destination.failing": 90, "key.expiring": 40 }
/** How long (ms) a row is kept after it was written: longer than any window. */
export const keptMs = (type: SystemEventType): number => (keptDays[type] ?? 2) * day

/** What an event says beside its subject. */
export interface Facts {
  readonly count: number
  /** The latest first. */
  readonly codes: ReadonlyArray<string>
  readonly samples: ReadonlyArray<string>
  /** ISO 8601. */
  readonly first: string
  readonly last: string
  /** The end of a key, and how many hours before the end the team is told. */
  readonly expiry?: { readonly at: string; readonly hours: number }
}

export interface Notice {
  readonly team_id: string
  readonly type: SystemEventType
  readonly subject_id: string
  readonly facts: Facts
}

const first = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(texts)].slice(0, maxSamples)

/** Both together; `later` happened after `earlier`. */
export const merged = (earlier: Facts | null, later: Facts): Facts =>
  earlier === null
    ? later
    : {
        count: earlier.count + later.count,
        codes: first([...later.codes, ...earlier.codes]),
        samples: first([...later.samples, ...earlier.samples]),
        first: earlier.first < later.first ? earlier.first : later.first,
        last: earlier.last > later.last ? earlier.last : later.last
      }

/** Those of the teams that have an enabled system source. */
export const listeningTeams = Effect.fnUntraced(function* (
  teams: ReadonlyArray<string>
): Effect.fn.Return<ReadonlySet<string>, SqlError.SqlError, SqlClient.SqlClient> {
  if (teams.length === 0) return new Set()
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ team_id: string }>`
    select team_id from sources
    where type = ${systemType} and team_id = any(${Columns.text([...new Set(teams)])}) and deleted_at is null and disabled_at is null`
  return new Set(rows.map(({ team_id }) => team_id))
})

interface Stored {
  readonly type: SystemEventType
  readonly subject_id: string
  readonly facts: Facts
  readonly due_at: Date | null
  readonly emitted_at: Date | null
}

const written = new Rows<Notice & { readonly due: number; readonly expires: number }>("n", [
  ["team_id", "text", ({ team_id }) => team_id],
  ["type", "text", ({ type }) => type],
  ["subject_id", "text", ({ subject_id }) => subject_id],
  ["facts", "text", ({ facts }) => JSON.stringify(facts)],
  ["due", "timestamptz", ({ due }) => due],
  ["expires", "timestamptz", ({ expires }) => expires]
])

const keyOf = ({ subject_id, type }: Pick<Notice, "subject_id" | "type">): string => `${subject_id} ${type}`

/** Adds what happened to the rows. To be called in a transaction, by one process at a time. */
export const noteFacts = Effect.fnUntraced(function* (
  notices: ReadonlyArray<Notice>,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  if (notices.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql<Stored>`
    select type, subject_id, facts, due_at, emitted_at from system_notices
    where subject_id = any(${Columns.text([...new Set(notices.map(({ subject_id }) => subject_id))])})`
  const stored = new Map(found.map((row) => [keyOf(row), row]))
  const together = new Map<string, Notice>()
  for (const notice of notices) {
    const known = together.get(keyOf(notice))
    together.set(keyOf(notice), { ...notice, facts: merged(known?.facts ?? null, notice.facts) })
  }
  const rows = [...together.values()].map((notice) => {
    const { type } = notice
    const before = stored.get(keyOf(notice))
    const earliest = (before?.emitted_at?.getTime() ?? 0) + systemEventOf(type).windowMs
    const waits = before !== undefined && before.due_at !== null
    return Object.assign({}, notice, {
      facts: merged(waits ? before.facts : null, notice.facts),
      due: waits ? before.due_at.getTime() : Math.max(now, earliest),
      expires: now + keptMs(type)
    })
  })
  yield* sql`
    insert into system_notices (team_id, type, subject_id, facts, due_at, expires_at)
    select n.team_id, n.type, n.subject_id, n.facts::jsonb, n.due, n.expires from ${written.unnest(sql, rows)}
    on conflict (subject_id, type) do update
    set facts = excluded.facts, due_at = excluded.due_at, expires_at = excluded.expires_at`
})

/**
 * Records the destinations whose state differs from the state that their team knows. The message is decided when it is due, so a destination that
 * recovers before that is not mentioned. To be called in a transaction.
 */
export const noteHealth = Effect.fnUntraced(function* (
  destinations: ReadonlyArray<string>,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  if (destinations.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const ids = Columns.text(destinations)
  const at = new Date(now)
  const type = "destination.failing" satisfies SystemEventType
  const window = `${systemEventOf(type).windowMs} milliseconds`
  const isFailing = sql.literal(
    `exists (select from issues i where i.destination_id = d.id and i.status <> 'resolved')`
  )
  yield* sql`
    insert into system_notices (team_id, type, subject_id, facts, due_at, expires_at)
    select d.team_id, ${type}, d.id, '{}', ${at}, ${new Date(now + keptMs(type))}
    from destinations d
    where d.id = any(${ids}) and ${isFailing} and exists (
      select from sources s
      where s.type = ${systemType} and s.team_id = d.team_id and s.deleted_at is null and s.disabled_at is null
    )
    on conflict (subject_id, type) do update
    set due_at = greatest(excluded.due_at, system_notices.emitted_at + ${window}::interval), expires_at = excluded.expires_at
    where system_notices.due_at is null and system_notices.reported is distinct from 'failing'`
  yield* sql`
    update system_notices n set due_at = ${at}
    from destinations d
    where d.id = any(${ids}) and n.subject_id = d.id and n.type = ${type} and n.due_at is null and n.reported = 'failing'
      and not ${isFailing}`
})
