import { Effect } from "effect"
import { SqlClient, type SqlError, Statement } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { tablesThat } from "../../src/Tables.ts"

/** Tables that no list may read through: their partitions too. */
const records = new RegExp(`^(?:${[...tablesThat("grows"), ...tablesThat("waits")].map(({ name }) => name).join("|")})`)

/**
 * Rows. The planner reads a small partition through, because an index would cost more. Soon after midnight (UTC) the partition of
 * today is small, so a scan of so few rows is no fault of the statement.
 */
const youngPartition = 3_000

interface Node {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Index Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly "Rows Removed by Index Recheck"?: number
  readonly "Shared Hit Blocks": number
  readonly "Shared Read Blocks": number
  readonly Plans?: ReadonlyArray<Node>
}

const nodesOf = (node: Node): ReadonlyArray<Node> => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

/** Runs a read; answers it, and how the database carried out each of its statements. `days`: partitions that it looked into. */
export const explained = Effect.fnUntraced(function* <A>(
  read: Effect.Effect<A, GatewayError | SqlError.SqlError, SqlClient.SqlClient>
) {
  const sql = yield* SqlClient.SqlClient
  const statements: Array<readonly [string, ReadonlyArray<unknown>]> = []
  const answer = yield* Effect.provideService(read, Statement.CurrentTransformer, (statement) =>
    Effect.sync(() => {
      statements.push(statement.compile())
      return statement
    })
  )
  const today = `_${new Date().toISOString().slice(0, 10).replaceAll("-", "")}`
  let rows = 0
  let blocks = 0
  let ms = 0
  const through: Array<string> = []
  const used = new Set<string>()
  const days = new Set<string>()
  for (const [text, parameters] of statements) {
    const [row] = yield* sql.unsafe<{ "QUERY PLAN": ReadonlyArray<{ Plan: Node; "Execution Time": number }> }>(
      `explain (analyze, buffers, timing off, format json) ${text}`,
      parameters
    ).unprepared
    const explanation = row!["QUERY PLAN"][0]!
    ms += explanation["Execution Time"]
    blocks += explanation.Plan["Shared Hit Blocks"] + explanation.Plan["Shared Read Blocks"]
    for (const node of nodesOf(explanation.Plan)) {
      const scanned = node["Node Type"].includes("Scan")
      if (scanned && node["Relation Name"] !== undefined) {
        const examined =
          node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0)
        rows += examined * node["Actual Loops"]
        if (node["Actual Loops"] > 0 && /_\d{8}/.test(node["Relation Name"])) days.add(node["Relation Name"])
      }
      const relation = node["Relation Name"] ?? ""
      const read = (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"]
      const allowed = relation.endsWith(today) ? youngPartition : 100
      if (node["Node Type"] === "Seq Scan" && records.test(relation) && read > allowed) through.push(relation)
      if (node["Index Name"] !== undefined) used.add(node["Index Name"].replace(/_\d{8}/, ""))
    }
  }
  return { answer, rows, blocks, ms, through, used: [...used], days: [...days] }
})
