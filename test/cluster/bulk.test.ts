import { describe, expect } from "vitest"
import type { BulkOperation } from "@tidegate/model/BulkOperation"
import { idBound } from "@tidegate/model/Ids"
import { demoTeam } from "@tidegate/storage/teams/Teams"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"
import { waitUntil } from "../support/Waiting.ts"

/** Bulk operations whose runners are killed amid them: nothing is left out, and nothing is repeated. */

type Name = "a" | "b" | "edge"
type Of = "requests" | "events"

const sum = 2_000

/** So many requests of a source that were rejected, and as many whose event has failed. */
const seed = async (gateways: Gateways<Name>, origin: string) => {
  const source = await gateways.api("edge", "POST", "/sources", { name: "bulk" })
  const destination = await gateways.api("edge", "POST", "/destinations", { name: "bulk", config: { url: origin } })
  const connection = await gateways.api("edge", "POST", "/connections", {
    name: "bulk",
    source_id: source.id,
    destination_id: destination.id
  })
  const time = idBound("req_", Date.now() - 60_000).slice(4)
  await gateways.query(
    `insert into requests (id, team_id, source_id, status, verified, rejection_cause, method, path, query, headers, body, body_size,
      events_count, ignored_count, ingested_at, created_at, updated_at)
    select 'req_' || $1 || substr(md5(n::text), 1, 16), $2, $3, case when n <= $4 then 'rejected' else 'accepted' end, false,
      case when n <= $4 then 'SOURCE_AUTH_FAILED' end, 'POST', '/', '', '{}', convert_to(n::text, 'utf8'), length(n::text), 0, 0, now(), now(), now()
    from generate_series(1, 2 * $4) n`,
    [time, demoTeam, source.id, sum]
  )
  await gateways.query(
    `insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, failed, trigger, attempts, due_at,
      ingested_at, created_at, updated_at)
    select 'evt_' || substr(id, 5), team_id, id, $1, source_id, $2, 'FAILED', true, 'INITIAL', 1, null, now(), now(), now()
    from requests where source_id = $3 and status = 'accepted'`,
    [connection.id, destination.id, source.id]
  )
  return source.id
}

const stateOf = async (gateways: Gateways<Name>, of: Of, id: string): Promise<BulkOperation> => {
  const rows = await gateways.query(
    "select status, total_count, queued_count, failed_count from bulk_operations where id = $1",
    [id]
  )
  expect(rows.length, of).toBe(1)
  return rows[0] as unknown as BulkOperation
}

describe("Bulk operations after a runner is killed", () => {
  it("Bulk operations omit and repeat nothing when a runner is killed", async ({ running, target }) => {
    const gateways = await running({ a: "runner", b: "runner", edge: "edge" })
    await waitUntil("both runners hold shards", async () => (await gateways.readiness("b")).shards > 0)
    const source = await seed(gateways, target.origin)
    const create = async (of: Of, status: string) => {
      const { body } = await gateways.call("edge", "POST", `/v1/${of}/bulk_operations`, {
        headers: { authorization: "Bearer gwk_cluster_test_key", "content-type": "application/json" },
        body: JSON.stringify({ source_id: source, status })
      })
      return (JSON.parse(body) as BulkOperation).id
    }
    const operations = { events: await create("events", "FAILED"), requests: await create("requests", "rejected") }
    const queued = async () => {
      const both = await Promise.all(Object.entries(operations).map(([of, id]) => stateOf(gateways, of as Of, id)))
      return both.map(({ queued_count }) => queued_count)
    }
    // Whoever has them: one after the other is killed while there is something to do.
    await waitUntil("both have begun", async () => (await queued()).every((count) => count > 0), { everyMs: 5 })
    const first = await queued()
    await gateways.process("a").end("SIGKILL")
    await gateways.process("a").start()
    await waitUntil("a has shards again", async () => (await gateways.readiness("a")).shards > 0)
    await gateways.process("b").end("SIGKILL")
    const second = await queued()
    expect(Math.min(...first), "killed amid them").toBeLessThan(sum)

    for (const [of, id] of Object.entries(operations) as Array<[Of, string]>) {
      await waitUntil(`the operation of ${of} has come to its end`, async () => {
        const { status } = await stateOf(gateways, of, id)
        return status !== "RUNNING" && status !== "PLANNED"
      })
      expect([of, await stateOf(gateways, of, id)]).toEqual([
        of,
        { status: "COMPLETED", total_count: sum, queued_count: sum, failed_count: 0 }
      ])
    }
    expect(second.every((count) => count > 0)).toBe(true)
    const [made] = await gateways.query(
      `select (select count(*)::int from events where retry_operation_id = $1) as events,
        (select count(distinct retry_parent_event_id)::int from events where retry_operation_id = $1) as parents,
        (select count(*)::int from requests where retry_operation_id = $2) as requests,
        (select count(distinct retry_parent_request_id)::int from requests where retry_operation_id = $2) as originals,
        (select count(*)::int from bulk_targets) as left`,
      [operations.events, operations.requests]
    )
    expect(made).toEqual({ events: sum, parents: sum, requests: sum, originals: sum, left: 0 })

    const delivered = async () => {
      const [row] = await gateways.query(
        `select (select count(*)::int from events where retry_operation_id = $1 and state = 'SUCCESSFUL') as retries,
          (select count(*)::int from events e join requests r on r.id = e.request_id
            where r.retry_operation_id = $2 and e.state = 'SUCCESSFUL') as replays,
          (select count(*)::int from pending_routes) + (select count(*)::int from deliveries) as waiting`,
        [operations.events, operations.requests]
      )
      return row
    }
    await waitUntil("all have been delivered", async () => Number((await delivered())?.["waiting"]) === 0)
    expect(await delivered()).toEqual({ retries: sum, replays: sum, waiting: 0 })
    // A delivery that was on the wire may have come twice; none is missing.
    expect(new Set(target.received.map(({ body }) => Number(body.toString()))).size).toBe(2 * sum)
  })
})
