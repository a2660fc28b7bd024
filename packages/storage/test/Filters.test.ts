import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { FilterConditions, FilterRule, Rule } from "@tidegate/model/Rule"
import type { ConnectionFields } from "@tidegate/resources/Connection"
import { type FilterFields, maxFilters } from "@tidegate/resources/Filter"
import { Connections } from "../src/control/Connections.ts"
import { Filters } from "../src/control/Filters.ts"
import { holdFilters } from "../src/control/FilterLinks.ts"
import { Workflows } from "../src/workflows/Workflows.ts"
import type { Step } from "@tidegate/workflows/Definition"
import * as ControlPlane from "./controlPlane.ts"
import { isWaiting } from "./isWaiting.ts"

const { createConnection, createSource, otherTeam, team, concernedBy, unique, versionOf } = ControlPlane

const world = Layer.mergeAll(Filters.layer, Workflows.layer).pipe(Layer.provideMerge(ControlPlane.layer))

const fresh = () => newId(prefixes.filter, Date.now())
let versions = 0
/** Of conditions the store knows only their hash: any that is another one's is good. */
const fieldsOf = (conditions: FilterConditions, name = unique("filter")): FilterFields => ({
  name,
  conditions,
  hash: `sha256:${++versions}`
})
const create = (conditions: FilterConditions = { body: { a: 1 } }, of: string = team) =>
  Effect.flatMap(Filters, (filters) => filters.create(of, fresh(), fieldsOf(conditions)))
const change = (conditions: FilterConditions) => (stored: FilterFields) =>
  Result.succeed(fieldsOf(conditions, stored.name))
const link = (filter_id: string): Rule => ({ type: "filter", filter_id })

const rulesOf = Effect.fnUntraced(function* (id: string) {
  return (yield* (yield* Connections).get(team, id)).rules as unknown as ReadonlyArray<FilterRule>
})

const hashOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ hash: string }>`select hash from filters where id = ${id}`
  return row?.hash
})

