import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { type BulkNarrowing, type BulkOf, filtersOf } from "@tidegate/model/BulkOperation"
import { newId, prefixes } from "@tidegate/model/Ids"
import { createOperation } from "../../src/bulk/BulkOperations.ts"
import { stepOperation } from "../../src/bulk/BulkSteps.ts"
import { eventBuckets } from "../../src/reads/EventTally.ts"
import * as EventReads from "../../src/reads/EventReads.ts"
import * as IgnoredEventReads from "../../src/reads/IgnoredEventReads.ts"
import { eventFilterOf, ignoredFilterOf, requestFilterOf, runFilterOf } from "../../src/reads/Narrowing.ts"
import * as RequestReads from "../../src/reads/RequestReads.ts"
import { requestBuckets } from "../../src/reads/RequestTally.ts"
import * as RunReads from "../../src/reads/RunReads.ts"
import * as ControlPlane from "../controlPlane.ts"

/*
 * Every declared filter selects the same rows in the list, the count, the series and the plan of a bulk operation. Of each there is a row that meets it, and one that does not.
 */

const { createConnection, insertEvent, team } = ControlPlane

/** The kinds of records that have counts and series beside their lists. */
type Counted = Exclude<BulkOf, "workflow_runs">
const countedKinds = ["requests", "events", "ignored_events"] as const satisfies ReadonlyArray<Counted>
const from = new Date(Date.now() - 3_600_000).toISOString()

/** Rows of all kinds: a value for each filter, and the ids that meet it. */
const world = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // These rows were not written by the event path: rollups know nothing of them.
  yield* sql`insert into settings (name, value) values ('counts_exact_from', ${String(Date.now() + 7_200_000)})
    on conflict (name) do update set value = excluded.value`
  const [one, two] = [yield* createConnection(), yield* createConnection()]
  const made = yield* Effect.forEach(["FAILED", "FAILED", "SUCCESSFUL", "PENDING", "FAILED"], (state, n) =>
    insertEvent(n === 0 ? one : two, { state })
  )
  const [first, second, third, fourth, retry] = made as [string, string, string, string, string]
  const operation = newId(prefixes.bulkOperation, Date.now())
  yield* sql`update events set response_status = 503, error_code = 'BAD_RESPONSE' where id = ${first}`
  yield* sql`update events set response_status = 404, error_code = 'TIMEOUT' where id = ${second}`
  yield* sql`update events set resolved_at = now(), resolved_by_event_id = ${third} where id = ${second}`
  yield* sql`update events set retry_kind = 'bulk', retry_operation_id = ${operation}, retry_parent_event_id = ${first}
    where id = ${retry}`
  const requestOf = Effect.fnUntraced(function* (id: string) {
    const [row] = yield* sql<{ request_id: string }>`select request_id from events where id = ${id}`
    return row!.request_id
  })
  const requests = yield* Effect.forEach(made, requestOf)
  const [r1, r2, r3] = requests as [string, string, string]
  yield* sql`update events set request_id = ${r1} where id = ${retry}`
  yield* sql`update requests set status = 'rejected', rejection_cause = 'VERIFICATION_FAILED', verified = false where id = ${r1}`
  yield* sql`update requests set status = 'rejected', rejection_cause = 'METHOD_NOT_ALLOWED' where id = ${r2}`
  yield* sql`update requests set verified = true, external_id = 'order-1', retry_kind = 'bulk', retry_operation_id = ${operation}
    where id = ${r3}`
  const ignored = [newId(prefixes.ignoredEvent, Date.now()), newId(prefixes.ignoredEvent, Date.now())] as const
  for (const [n, id] of ignored.entries()) {
    const of = n === 0 ? one : two
    yield* sql`insert into ignored_events (id, team_id, request_id, connection_id, source_id, cause, meta, created_at)
      values (${id}, ${team}, ${n === 0 ? r1 : r2}, ${of.id}, ${of.source_id}, ${n === 0 ? "FILTERED" : "DEDUPLICATED"}, '[]', now())`
  }
  const all = { events: made, requests, ignored_events: [...ignored] }
  const meets: {
    readonly [of in Counted]: { readonly [name: string]: readonly [BulkNarrowing[string], ReadonlyArray<string>] }
  } = {
    events: {
      status: [
        ["SUCCESSFUL", "QUEUED"],
        [third, fourth]
      ],
      request_id: [
        [r1, r3],
        [first, third, retry]
      ],
      source_id: [[one.source_id], [first]],
      connection_id: [[one.id], [first]],
      destination_id: [[two.destination_id], [second, third, fourth, retry]],
      batch_operation_id: [operation, [retry]],
      is_retry: [false, [first, second, third, fourth]],
      retry_kind: ["bulk", [retry]],
      error_code: [["TIMEOUT"], [second]],
      response_status: [
        ["500-599", "404"],
        [first, second]
      ],
      resolved: [true, [second]],
      q: [r1, [first, retry]]
    },
    requests: {
      status: [["rejected"], [r1, r2]],
      verified: [true, [r3]],
      rejection_cause: [["VERIFICATION_FAILED"], [r1]],
      source_id: [[one.source_id], [r1]],
      connection_id: [[one.id], [r1]],
      batch_operation_id: [operation, [r3]],
      is_retry: [true, [r3]],
      retry_kind: ["bulk", [r3]],
      q: ["order-", [r3]]
    },
    ignored_events: {
      cause: [["FILTERED"], [ignored[0]]],
      request_id: [[r2], [ignored[1]]],
      source_id: [[two.source_id], [ignored[1]]],
      connection_id: [[one.id], [ignored[0]]]
    }
  }
  return { all, meets, first, operation }
})

