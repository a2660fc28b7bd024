import { Clock, Effect, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import * as Columns from "../journal/Columns.ts"
import { type SecretAddress, Secrets } from "./Secrets.ts"
import { sealedColumns } from "../Tables.ts"
import { query } from "../Transaction.ts"

/*
 * Key rotation: counts values whose key is not the first of the ring, and encrypts them again. It runs beside a working gateway:
 * statements are bounded, values that have been written meanwhile are skipped, and it rests half of the time. It has no state: a
 * new run skips what is done.
 */

/** Rows that one statement reads, and rows that one statement writes. */
const lookedAt = 5_000
const writtenAtOnce = 200

type Column = (typeof sealedColumns)[number]

interface Found {
  readonly row: string
  readonly value: string
  readonly address: SecretAddress
}

interface Page {
  readonly found: ReadonlyArray<Found>
  /** The last row that was read; null: there are no more. */
  readonly last: string | null
}

/** The values of a page of rows whose key is not the first. */
const pageOf = Effect.fnUntraced(function* (
  { column, of: [table, id], row, table: stored, team }: Column,
  after: string
): Effect.fn.Return<Page, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const [first] = (yield* Secrets).names
  const names = [first!.id, first!.fingerprint]
  const rows = yield* sql<{ row: string; last: string; team_id: string; id: string; value: string | null }>`
    with page as materialized (
      select ${sql(row)} as row, ${team === null ? sql`''` : sql(team)} as team_id, ${sql(id)} as id, ${sql(column)} as value
      from ${sql(stored)} where ${sql(row)} > ${after} order by ${sql(row)} limit ${lookedAt}),
    last as (select max(row) as row from page)
    select page.row, last.row as last, page.team_id, page.id, page.value from last left join page
      on page.value ~ '^v[0-9]+[.]' and split_part(page.value, '.', 2) <> all(${names})
    where last.row is not null order by page.row`
  return {
    last: rows[0]?.last ?? null,
    found: rows.flatMap(({ id, row, team_id, value }) =>
      value === null ? [] : [{ row, value, address: { team_id, table, column, id } }]
    )
  }
})

/** Goes through all rows of a column. After each step it rests for as long as the step took. */
const overPages = Effect.fnUntraced(function* <R>(
  column: Column,
  each: (found: ReadonlyArray<Found>) => Effect.Effect<void, GatewayError, R>
): Effect.fn.Return<void, GatewayError, R | SqlClient.SqlClient | Secrets> {
  let after: string | null = ""
  while (after !== null) {
    const since = yield* Clock.currentTimeMillis
    const page: Page = yield* query(pageOf(column, after))
    yield* each(page.found)
    after = page.last
    yield* Effect.sleep((yield* Clock.currentTimeMillis) - since)
  }
})

/** How many values of a column use a key that is not the first. */
export interface Use {
  readonly table: string
  readonly column: string
  readonly key: string
  /** Whether the ring has that key. If not, its values cannot be decrypted. */
  readonly isInRing: boolean
  readonly values: number
}

const keyOf = (value: string): string => value.split(".")[1] ?? ""

/** Where keys other than the first are still used. */
export const usesOfOldKeys: Effect.Effect<ReadonlyArray<Use>, GatewayError, SqlClient.SqlClient | Secrets> = Effect.gen(
  function* () {
    const { names } = yield* Secrets
    const inRing = new Map(names.flatMap(({ fingerprint, id }) => [[fingerprint, id] as const, [id, id] as const]))
    const uses: Array<Use> = []
    for (const of of sealedColumns) {
      const { column, table } = of
      const counts = new Map<string, number>()
      yield* overPages(of, (found) =>
        Effect.sync(() => {
          for (const { value } of found) counts.set(keyOf(value), (counts.get(keyOf(value)) ?? 0) + 1)
        })
      )
      for (const [key, values] of counts) {
        uses.push({ table, column, key: inRing.get(key) ?? key, isInRing: inRing.has(key), values })
      }
    }
    return uses
  }
)

/** The result for the values of one column. */
export interface Renewed {
  readonly table: string
  readonly column: string
  readonly renewed: number
  /** Values that cannot be decrypted: their key is not in the ring, or they were altered. They stay as they are. */
  readonly unreadable: number
}

/**
 * Writes each value that has not changed meanwhile; a changed one uses the first key already. The range from the first to the
 * last row keeps other days' partitions out of the statement.
 */
const write = Effect.fnUntraced(function* (
  { column, row, table }: Column,
  next: ReadonlyArray<readonly [row: string, was: string, value: string]>
) {
  const sql = yield* SqlClient.SqlClient
  const ids = next.map(([id]) => id)
  const [first, last] = Columns.bounds(ids)
  return (yield* query(sql`
    update ${sql(table)} t set ${sql(column)} = n.value
    from unnest(${ids}::text[], ${next.map(([, was]) => was)}::text[],
      ${next.map(([, , value]) => value)}::text[]) n (id, was, value)
    where t.${sql(row)} = n.id and t.${sql(row)} collate "C" >= ${first} and t.${sql(row)} collate "C" <= ${last} and t.${sql(column)} = n.was
    returning 1`)).length
})

const renewColumn = Effect.fnUntraced(function* (of: Column, report: (soFar: Renewed) => Effect.Effect<void>) {
  const { renew } = yield* Secrets
  const { column, table } = of
  const soFar = { table, column, renewed: 0, unreadable: 0 }
  yield* overPages(
    of,
    Effect.fnUntraced(function* (found) {
      for (let at = 0; at < found.length; at += writtenAtOnce) {
        const some = found.slice(at, at + writtenAtOnce)
        const next = some.flatMap(({ address, row, value }) => {
          const renewed = renew(address, value)
          return Result.isFailure(renewed) ? [] : [[row, value, renewed.success] as const]
        })
        soFar.unreadable += some.length - next.length
        if (next.length > 0) soFar.renewed += yield* write(of, next)
      }
      if (found.length > 0) yield* report({ ...soFar })
    })
  )
  return soFar
})

/**
 * Encrypts everything with the first key. Before it runs, every process has to have that key first in its ring: a process without
 * it would still write with the old key, or could not read the new values. A copy of a value that was made meanwhile is found,
 * because its table comes after the table of the original. What an open transaction is about to write is left to the next run,
 * which `usesOfOldKeys` shows to be necessary.
 */
export const renewAll = Effect.fnUntraced(function* (
  report: (soFar: Renewed) => Effect.Effect<void>
): Effect.fn.Return<ReadonlyArray<Renewed>, GatewayError, SqlClient.SqlClient | Secrets> {
  return yield* Effect.forEach(sealedColumns, (column) => renewColumn(column, report))
})
