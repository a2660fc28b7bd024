import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { DatabaseLink } from "../../../test/support/DatabaseLink.ts"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { withPartitions } from "../src/Partitions.ts"

const english = Buffer.from("no partition of relation")
/** As long, because the length of a message goes before it. */
const german = Buffer.from("keine Partition von Rel.")

/** The server of this run has one language; on this way it has another. */
const translate = (answer: Buffer): Buffer => {
  const at = answer.indexOf(english)
  if (at >= 0) german.copy(answer, at)
  return answer
}

const germanServer = Layer.unwrap(
  Effect.gen(function* () {
    const url = Redacted.value(yield* freshDatabase)
    const link = yield* Effect.acquireRelease(
      Effect.promise(() => DatabaseLink.to(url, translate)),
      (open) => Effect.promise(() => open.close())
    )
    return Database.layer({ url: Redacted.make(link.url) })
  })
)

it.live("makes partitions that are missing, whatever language the server says it in", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* migrate
    yield* sql`insert into teams (id, name) values ('tm_one', 'One')`
    const partitions = yield* sql<{ name: string }>`
      select inhrelid::regclass::text as name from pg_inherits where inhparent = 'proxy_exchanges'::regclass`
    for (const { name } of partitions) yield* sql.unsafe(`drop table ${name}`)
    const at = new Date()
    const insert = (status: number) => sql`
      insert into proxy_exchanges (id, team_id, source_id, request_id, target_url, http_method, response_status,
        response_body_truncated, started_at, responded_at, created_at)
      values (${newId(prefixes.proxyExchange, at.getTime())}, 'tm_one', 'src_one', 'req_one', 'https://target.test', 'POST',
        ${status}, false, ${at}, ${at}, ${at})`

    const { reason } = yield* Effect.flip(insert(200))
    assert.include(String(reason.cause), german.toString())
    yield* withPartitions(sql)(insert(200))
    assert.deepStrictEqual(yield* sql`select response_status from proxy_exchanges`, [{ response_status: 200 }])

    // A violated check has the same SQLSTATE, and no partition mends it: it is not run again.
    yield* sql`alter table proxy_exchanges add constraint "no partition" check (response_status < 600)`
    let runs = 0
    const violating = Effect.suspend(() => {
      runs++
      return insert(700)
    })
    assert.strictEqual((yield* Effect.flip(withPartitions(sql)(violating))).reason._tag, "ConstraintError")
    assert.strictEqual(runs, 1)
  }).pipe(Effect.provide(germanServer), Effect.scoped)
)
