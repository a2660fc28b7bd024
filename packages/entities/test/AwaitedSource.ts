import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Journal } from "@tidegate/storage/Journal"
import { Sources } from "@tidegate/storage/control/Sources"
import { sourceFields, team, unique } from "../../storage/test/controlPlane.ts"
import { nextMs } from "../../../test/support/NextMs.ts"
import { requestRecord } from "../../storage/test/requests.ts"
import { shardOf } from "../src/Shards.ts"

/** A source at which steps wait for requests. */

export const createSource = Effect.fnUntraced(function* () {
  const id = newId(prefixes.source, Date.now())
  return yield* (yield* Sources).create(team, id, sourceFields({ name: unique("paid") }))
})

/** A request that is stored as ingress stores it by its snapshot of the source. `when`: Unix ms; null: now. */
export const accept = Effect.fnUntraced(function* (
  source: string,
  body: unknown,
  when: number | null = null,
  knows = true
) {
  const at = when ?? (yield* nextMs)
  const sql = yield* SqlClient.SqlClient
  const journal = yield* Journal
  const sharding = yield* Sharding.Sharding
  const [row] = yield* sql<{ version: bigint; awaiting: Array<string> }>`
    select version, array(select workflow_id from workflow_awaited a where a.source_id = sources.id) as awaiting
    from sources where id = ${source}`
  const bytes = Buffer.from(JSON.stringify(body))
  const id = newId(prefixes.request, at)
  const awaiting = knows
    ? row!.awaiting.map((workflowId) => ({ workflowId, shard: shardOf(sharding, workflowId) }))
    : []
  const own = { teamId: team, sourceId: source, id, version: Number(row!.version), body: bytes, bodySize: bytes.length }
  const headers = JSON.stringify({ "content-type": "application/json", authorization: "Bearer abc" })
  const record = requestRecord(
    { ...own, events: [], runs: [], ingestedAt: at, headers, awaiting },
    { connection: "", destination: "" }
  )
  const outcome = yield* Effect.callback<string>((resume) => journal.accept(record, (of) => resume(Effect.succeed(of))))
  expect(outcome).toBe("committed")
  return id
})
