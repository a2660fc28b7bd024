import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { ActionConfig } from "@tidegate/resources/Action"
import { workflow, type WorkflowFields } from "@tidegate/resources/Workflow"
import { Actions } from "../src/workflows/Actions.ts"
import { Destinations } from "../src/control/Destinations.ts"
import { Filters } from "../src/control/Filters.ts"
import { Sources } from "../src/control/Sources.ts"
import { Transformations } from "../src/control/Transformations.ts"
import { saveAggregate } from "../src/workflows/WorkflowAggregates.ts"
import { Workflows } from "../src/workflows/Workflows.ts"
import * as ControlPlane from "./controlPlane.ts"
import { explained } from "./reads/Explained.ts"
import { listing } from "./listing.ts"

/* Which definitions name a resource. An index answers this for all definitions, however they were written. */

const { createDestination, createSource, team, unique } = ControlPlane
const fresh = (kind: keyof typeof prefixes) => newId(prefixes[kind], Date.now())

const world = Layer.mergeAll(Workflows.layer, Filters.layer, Actions.layer, Transformations.layer).pipe(
  Layer.provideMerge(ControlPlane.layer)
)

const config: ActionConfig = {
  auth_mode: "none",
  schema_version: "1.0.0",
  inputs: { url: "https://ledger.test/" },
  rate_limit: null,
  rate_limit_period: "second"
}
const actionFields = () => {
  const of = { name: unique("action"), provider_key: "http", action_key: "request" }
  return { ...of, config, credentials: {}, disabled: false }
}

const someAction = Effect.flatMap(Actions, (actions) => actions.create(team, fresh("action"), actionFields()))
const someFilter = Effect.flatMap(Filters, (filters) =>
  filters.create(team, fresh("filter"), { name: unique("filter"), conditions: { body: { a: 1 } }, hash: "sha256:1" })
)
const someTransformation = Effect.flatMap(Transformations, (transformations) =>
  transformations.create(team, fresh("transformation"), { name: unique("code"), code: "", env: {}, isolation: null })
)

const kinds = { flt_: "filter", act_: "action", des_: "destination", trs_: "transformation" } as const

/** Steps one after the other, of which each names one of these; null: it names nothing. A step keeps its kind, which is in its id. */
const graph = (ids: ReadonlyArray<string | null>): Pick<WorkflowFields, "steps" | "edges"> => {
  const steps = ids.map((id, at) => {
    const kind = id === null ? "filter" : kinds[id.slice(0, 4) as keyof typeof kinds]
    const step = { id: `${kind}_${at}`, kind }
    return id === null ? { ...step, config: { conditions: { body: { own: at } } } } : { ...step, resource_id: id }
  })
  const edges = steps.map(({ id }, at) =>
    at === 0
      ? { source_type: "trigger", target_step_id: id }
      : { source_type: "step", source_step_id: steps[at - 1]!.id, target_step_id: id }
  )
  return { steps, edges }
}

const fieldsOf = (source_id: string, ids: ReadonlyArray<string | null>): WorkflowFields => {
  return {
    name: unique("flow"),
    description: null,
    run_label: null,
    source_id,
    status: "active",
    version: 1,
    triggers: null,
    ...graph(ids)
  }
}

const change = (written: object) => workflow.change(written, { id: "", now: new Date(), ingress: null as never })

/** How many steps name each of these, by what is told of them; and by the definitions, read through. */
const counted = Effect.fnUntraced(function* (filter: string, action: string) {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql<{ id: string; count: number }>`
    select a.id, (select count(*)::int4 from workflows w, jsonb_array_elements(w.steps) s
      where w.deleted_at is null and s ->> 'resource_id' = a.id) as count from unnest(array[${filter}, ${action}]) a (id)`
  const told = [
    (yield* (yield* Filters).get(team, filter)).workflow_steps_count,
    (yield* (yield* Actions).get(team, action)).workflow_steps_count
  ]
  expect(told).toEqual([filter, action].map((id) => found.find((row) => row.id === id)?.count))
  return told
})

const codeOf = <A, R>(effect: Effect.Effect<A, GatewayError, R>) => Effect.map(Effect.flip(effect), ({ code }) => code)

