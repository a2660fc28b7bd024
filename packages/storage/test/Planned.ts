import { PgTypes } from "@effect/sql-pg"
import { Effect } from "effect"
import { type SqlError, Statement } from "effect/sql"

interface Node {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Index Name"?: string
  readonly "Actual Loops": number
  readonly Plans?: ReadonlyArray<Node>
}

/** A table that a plan may read, by which index, and how often it was. */
export interface Read {
  readonly relation: string
  readonly index: string | undefined
  readonly loops: number
}

export interface Plan {
  readonly text: string
  readonly reads: ReadonlyArray<Read>
}

const nodesOf = (node: Node): ReadonlyArray<Node> => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

/**
 * Runs statements of the event path; answers how the server carries out each by the plan that it keeps, which is made for whatever
 * parameters: by those of its client's session, in a transaction that is given up. Needs pools of one connection.
 */
export const planned = Effect.fnUntraced(function* <A, E, R>(run: Effect.Effect<A, E, R>) {
  const plans: Array<Plan> = []
  yield* Effect.provideService(run, Statement.CurrentTransformer, (statement, sql) =>
    Effect.gen(function* () {
      const [text, parameters] = statement.compile()
      plans.push({ text, reads: yield* Effect.orDie(explain(sql, text, parameters)) })
      return statement
    }).pipe(Effect.provideService(Statement.CurrentTransformer, undefined))
  )
  return plans
})

/** The type that the client binds a value with; 0: the server is to find out. */
const oidOf = (value: unknown): number => {
  if (PgTypes.isParameter(value)) return value.oid
  if (value instanceof Date) return PgTypes.OID.timestamptz
  if (typeof value === "number") return PgTypes.OID.int4
  if (typeof value === "boolean") return PgTypes.OID.bool
  return Array.isArray(value) ? PgTypes.OID.textArray : 0
}

const explain = Effect.fnUntraced(function* (
  sql: Statement.Constructor,
  text: string,
  parameters: ReadonlyArray<unknown>
): Effect.fn.Return<ReadonlyArray<Read>, SqlError.SqlError> {
  const [declared] = yield* sql.unsafe<{ types: string | null }>(
    `select string_agg(case oid when 0 then 'unknown' else oid::regtype::text end, ', ' order by n) as types
     from unnest($1::oid[]) with ordinality as t (oid, n)`,
    [`{${parameters.map(oidOf).join(",")}}`]
  ).unprepared
  yield* sql.unsafe(`prepare explained${declared!.types === null ? "" : ` (${declared!.types})`} as ${text}`)
  const [prepared] = yield* sql.unsafe<{ types: ReadonlyArray<string> }>(
    "select parameter_types::text[] as types from pg_prepared_statements where name = 'explained'"
  )
  const { types } = prepared!
  const values = yield* sql.unsafe<{ literals: ReadonlyArray<string> }>(
    `select array[${types.map((type, i) => `quote_nullable(($${i + 1}::${type})::text)`).join(", ")}]::text[] as literals`,
    parameters
  ).unprepared
  const given = values[0]!.literals.map((literal, i) => `${literal}::${types[i]}`).join(", ")
  yield* sql.unsafe("begin")
  const [row] = yield* sql.unsafe<{ "QUERY PLAN": ReadonlyArray<{ Plan: Node }> }>(
    `explain (analyze, timing off, summary off, format json) execute explained${types.length === 0 ? "" : ` (${given})`}`
  ).unprepared
  yield* sql.unsafe("rollback")
  yield* sql.unsafe("deallocate explained")
  return nodesOf(row!["QUERY PLAN"][0]!.Plan).flatMap((node) =>
    node["Node Type"].includes("Scan") && node["Relation Name"] !== undefined
      ? [{ relation: node["Relation Name"], index: node["Index Name"], loops: node["Actual Loops"] }]
      : []
  )
})
