import { describe, expect, it as test, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import type { Rule } from "@tidegate/model/Rule"
import { requestInput } from "@tidegate/rules/RequestInput"
import { Connections } from "@tidegate/storage/control/Connections"
import { Transformations } from "@tidegate/storage/control/Transformations"
import { Inbox } from "../src/Connection/Inbox.ts"
import type { PendingRequest } from "../src/Connection/PendingRequest.ts"
import { Batch } from "../src/dispatch/Batch.ts"
import { makeRouteWorker } from "../src/Connection/RouteWork.ts"
import { SharedBytes } from "@tidegate/runtime/SharedBytes"
import { Lease } from "../src/Lease.ts"
import {
  deduplicate,
  handed,
  noTransformation,
  pending,
  sandbox,
  type Sent,
  stored,
  team,
  transformation,
  world
} from "./RouteWorld.ts"

const filter: Rule = { type: "filter", path: { $neq: "/no" } }

/**
 * A connection that knows its settings, because it has worked off a request of its own, and requests that are handed to it. What SQL has
 * of them says so, if it is read.
 */
const opened = Effect.fnUntraced(function* (
  rules: ReadonlyArray<Rule>,
  sent: ReadonlyArray<Sent>,
  { provided }: Pick<ReturnType<typeof sandbox>, "provided"> = noTransformation
) {
  const { connection } = yield* pending(rules, [{ path: "/first", body: { id: "first" } }])
  const routes = (yield* makeRouteWorker)(connection.id)
  routes.wake()
  yield* routes.work.pipe(provided)
  const { ids, requests } = yield* pending(rules, sent, connection)
  const sql = yield* SqlClient.SqlClient
  yield* sql`update requests set path = '/read' where id = any(${ids})`
  return { connection, ids, requests, routes, hand: () => routes.offer(new Batch(requests)) }
})

/** Those of the requests that became events, and what is left of them. */
const outcomeOf = Effect.fnUntraced(function* (connectionId: string, ids: ReadonlyArray<string>) {
  const { counts, events, ignored, left } = yield* stored(connectionId)
  const own = <A extends { readonly request_id: string }>(rows: ReadonlyArray<A>) =>
    rows.filter(({ request_id }) => ids.includes(request_id))
  return { events: own(events), ignored: own(ignored), left, counts: counts.filter(({ id }) => ids.includes(id)) }
})

layer(world, { excludeTestServices: true })("Requests handed over to a connection", (it) => {
  it.effect("Handed-over requests are routed without a read, and their events are handed on", () =>
    Effect.gen(function* () {
      const { connection, hand, ids, routes } = yield* opened([filter, deduplicate], [{ path: "/no" }, { path: "/a" }])
      hand()
      yield* routes.work.pipe(noTransformation.provided)
      const { counts, events, ignored, left } = yield* outcomeOf(connection.id, ids)
      expect(left).toBe(0)
      expect(ignored).toMatchObject([{ request_id: ids[0], cause: "FILTERED" }])
      expect(events.map(({ request_id }) => request_id)).toStrictEqual([ids[1]])
      expect((yield* handed(events[0]!.id)).payload.path).toBe("/a")
      expect(counts.map((row) => [row.events_count, row.ignored_count])).toStrictEqual([
        [0, 1],
        [1, 0]
      ])
    })
  )

  it.effect("Handed-over requests are read again if the connection has changed since", () =>
    Effect.gen(function* () {
      const { connection, hand, ids, routes } = yield* opened([filter, deduplicate], [{ path: "/a" }])
      const connections = yield* Connections
      const rules: ReadonlyArray<Rule> = [deduplicate, { type: "filter", path: "/a" }]
      yield* connections.update(team, connection.id, (row) => Result.succeed({ ...row, rules }))
      hand()
      yield* routes.work.pipe(noTransformation.provided)
      // The old rules let it through, and so would the new ones what was handed over.
      const { events, ignored, left } = yield* outcomeOf(connection.id, ids)
      expect([events.length, ignored.map(({ cause }) => cause), left]).toStrictEqual([0, ["FILTERED"], 0])
    })
  )

  it.effect("Handed-over requests are not transformed by outdated code", () =>
    Effect.gen(function* () {
      const id = yield* transformation()
      const code = sandbox(() => ({}))
      const { calls, provided } = code
      const rules: ReadonlyArray<Rule> = [{ type: "transform", transformation_id: id }]
      const { connection, hand, ids, routes } = yield* opened(rules, [{ path: "/a" }], code)
      const transformations = yield* Transformations
      yield* transformations.update(team, id, (row) => Result.succeed({ ...row, env: "unchanged", code: "other" }))
      hand()
      yield* routes.work.pipe(provided)
      expect(calls.map(({ code }) => code)).toStrictEqual([calls[0]!.code, calls[0]!.code, "other"])
      const { events, left } = yield* outcomeOf(connection.id, ids)
      expect([events.length, left]).toStrictEqual([1, 0])
      const sql = yield* SqlClient.SqlClient
      const runs = yield* sql`select code_hash from executions where request_id = ${ids[0]!}`
      expect(runs.map((run) => run["code_hash"])).toStrictEqual([calls[2]!.codeHash])
    })
  )

  it.effect("A connection that lost its shard leaves handed-over requests to the next owner", () =>
    Effect.gen(function* () {
      let isHeld = true
      // As many as are read at once: it does not read on when it has been refused.
      const sent = Array.from({ length: 200 }, (_, id) => ({ path: "/", body: { id } }))
      const lease = Lease.of({ isHeld: () => isHeld, heldMs: () => Number.POSITIVE_INFINITY })
      const { connection, hand, ids, routes } = yield* opened([deduplicate], sent).pipe(
        Effect.provideService(Lease, lease)
      )
      isHeld = false
      hand()
      yield* routes.work.pipe(noTransformation.provided)
      routes.wake()
      yield* routes.work.pipe(noTransformation.provided)
      expect(yield* outcomeOf(connection.id, ids)).toMatchObject({ events: [], left: 200 })
      isHeld = true
      routes.close()
      hand()
      yield* routes.work.pipe(noTransformation.provided)
      expect(yield* outcomeOf(connection.id, ids)).toMatchObject({ events: [], left: 200 })
    })
  )

  it.effect("A request that is both handed over and read is routed once", () =>
    Effect.gen(function* () {
      const code = sandbox(() => ({}))
      const { calls, provided } = code
      const rules: ReadonlyArray<Rule> = [{ type: "transform", transformation_id: yield* transformation() }]
      const sent = Array.from({ length: 300 }, (_, i) => ({ path: `/${i}` }))
      const { connection, hand, ids, routes } = yield* opened(rules, sent, code)
      hand()
      routes.wake()
      yield* routes.work.pipe(provided)
      const { events, left } = yield* outcomeOf(connection.id, ids)
      expect([events.length, left, calls.length]).toStrictEqual([300, 0, 301])
    })
  )

  it.effect("Handed-over requests are duplicates of earlier handed-over ones", () =>
    Effect.gen(function* () {
      const sent = [0, 1, 2, 1_500].map((at) => ({ path: `/${at}`, body: { id: 1 }, at }))
      const { connection, ids, requests, routes } = yield* opened([deduplicate], sent)
      for (const request of requests) routes.offer(new Batch([request]))
      const first = requests.slice(0, 1)
      routes.offer(new Batch(first))
      yield* routes.work.pipe(noTransformation.provided)
      const { events, ignored } = yield* outcomeOf(connection.id, ids)
      expect(events.map(({ request_id }) => request_id)).toStrictEqual([ids[0], ids[3]])
      expect(ignored.map(({ cause, request_id }) => [request_id, cause])).toStrictEqual([
        [ids[1], "DEDUPLICATED"],
        [ids[2], "DEDUPLICATED"]
      ])
    })
  )
})

const request = (id: string, bytes: number): PendingRequest => {
  const received = { method: "POST", path: "/", query: "", headers: {} }
  const body = new Uint8Array(bytes)
  return {
    id,
    teamId: team,
    sourceId: "src",
    ingestedAt: 0,
    presented: null,
    body,
    verified: false,
    originalIp: null,
    isReplay: false,
    counted: true,
    orderingKey: null,
    inOrder: false,
    received,
    input: requestInput(received, body)
  }
}

describe("Memory of handed-over requests", () => {
  test("Handed-over requests of all connections share a limit in bytes, and count until they are done", () => {
    // Each weighs 4 KiB.
    const bytes = new SharedBytes(10 * 4_096)
    const one = new Inbox(bytes.share())
    const other = new Inbox(bytes.share())
    const requests = Array.from({ length: 9 }, (_, i) => request(`${i}`, 0))
    // One may have as much as it leaves free, so that there is room for whoever comes.
    expect(requests.map((each) => one.add(each))).toStrictEqual(requests.map((_, i) => i < 5))
    expect(one.add(requests[0]!)).toBe(true)
    expect(requests.map((each) => other.add(each)).filter(Boolean)).toHaveLength(3)
    const taken = one.take(3)
    expect(taken.map(({ id }) => id)).toStrictEqual(["0", "1", "2"])
    expect(one.add(requests[5]!)).toBe(false)
    taken.forEach(one.done)
    expect(one.add(requests[5]!)).toBe(true)
    one.close()
    expect([one.size, requests.slice(2, 6).map((each) => other.add(each))]).toStrictEqual([
      0,
      [true, true, true, false]
    ])
  })
})