layer(world, { excludeTestServices: true })("Filters in SQL", (it) => {
  it.effect("A stored filter is returned with each of its conditions", () =>
    Effect.gen(function* () {
      const filters = yield* Filters
      const id = fresh()
      const conditions = { path: "/x", body: { z: 1, a: [{ $gt: 1 }] } }
      const created = yield* filters.create(team, id, fieldsOf(conditions, "shape"))
      expect(created).toStrictEqual({
        id,
        team_id: team,
        name: "shape",
        conditions,
        headers: null,
        body: conditions.body,
        query: null,
        path: "/x",
        connections_count: 0,
        sample_connection_id: null,
        workflow_steps_count: 0,
        connections: [],
        created_at: created.created_at,
        updated_at: created.created_at
      })
      // As it was written, its order included.
      expect(JSON.stringify((yield* filters.get(team, id)).conditions)).toBe(JSON.stringify(conditions))
      expect(yield* filters.findByName(team, "shape")).toBe(id)
      expect(yield* filters.findByName(otherTeam, "shape")).toBe(null)
    })
  )

  /** A workflow of two filter steps that name it, and one that asks for itself. */
  const createWorkflow = Effect.fnUntraced(function* (filter_id: string, source_id: string) {
    const step = (id: string, rest: object) => ({ id, kind: "filter", ...rest })
    return yield* (yield* Workflows).create(team, newId(prefixes.workflow, Date.now()), {
      name: unique("workflow"),
      description: null,
      source_id,
      status: "active",
      steps: [
        step("first", { resource_id: filter_id, config: { note: "kept" } }),
        step("second", { resource_id: filter_id }),
        step("own_one", { config: { conditions: { body: { mine: true } } } })
      ],
      edges: [
        { source_type: "trigger", target_step_id: "first" },
        { source_type: "step", source_step_id: "first", target_step_id: "second" },
        { source_type: "step", source_step_id: "second", target_step_id: "own_one" }
      ],
      version: 1
    } as never)
  })

  it.effect("Deleting a filter leaves its conditions to workflow steps in a new workflow version", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const filters = yield* Filters
      const source = yield* createSource()
      const { id, name } = yield* create({ body: { a: 1 }, headers: { "x-env": "prod" } })
      const workflow = yield* createWorkflow(id, source.id)
      const connection = yield* createConnection({ rules: [link(id)] })
      expect((yield* filters.get(team, id)).workflow_steps_count).toBe(2)
      const before = yield* versionOf(source.id)
      // A change leaves them alone: a run looks at what is asked when it begins.
      yield* filters.update(team, id, change({ body: { a: 2 } }))
      expect((yield* (yield* Workflows).get(team, workflow.id)).version).toBe(1)

      expect(yield* filters.delete(team, id)).toStrictEqual({ detached_connections: 1 })
      const after = yield* (yield* Workflows).get(team, workflow.id)
      expect(after.version).toBe(2)
      expect(after.capabilities.runtime_executable).toBe(true)
      const steps = after.steps as ReadonlyArray<Step>
      const detached_from_filter = { id, name, detached_at: after.updated_at }
      expect(steps.map(({ config, resource_id }) => [resource_id, config])).toStrictEqual([
        [null, { note: "kept", conditions: { body: { a: 2 } }, detached_from_filter }],
        [null, { conditions: { body: { a: 2 } }, detached_from_filter }],
        [null, { conditions: { body: { mine: true } } }]
      ])
      expect(yield* versionOf(source.id)).toBeGreaterThan(before ?? 0)
      expect((yield* rulesOf(connection.id))[0]).toMatchObject({ body: { a: 2 }, detached_from_filter: { id } })
      const versions = yield* sql<{ version: number; hash: string; names: boolean }>`
        select version, definition_hash as hash,
          jsonb_path_query_array(steps, '$[*].resource_id') ? ${id} as names from workflow_versions
        where workflow_id = ${workflow.id} order by version`
      expect(versions.map(({ names, version }) => [version, names])).toStrictEqual([
        [1, true],
        [2, false]
      ])
      expect(versions[0]?.hash).not.toBe(versions[1]?.hash)
    })
  )

  it.effect("Workflow steps that link a filter during its deletion are detached or rejected", () =>
    Effect.gen(function* () {
      const source = yield* createSource()
      for (let round = 0; round < 10; round++) {
        const { id } = yield* create()
        const [made] = yield* Effect.all(
          [
            Effect.result(createWorkflow(id, source.id)),
            Effect.flatMap(Filters, (filters) => filters.delete(team, id))
          ],
          { concurrency: "unbounded" }
        )
        if (Result.isFailure(made)) {
          expect(made.failure.code).toBe("WORKFLOW_GRAPH_INVALID")
          continue
        }
        const { steps } = yield* (yield* Workflows).get(team, made.success.id)
        expect((steps as ReadonlyArray<Step>).map(({ resource_id }) => resource_id)).not.toContain(id)
      }
    })
  )

  it.effect("A rule that links a filter has its conditions and their version", () =>
    Effect.gen(function* () {
      const filters = yield* Filters
      const { id, name } = yield* create({ body: { a: 1 }, headers: { "x-env": "prod" } })
      const connection = yield* createConnection({ rules: [link(id), { type: "filter", path: "/own" }] })
      const [linked, own] = yield* rulesOf(connection.id)
      expect(linked).toStrictEqual({
        type: "filter",
        filter_id: id,
        filter_snapshot: { name, hash: yield* hashOf(id), captured_at: linked?.filter_snapshot?.captured_at },
        body: { a: 1 },
        headers: { "x-env": "prod" }
      })
      expect(own).toStrictEqual({ type: "filter", path: "/own" })
      const { destination_id, source_id } = connection
      const shown = yield* filters.get(team, id)
      expect([shown.connections_count, shown.sample_connection_id]).toStrictEqual([1, connection.id])
      expect(shown.connections).toStrictEqual([
        { id: connection.id, name: connection.name, source_id, destination_id, disabled_at: null, paused_at: null }
      ])
    })
  )

  it.effect("A rule cannot link a missing, deleted or another team's filter", () =>
    Effect.gen(function* () {
      const filters = yield* Filters
      const connections = yield* Connections
      const foreign = yield* create({ path: "/" }, otherTeam)
      const deleted = yield* create()
      yield* filters.delete(team, deleted.id)
      const there = yield* createConnection()
      for (const id of ["flt_unknown", foreign.id, deleted.id]) {
        const rules = (stored: ConnectionFields) => Result.succeed({ ...stored, rules: [link(id)] })
        const writes: ReadonlyArray<Effect.Effect<unknown, GatewayError, ControlPlaneStores>> = [
          createConnection({ rules: [link(id)] }),
          connections.update(team, there.id, rules)
        ]
        for (const write of writes) {
          const { code, data } = yield* Effect.flip(write)
          expect({ code, data }).toStrictEqual({ code: "NOT_FOUND", data: { resource_type: "filter", id } })
        }
      }
    })
  )

  it.effect("A filter change updates all linking rules and raises the versions of only their sources", () =>
    Effect.gen(function* () {
      const filters = yield* Filters
      const { id } = yield* create()
      const other = yield* create({ path: "/other" })
      const untouched = yield* createSource()
      const first = yield* createConnection({ rules: [link(id), link(other.id), { type: "delay", delay: 1 }] })
      const second = yield* createConnection({ rules: [link(other.id), link(id), link(id)] })
      const sources = [first.source_id, second.source_id]
      const before = yield* Effect.forEach([...sources, untouched.id], versionOf)
      const otherBefore = (yield* rulesOf(first.id))[1]
      yield* filters.update(team, id, change({ body: { a: 2 } }))
      const hash = yield* hashOf(id)
      const [linked, kept, delay] = yield* rulesOf(first.id)
      expect(linked).toMatchObject({ filter_id: id, filter_snapshot: { hash }, body: { a: 2 } })
      expect([kept, delay]).toStrictEqual([otherBefore, { type: "delay", delay: 1 }])
      expect((yield* rulesOf(second.id)).map((rule) => rule.body ?? rule.path)).toStrictEqual([
        "/other",
        { a: 2 },
        { a: 2 }
      ])
      const after = yield* Effect.forEach([...sources, untouched.id], versionOf)
      expect(after).toStrictEqual([before[0]! + 1, before[1]! + 1, before[2]])
      // What changes nothing concerns nobody.
      yield* filters.update(team, id, (stored) => Result.succeed(stored))
      expect(yield* Effect.forEach(sources, versionOf)).toStrictEqual(after.slice(0, 2))
    })
  )

  it.effect("A rule that links a filter shows the filter's new name", () =>
    Effect.gen(function* () {
      const filters = yield* Filters
      const { id } = yield* create()
      const connection = yield* createConnection({ rules: [link(id)] })
      const name = unique("renamed")
      yield* filters.update(team, id, (stored) => Result.succeed({ ...stored, name }))
      expect((yield* rulesOf(connection.id))[0]?.filter_snapshot?.name).toBe(name)
    })
  )

  it.effect("Deleting a filter leaves copies to the rules and reports the number of connections", () =>
    Effect.gen(function* () {
      const filters = yield* Filters
      const { id, name } = yield* create({ body: { a: 1 }, path: "/x" })
      const first = yield* createConnection({ rules: [link(id), link(id)] })
      const second = yield* createConnection({ rules: [link(id)] })
      const deleted = yield* createConnection({ rules: [link(id)] })
      yield* (yield* Connections).delete(team, deleted.id)
      const version = yield* versionOf(first.source_id)
      expect(yield* filters.delete(team, id)).toStrictEqual({ detached_connections: 2 })
      for (const { id: connection } of [first, second]) {
        for (const rule of yield* rulesOf(connection)) {
          expect(rule).toStrictEqual({
            type: "filter",
            body: { a: 1 },
            path: "/x",
            detached_from_filter: { id, name, detached_at: rule.detached_from_filter?.detached_at }
          })
        }
      }
      expect(yield* versionOf(first.source_id)).toBe(version! + 1)
      expect((yield* Effect.flip(filters.get(team, id))).code).toBe("NOT_FOUND")
      expect((yield* create()).connections_count).toBe(0)
    })
  )

  it.effect("A repeated delete of a filter gives the same answer", () =>
    Effect.gen(function* () {
      const filters = yield* Filters
      const { id } = yield* create()
      yield* createConnection({ rules: [link(id)] })
      const command = { id: "once" }
      const first = yield* filters.delete(team, id, command)
      expect(first).toStrictEqual({ detached_connections: 1 })
      expect(yield* filters.delete(team, id, command)).toStrictEqual(first)
      expect((yield* Effect.flip(filters.delete(team, id))).code).toBe("NOT_FOUND")
    })
  )

  it.effect("A filter change waits for a connection that is about to link it, and updates it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const filters = yield* Filters
      const { id } = yield* create()
      const connection = yield* createConnection()
      const held = yield* Deferred.make<void>()
      const commit = yield* Deferred.make<void>()
      const writer = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* holdFilters(sql, team, [link(id)])
            yield* Deferred.succeed(held, undefined)
            yield* Deferred.await(commit)
            const rules = JSON.stringify([{ ...link(id), body: { a: "old" } }])
            yield* sql`update connections set rules = ${rules} where id = ${connection.id}`
          })
        )
      )
      yield* Deferred.await(held)
      const changing = yield* Effect.forkChild(filters.update(team, id, change({ body: { a: "new" } })))
      yield* Effect.repeat(isWaiting, { until: (waiting) => waiting })
      yield* Deferred.succeed(commit, undefined)
      yield* Fiber.join(writer)
      yield* Fiber.join(changing)
      expect((yield* rulesOf(connection.id))[0]?.body).toStrictEqual({ a: "new" })
    })
  )

  it.effect("A filter change starts again if a connection has moved to another source meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const filters = yield* Filters
      const { id } = yield* create()
      const connection = yield* createConnection({ rules: [link(id)] })
      const other = yield* createSource()
      const before = yield* versionOf(other.id)
      const held = yield* Deferred.make<void>()
      const commit = yield* Deferred.make<void>()
      const mover = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`select from sources where id = any(${[connection.source_id, other.id]}) order by id for update`
            yield* Deferred.succeed(held, undefined)
            yield* Deferred.await(commit)
            yield* sql`update connections set source_id = ${other.id} where id = ${connection.id}`
          })
        )
      )
      yield* Deferred.await(held)
      const changing = yield* Effect.forkChild(filters.update(team, id, change({ body: { a: "new" } })))
      yield* Effect.repeat(isWaiting, { until: (waiting) => waiting })
      yield* Deferred.succeed(commit, undefined)
      yield* Fiber.join(mover)
      yield* Fiber.join(changing)
      expect((yield* rulesOf(connection.id))[0]?.body).toStrictEqual({ a: "new" })
      expect(yield* versionOf(other.id)).toBe(before! + 1)
    })
  )

  it.effect("Concurrent changes leave no rule without conditions and no outdated copy", () =>
    Effect.gen(function* () {
      const filters = yield* Filters
      const connections = yield* Connections
      const kept = yield* create({ body: { n: 0 } })
      const gone = yield* create({ body: { n: -1 } })
      const all = yield* Effect.forEach(Array.from({ length: 4 }), () => createConnection())
      const codeOf = (one: Effect.Effect<unknown, GatewayError>) =>
        Effect.match(one, { onSuccess: () => null, onFailure: ({ code }) => code })
      // What is written of one connection comes one after the other, as its actor has it.
      const writes = all.map(({ id }) =>
        Effect.forEach([0, 1, 2, 3], (n) => {
          const rules = [link(kept.id), ...(n % 2 === 0 ? [link(gone.id)] : [])]
          return codeOf(connections.update(team, id, (stored) => Result.succeed({ ...stored, rules })))
        })
      )
      const changes = Effect.forEach([1, 2, 3, 4], (n) =>
        codeOf(filters.update(team, kept.id, change({ body: { n } })))
      )
      const removal = Effect.map(codeOf(filters.delete(team, gone.id)), (end) => [end])
      const ends = yield* Effect.all([...writes, changes, removal], { concurrency: "unbounded" })
      // A link to what has gone is refused; nothing else is.
      expect(ends.flat().filter((end) => end !== null && end !== "NOT_FOUND")).toStrictEqual([])
      const { conditions } = yield* filters.get(team, kept.id)
      const hash = yield* hashOf(kept.id)
      for (const { id } of all) {
        for (const rule of yield* rulesOf(id)) {
          if (rule.filter_id === undefined) expect(rule).toMatchObject({ body: { n: -1 }, detached_from_filter: {} })
          else expect(rule).toMatchObject({ filter_id: kept.id, filter_snapshot: { hash }, body: conditions.body })
        }
      }
    })
  )

  it.effect("A filter change affects no destination", () =>
    Effect.gen(function* () {
      const filters = yield* Filters
      const { id } = yield* create()
      yield* createConnection({ rules: [link(id)] })
      const { cancelled, destinations } = yield* concernedBy((command) =>
        filters.update(team, id, change({ path: "/" }), command)
      )
      expect({ cancelled, destinations }).toStrictEqual({ cancelled: [], destinations: [] })
    })
  )

  it.effect("A team can have 500 filters, even if the last ones are created concurrently", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crowded = "tm_crowded"
      yield* sql`insert into teams (id, name) values (${crowded}, 'Crowded')`
      yield* sql`insert into filters (id, team_id, name, conditions, hash, created_at, updated_at)
        select 'flt_' || n, ${crowded}, 'f' || n, '{"path":"/"}', 'h', now(), now()
        from generate_series(1, ${maxFilters - 2}::int) n`
      const ends = yield* Effect.all(
        Array.from({ length: 6 }, () =>
          Effect.match(create({ path: "/" }, crowded), {
            onSuccess: () => "made",
            onFailure: ({ code, data }) => `${code} ${JSON.stringify(data)}`
          })
        ),
        { concurrency: "unbounded" }
      )
      expect(ends.toSorted()).toStrictEqual([
        ...Array.from({ length: 4 }, () => `FILTER_LIMIT_REACHED {"limit":${maxFilters},"resource":"filters"}`),
        "made",
        "made"
      ])
    })
  )
})

type ControlPlaneStores = Layer.Success<typeof world>