layer(world, { excludeTestServices: true })("Resources that workflows use", (it) => {
  it.effect("The use counts are correct after every way of changing a workflow", () =>
    Effect.gen(function* () {
      const workflows = yield* Workflows
      const source = yield* createSource()
      const [filter, action] = [(yield* someFilter).id, (yield* someAction).id]
      const now = counted(filter, action)
      expect(yield* now).toEqual([0, 0])
      const { id } = yield* workflows.create(
        team,
        fresh("workflow"),
        fieldsOf(source.id, [filter, null, filter, action])
      )
      const other = yield* workflows.create(team, fresh("workflow"), fieldsOf(source.id, [action, filter]))
      expect(yield* now).toEqual([3, 2])
      yield* workflows.update(team, id, change({ status: "paused" }))
      expect(yield* now).toEqual([3, 2])
      yield* workflows.update(team, id, change(graph([filter, null])))
      expect(yield* now).toEqual([2, 1])
      const moved = { id: fresh("source"), fields: ControlPlane.sourceFields() }
      const saved = { id: fresh("action"), ref: "one", fields: actionFields() }
      yield* saveAggregate(
        team,
        id,
        { source: moved, actions: [saved], workflow: { change: change(graph([action, saved.id, action])) } },
        { id: unique("command") }
      )
      expect(yield* counted(filter, saved.id)).toEqual([1, 1])
      expect(yield* now).toEqual([1, 3])
      // A workflow that has lost its source names what it named.
      yield* (yield* Sources).delete(team, moved.id)
      expect(yield* now).toEqual([1, 3])
      yield* workflows.delete(team, id)
      expect(yield* now).toEqual([1, 1])
      const named = yield* someFilter
      yield* workflows.update(team, other.id, change(graph([named.id, filter, named.id])))
      expect([yield* now, yield* counted(named.id, action)]).toEqual([
        [1, 0],
        [2, 0]
      ])
      yield* (yield* Filters).delete(team, named.id)
      expect(yield* now).toEqual([1, 0])
      expect((yield* workflows.get(team, other.id)).steps).toMatchObject([
        { resource_id: null },
        { resource_id: filter },
        { resource_id: null }
      ])
    })
  )

  it.effect("A resource that a workflow uses cannot be deleted until it is no longer used", () =>
    Effect.gen(function* () {
      const workflows = yield* Workflows
      const source = yield* createSource()
      const [actions, destinations, transformations] = [yield* Actions, yield* Destinations, yield* Transformations]
      const named = [
        [(yield* someAction).id, actions.delete],
        [(yield* createDestination()).id, destinations.delete],
        [(yield* someTransformation).id, transformations.delete]
      ] as const
      const ids = named.map(([id]) => id)
      const { id } = yield* workflows.create(team, fresh("workflow"), fieldsOf(source.id, ids))
      for (const [of, remove] of named) expect(yield* codeOf(remove(team, of))).toBe("RESOURCE_IN_USE")
      yield* workflows.update(team, id, change(graph([null])))
      for (const [of, remove] of named)
        expect(yield* Effect.result(remove(team, of))).toEqual(Result.succeed(undefined))
    })
  )

  it.effect("Uses by workflows are found by an index, however many workflows the team has", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [filters, actions] = [yield* Filters, yield* Actions]
      const [filter, action] = [yield* someFilter, yield* someAction]
      const source = yield* createSource()
      // As the version before writes them.
      yield* sql`insert into workflows (id, team_id, name, source_id, status, version, steps, edges, definition_hash, created_at, updated_at)
        select 'wfl_many' || n, ${team}, 'many' || n, ${source.id}, 'active', 1, (
            select jsonb_agg(jsonb_build_object('id', 'step_' || s, 'config', '{}'::jsonb, 'name', repeat(md5(n || ' ' || s), 10), 'resource_id', case
              when s > 3 then null when n % 500 = 0 then (array[${filter.id}, ${action.id}, ${action.id}])[s] else 'des_' || n || s end))
            from generate_series(1, 10) s), '[]', '', now(), now()
        from generate_series(1, 1000) n`
      yield* sql`insert into workflow_versions (workflow_id, version, team_id, name, status, definition_hash, defined_in, steps, edges, created_at)
        select id, 1, team_id, name, status, '', 1, steps, edges, created_at from workflows where id like 'wfl_many%'`
      yield* sql`analyze workflows`
      const all = listing([], { limit: 255 })
      const reads = [
        Effect.map(filters.get(team, filter.id), (one) => one.workflow_steps_count),
        Effect.map(actions.get(team, action.id), (one) => one.workflow_steps_count),
        Effect.map(
          filters.list(team, all),
          ({ models }) => models.find(({ id }) => id === filter.id)!.workflow_steps_count
        ),
        Effect.map(
          actions.list(team, { ...all, counts: false }),
          ({ models }) => models.find(({ id }) => id === action.id)!.workflow_steps_count
        ),
        codeOf(actions.delete(team, action.id))
      ]
      const answers: Array<unknown> = []
      for (const read of reads) {
        const { answer, rows, used } = yield* explained(read as Effect.Effect<unknown, GatewayError>)
        answers.push(answer)
        expect(used).toContain("workflows_named")
        expect(rows).toBeLessThan(200)
      }
      expect(answers).toEqual([2, 4, 2, 4, "RESOURCE_IN_USE"])
      yield* filters.delete(team, filter.id)
      const left = yield* sql<{ id: string; named: ReadonlyArray<string | null> }>`
        select id, named from workflows where id in ('wfl_many500', 'wfl_many1000') order by id`
      expect(left.map(({ named }) => named.filter((id) => id !== null))).toEqual([
        [action.id, action.id],
        [action.id, action.id]
      ])
      // A team may have no more.
      yield* sql`delete from workflow_versions where workflow_id like 'wfl_many%'`
      yield* sql`delete from workflows where id like 'wfl_many%'`
    })
  )

  it.effect("Filter links of connections are found by an index, however many are new", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const filters = yield* Filters
      const [source, destination] = [yield* createSource(), yield* createDestination()]
      const linked = yield* someFilter
      yield* sql`insert into connections (id, team_id, name, source_id, destination_id, rules, created_at, updated_at)
        select 'web_many' || n, ${team}, 'many' || n, ${source.id}, ${destination.id}, jsonb_build_array(jsonb_build_object('type', 'filter',
          'filter_id', case when n <= 3 then ${linked.id} else 'flt_' || n end, 'body', jsonb_build_object('a', md5(n::text)))), now(), now()
        from generate_series(1, 6000) n`
      yield* sql`analyze connections`
      const { answer, blocks, used } = yield* explained(filters.get(team, linked.id))
      expect([answer.connections_count, used.includes("connections_rules")]).toEqual([3, true])
      expect(blocks).toBeLessThan(50)
    })
  )
})