/** Runs of two workflows: a value for each filter, and the ids that meet it. */
const runWorld = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const sources = [(yield* createConnection()).source_id, (yield* createConnection()).source_id] as const
  const workflows = [newId(prefixes.workflow, Date.now()), newId(prefixes.workflow, Date.now())] as const
  const runs = [0, 1, 2].map(() => newId(prefixes.workflowRun, Date.now()))
  const [first, second, third] = runs as [string, string, string]
  for (const [n, id] of workflows.entries()) {
    yield* sql`insert into workflows (id, team_id, name, source_id, version, status, steps, edges, definition_hash, created_at, updated_at)
      values (${id}, ${team}, ${id}, ${sources[n]!}, 1, 'disabled', '[]', '[]', '', now(), now())`
  }
  for (const [n, id] of runs.entries()) {
    const own = n === 0 ? 0 : 1
    yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, outcome, steps_count,
        error_code, error_step_id, label, created_at, updated_at)
      values (${id}, ${team}, ${workflows[own]}, ${newId(prefixes.request, Date.now())}, ${sources[own]}, 1,
        ${n === 2 ? "queued" : "failed"}, ${["failed", "cancelled", null][n]!}::text, 1,
        ${["TIMEOUT", "RUN_CANCELLED", null][n]!}::text, ${["send", "wait", null][n]!}::text,
        ${["order 1", "order 2", null][n]!}::text, now(), now())`
  }
  yield* sql`insert into workflow_steps (id, team_id, run_id, part, steps, previews, created_at)
    values (${newId(prefixes.workflowPart, Date.now())}, ${team}, ${second}, 1, '[]', '[["needle"]]', now())`
  const meets: { readonly [name: string]: readonly [BulkNarrowing[string], ReadonlyArray<string>] } = {
    workflow_id: [[workflows[0]], [first]],
    source_id: [[sources[1]], [second, third]],
    status: [["queued"], [third]],
    outcome: [["cancelled"], [second]],
    error_code: [["TIMEOUT"], [first]],
    error_step_id: [["wait"], [second]],
    label: ["order 1", [first]],
    label_prefix: ["order", [first, second]],
    text: ["NEEDLE", [second]]
  }
  return { meets, runs }
})

const page = { key: "test", window: { from }, cursor: undefined, limit: 100 }
const series = { from: Date.now() - 3_600_000, to: Date.now() + 60_000, step: 3_660_000 }

const listed = Effect.fnUntraced(function* (of: Counted, narrowing: BulkNarrowing) {
  if (of === "events") return (yield* EventReads.list(team, eventFilterOf(narrowing), page, { data: false })).models
  if (of === "requests") {
    const plain = { data: false, eventSummary: false }
    return (yield* RequestReads.list(team, requestFilterOf(narrowing), page, plain)).models
  }
  return (yield* IgnoredEventReads.list(team, ignoredFilterOf(narrowing), page)).models
})

const counted = Effect.fnUntraced(function* (of: Counted, narrowing: BulkNarrowing) {
  const input = { from }
  if (of === "events") return (yield* EventReads.count(team, eventFilterOf(narrowing), input)).total
  if (of === "requests") return (yield* RequestReads.count(team, requestFilterOf(narrowing), input)).total
  return (yield* IgnoredEventReads.count(team, ignoredFilterOf(narrowing), input)).total
})

/** What a series of it adds up to; null: there is none of these. */
const summed = Effect.fnUntraced(function* (of: Counted, narrowing: BulkNarrowing) {
  if (of === "ignored_events") return null
  const buckets =
    of === "events"
      ? (yield* eventBuckets(team, eventFilterOf(narrowing), series))!.buckets
      : (yield* requestBuckets(team, requestFilterOf(narrowing), series))!
  return buckets.reduce((sum, { count }) => sum + count, 0)
})

const types = {
  events: "event_bulk_retry",
  requests: "request_bulk_retry",
  ignored_events: "ignored_event_bulk_retry",
  workflow_runs: "workflow_run_bulk_retry"
} as const

const planned = Effect.fnUntraced(function* (of: BulkOf, narrowing: BulkNarrowing) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.bulkOperation, Date.now())
  const filter = { ...narrowing, from, to: new Date().toISOString() }
  yield* createOperation({
    id,
    team_id: team,
    type: types[of],
    filter,
    rate: null,
    confirmed: false,
    requested_by: null,
    shard: 1
  })
  const routing = { shardOf: () => 7, orderingKeyOf: () => null }
  while (!(yield* stepOperation(id, { targets: 10, overMs: 0 }, routing)).isOver) continue
  const rows = yield* sql<{ target_id: string }>`select target_id from bulk_targets where operation_id = ${id}`
  yield* sql`update bulk_operations set finished_at = now() where id = ${id}`
  return rows.map(({ target_id }) => target_id)
})

/** Each pair of the filters that have a value of their own, with the ids that meet both. */
const pairsOf = (filters: {
  readonly [name: string]: readonly [BulkNarrowing[string], ReadonlyArray<string>]
}): ReadonlyArray<readonly [narrowing: BulkNarrowing, ids: ReadonlyArray<string>]> => {
  const all = Object.entries(filters)
  return all.flatMap(([one, [value, ids]], n) =>
    all
      .slice(n + 1)
      .map(
        ([other, [also, those]]) => [{ [one]: value, [other]: also }, ids.filter((id) => those.includes(id))] as const
      )
  )
}

layer(ControlPlane.layer, { excludeTestServices: true })("Declared filters", (it) => {
  it.effect("A filter selects the same rows in lists, counts, series and plans of bulk operations", () =>
    Effect.gen(function* () {
      const { all, first, meets, operation } = yield* world
      for (const of of countedKinds) {
        const everything = [...all[of]].toSorted()
        expect((yield* listed(of, {})).map(({ id }) => id).toSorted()).toEqual(everything)
        for (const name of Object.keys(filtersOf[of])) {
          // What it means depends on the operation that is named beside it.
          const [value, ids] =
            name === "batch_operation_scope"
              ? ["targets", [first]]
              : (meets[of][name] ?? expect.unreachable(`${of}: ${name}`))
          const narrowing: BulkNarrowing =
            name === "batch_operation_scope" ? { batch_operation_id: operation, [name]: "targets" } : { [name]: value }
          const wanted = [...ids].toSorted()
          expect(wanted.length, name).toBeLessThan(everything.length)
          expect((yield* listed(of, narrowing)).map(({ id }) => id).toSorted(), `${of} by ${name}`).toEqual(wanted)
          expect(yield* counted(of, narrowing), `count of ${of} by ${name}`).toBe(wanted.length)
          const sum = yield* summed(of, narrowing)
          if (sum !== null) expect(sum, `series of ${of} by ${name}`).toBe(wanted.length)
          expect((yield* planned(of, narrowing)).toSorted(), `plan of ${of} by ${name}`).toEqual(wanted)
        }
        for (const [narrowing, ids] of pairsOf(meets[of])) {
          const [wanted, name] = [[...ids].toSorted(), Object.keys(narrowing).join(" and ")]
          expect((yield* listed(of, narrowing)).map(({ id }) => id).toSorted(), `${of} by ${name}`).toEqual(wanted)
          expect(yield* counted(of, narrowing), `count of ${of} by ${name}`).toBe(wanted.length)
          const sum = yield* summed(of, narrowing)
          if (sum !== null) expect(sum, `series of ${of} by ${name}`).toBe(wanted.length)
        }
      }
    })
  )

  it.effect("A filter of runs selects the same rows in the list and the plan of a bulk operation", () =>
    Effect.gen(function* () {
      const { meets, runs } = yield* runWorld
      for (const name of Object.keys(filtersOf.workflow_runs)) {
        const [value, ids] = meets[name] ?? expect.unreachable(name)
        const narrowing = { [name]: value }
        const list = yield* RunReads.activity(team, runFilterOf(narrowing), page)
        expect(list.models.map(({ id }) => id).toSorted(), name).toEqual([...ids].toSorted())
        expect((yield* planned("workflow_runs", narrowing)).toSorted(), `plan by ${name}`).toEqual([...ids].toSorted())
      }
      expect((yield* planned("workflow_runs", {})).toSorted()).toEqual(runs.toSorted())
    })
  )
})
