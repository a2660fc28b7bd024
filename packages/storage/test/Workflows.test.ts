import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Result } from "effect"
import { SqlClient, Statement } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { isId, newId, prefixes } from "@tidegate/model/Ids"
import { workflow, type WorkflowFields } from "@tidegate/resources/Workflow"
import { resources } from "@tidegate/resources/Resources"
import { TeamLimits } from "@tidegate/resources/TeamLimits"
import { Destinations } from "../src/control/Destinations.ts"
import { Sources } from "../src/control/Sources.ts"
import { Transformations } from "../src/control/Transformations.ts"
import { Workflows } from "../src/workflows/Workflows.ts"
import * as ControlPlane from "./controlPlane.ts"
import { listing } from "./listing.ts"

const { destinationFields, otherTeam, sourceFields, team, unique } = ControlPlane

const world = Layer.mergeAll(Workflows.layer, Transformations.layer).pipe(Layer.provideMerge(ControlPlane.layer))

const fresh = () => newId(prefixes.workflow, Date.now())

const newSource = (of: string = team) =>
  Effect.flatMap(Sources, (sources) => sources.create(of, newId(prefixes.source, Date.now()), sourceFields()))
const newDestination = (of: string = team) =>
  Effect.flatMap(Destinations, (destinations) =>
    destinations.create(of, newId(prefixes.destination, Date.now()), destinationFields())
  )

const begin = (target: string) => ({ source_type: "trigger", target_step_id: target })
const trim = (id: string) => ({
  id,
  kind: "action",
  action: { provider_key: "formatter", action_key: "text.trim" },
  invocation_inputs: { input: "{{trigger.body.name}}" }
})
const send = (id: string, resource_id: string) => ({ id, kind: "destination", resource_id })

const calling = (headers: object) => ({
  id: "call",
  kind: "action",
  action: { provider_key: "http", action_key: "request", version: "1.0.0" },
  invocation_inputs: { method: "GET", url: "https://crm.example.com/", headers }
})

const create = Effect.fnUntraced(function* (fields: Partial<WorkflowFields> = {}, of: string = team) {
  const workflows = yield* Workflows
  const source_id = fields.source_id === undefined ? (yield* newSource(of)).id : fields.source_id
  const written: WorkflowFields = {
    name: unique("workflow"),
    description: null,
    run_label: null,
    source_id,
    status: "active",
    steps: [],
    edges: [],
    version: 1,
    triggers: null,
    ...fields
  }
  return yield* workflows.create(of, fresh(), written)
})

const update = (id: string, written: object) =>
  Effect.flatMap(Workflows, (workflows) =>
    workflows.update(team, id, workflow.change(written as never, { id, now: new Date(), ingress: null as never }))
  )

const refused = <A, R>(effect: Effect.Effect<A, GatewayError, R>) => Effect.flip(effect)

interface IssueData {
  readonly issues: ReadonlyArray<{ readonly code: string; readonly step_id: string | null; readonly field: string }>
}
const issuesOf = ({ data }: GatewayError) =>
  (data as unknown as IssueData).issues.map(({ code, field, step_id }) => `${code} ${step_id} ${field}`)

const versionOf = (source: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ version: bigint }>`select version from sources where id = ${source}`
    return Number(row!.version)
  })

const versionsOf = (id: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return yield* sql<{ version: number; defined_in: number; status: string; defined: boolean }>`
      select version, defined_in, status, steps is not null as defined from workflow_versions
      where workflow_id = ${id} order by version`
  })

layer(world, { excludeTestServices: true })("Workflows in SQL", (it) => {
  it.effect(
    "Old workflow versions without runs are removed at the limit, and a change is rejected if all have runs",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { id } = yield* create({ steps: [trim("name")], edges: [begin("name")] as never, status: "draft" })
        const change = (n: number) =>
          Effect.flatMap(
            Effect.flatMap(Workflows, (workflows) => workflows.get(team, id)),
            ({ version }) =>
              update(id, { steps: [{ ...trim("name"), name: `Step ${n}` }], edges: [begin("name")], version })
          )
        for (let n = 0; n < 8; n++) yield* change(n)
        const versions = Effect.map(
          sql<{ version: number }>`select version from workflow_versions where workflow_id = ${id} order by version`,
          (rows) => rows.map(({ version }) => version)
        )
        expect(yield* versions).toEqual([5, 6, 7, 8, 9])

        // Runs go by all but one, and then by all: the next change is refused, and changes nothing.
        yield* sql`update workflow_versions set has_run = true where workflow_id = ${id} and version <> 8`
        yield* change(10)
        yield* sql`update workflow_versions set has_run = true where workflow_id = ${id}`
        expect(yield* refused(change(11))).toMatchObject({
          code: "LIMIT_EXCEEDED",
          data: { limit: 5, resource: "workflow_versions" }
        })
        expect(yield* versions).toEqual([5, 6, 7, 9, 10])
      }).pipe(
        Effect.provideService(TeamLimits, {
          ...Object.fromEntries(resources.map(({ plural }) => [plural, 1_000])),
          workflow_versions: 5
        })
      )
  )

  it.effect("A credential written into a step is rejected, and one that was stored before is masked", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflows = yield* Workflows
      const secret = "s3cr3t-in-a-step"
      const held = { ...calling({ authorization: `Bearer ${secret}` }) }
      const issues = issuesOf(yield* refused(create({ steps: [held] as never, edges: [begin("call")] as never })))
      expect(issues).toEqual(["STEP_CONFIG_INVALID call invocation_inputs.headers.authorization"])
      const written = { steps: [calling({ authorization: "Bearer {{trigger.body.token}}" })], edges: [begin("call")] }
      const { id } = yield* create(written as never)
      // As the version before stored it.
      yield* sql`update workflows set steps = jsonb_set(steps, '{0,invocation_inputs,headers,authorization}', ${JSON.stringify(`Bearer ${secret}`)}::jsonb) where id = ${id}`
      const shown = yield* workflows.get(team, id)
      expect(JSON.stringify(shown)).not.toContain(secret)
      expect(shown.steps?.[0]).toMatchObject({ invocation_inputs: { headers: { authorization: "[REDACTED]" } } })
      // It goes on, until the step is changed; what is shown is not taken for a credential.
      yield* update(id, { name: unique("renamed") })
      const [kept] = yield* sql<{ text: string }>`select steps::text as text from workflows where id = ${id}`
      expect(kept!.text).toContain(secret)
      const again = yield* refused(update(id, { steps: shown.steps, edges: shown.edges }))
      expect(issuesOf(again)).toEqual(["STEP_CONFIG_INVALID call invocation_inputs.headers.authorization"])
    })
  )

  it.effect("A stored workflow is returned with all default values of its graph", () =>
    Effect.gen(function* () {
      const workflows = yield* Workflows
      const source = yield* newSource()
      const made = yield* create({ source_id: source.id, steps: [trim("trimmed")], edges: [begin("trimmed")] })
      expect(isId(prefixes.workflow, made.id)).toBe(true)
      expect(made).toMatchObject({
        team_id: team,
        source_id: source.id,
        status: "active",
        version: 1,
        source: { id: source.id, name: source.name, type: "WEBHOOK", status: "enabled", schema_provenance: "none" },
        capabilities: { join: true, runtime_executable: true, runtime_issue: null },
        steps: [
          {
            ...trim("trimmed"),
            name: "",
            config: { formatter: { engine_version: "1.0.0", options: {} } },
            position: { x: 0, y: 0 }
          }
        ],
        edges: [{ id: "e_00", source_port: "out", target_step_id: "trimmed", position: 0 }],
        steps_count: 1,
        edges_count: 1
      })
      expect(yield* workflows.get(team, made.id)).toStrictEqual(made)
      expect((yield* refused(workflows.get(otherTeam, made.id))).code).toBe("NOT_FOUND")
      const { models } = yield* workflows.list(
        team,
        listing([made.id], { orderBy: "updated_at", dir: "desc", limit: 10 })
      )
      const { edges: _edges, steps: _steps, triggers: _triggers, ...row } = made
      expect(models).toStrictEqual([row])
    })
  )

  it.effect("All faults of a graph are reported at once, including missing resources", () =>
    Effect.gen(function* () {
      const theirs = yield* newDestination(otherTeam)
      const error = yield* refused(
        create({
          steps: [
            send("nobody", newId(prefixes.destination, 1)),
            send("theirs", theirs.id),
            { id: "odd_one", kind: "dance" }
          ],
          edges: [begin("nobody"), begin("theirs"), begin("odd_one")]
        })
      )
      expect(error.code).toBe("WORKFLOW_GRAPH_INVALID")
      expect(issuesOf(error).toSorted()).toEqual(
        expect.arrayContaining([
          "RESOURCE_NOT_FOUND nobody resource_id",
          "RESOURCE_NOT_FOUND theirs resource_id",
          "STEP_KIND_UNKNOWN odd_one kind"
        ])
      )
    })
  )

  it.effect("A workflow with a missing or another team's source is rejected", () =>
    Effect.gen(function* () {
      const theirs = yield* newSource(otherTeam)
      for (const source_id of [newId(prefixes.source, 1), theirs.id]) {
        expect(yield* refused(create({ source_id }))).toMatchObject({
          code: "NOT_FOUND",
          data: { resource_type: "source", id: source_id }
        })
      }
    })
  )

  it.effect("Each effective change makes a new workflow version and a newer source", () =>
    Effect.gen(function* () {
      const { id, source_id } = yield* create({ steps: [trim("trimmed")], edges: [begin("trimmed")] })
      const before = yield* versionOf(source_id!)
      expect(yield* update(id, { status: "paused", version: 1 })).toMatchObject({ version: 2, status: "paused" })
      expect(yield* versionOf(source_id!)).toBeGreaterThan(before)
      // As it was first written, without defaults.
      expect(yield* update(id, { steps: [trim("trimmed")], version: 2 })).toMatchObject({ version: 2 })
      expect(yield* update(id, { steps: [], edges: [] })).toMatchObject({ version: 3, steps_count: 0 })
      expect(yield* versionsOf(id)).toEqual([
        { version: 1, defined_in: 1, status: "active", defined: true },
        { version: 2, defined_in: 1, status: "paused", defined: false },
        { version: 3, defined_in: 3, status: "paused", defined: true }
      ])
    })
  )

  it.effect("A change of an outdated version is rejected and writes nothing", () =>
    Effect.gen(function* () {
      const { id } = yield* create()
      yield* update(id, { description: "first", version: 1 })
      expect(yield* refused(update(id, { description: "second", version: 1 }))).toMatchObject({
        code: "workflow_conflict",
        data: { current_version: 2, supplied_version: 1 }
      })
      const workflows = yield* Workflows
      expect(yield* workflows.get(team, id)).toMatchObject({ description: "first", version: 2 })
    })
  )

  it.effect("A change of only the edges is checked with the resulting graph", () =>
    Effect.gen(function* () {
      const { id } = yield* create({ steps: [trim("trimmed")], edges: [begin("trimmed")] })
      const error = yield* refused(update(id, { edges: [begin("nowhere")] }))
      expect(issuesOf(error)).toContain("EDGE_TARGET_UNKNOWN null target_step_id")
    })
  )

  it.effect("A workflow is not activated with a disabled resource, and reports a later disabling", () =>
    Effect.gen(function* () {
      const destinations = yield* Destinations
      const workflows = yield* Workflows
      const destination = yield* newDestination()
      const { id } = yield* create({ steps: [send("to_it", destination.id)], edges: [begin("to_it")] })
      yield* destinations.switch(team, destination.id, "disable")
      expect((yield* workflows.get(team, id)).capabilities).toMatchObject({
        runtime_executable: false,
        runtime_issue: { code: "workflow_resource_disabled", step_id: "to_it", step_number: 1, field: "resource_id" }
      })
      // What it named when it became active is no reason to refuse another change; what it comes to name is.
      expect(yield* update(id, { description: "as it is" })).toMatchObject({ status: "active", version: 2 })
      const more = {
        steps: [send("to_it", destination.id), send("again", destination.id)],
        edges: [begin("to_it"), begin("again")]
      }
      expect(issuesOf(yield* refused(update(id, more)))).toEqual(["RESOURCE_DISABLED again resource_id"])
      yield* update(id, { status: "draft" })
      const error = yield* refused(update(id, { status: "active" }))
      expect(error.code).toBe("WORKFLOW_NOT_EXECUTABLE")
      expect(issuesOf(error)).toEqual(["RESOURCE_DISABLED to_it resource_id"])
    })
  )

  it.effect("A resource that a step uses cannot be deleted until the workflow is", () =>
    Effect.gen(function* () {
      const destinations = yield* Destinations
      const transformations = yield* Transformations
      const workflows = yield* Workflows
      const destination = yield* newDestination()
      const transformation = yield* transformations.create(team, newId(prefixes.transformation, Date.now()), {
        name: unique("transformation"),
        code: "addHandler('transform', (request) => request)",
        env: {},
        isolation: null
      })
      const { id } = yield* create({
        steps: [
          send("to_it", destination.id),
          { id: "reshape", kind: "transformation", resource_id: transformation.id }
        ],
        edges: [begin("to_it"), begin("reshape")]
      })
      const deletes = [destinations.delete(team, destination.id), transformations.delete(team, transformation.id)]
      for (const one of deletes) {
        expect(yield* refused(one)).toMatchObject({ code: "RESOURCE_IN_USE", data: { workflows: [id] } })
      }
      yield* workflows.delete(team, id)
      expect(yield* versionsOf(id)).toEqual([])
      for (const one of deletes) yield* one
    })
  )

  it.effect("Either a delete or a concurrent workflow that uses the resource is rejected", () =>
    Effect.gen(function* () {
      const destinations = yield* Destinations
      for (let round = 0; round < 10; round++) {
        const destination = yield* newDestination()
        const deleting = yield* Effect.forkChild(Effect.exit(destinations.delete(team, destination.id)))
        const naming = yield* Effect.exit(create({ steps: [send("to_it", destination.id)], edges: [begin("to_it")] }))
        const deleted = yield* Fiber.join(deleting)
        expect([Exit.isSuccess(naming), Exit.isSuccess(deleted)].filter((one) => one)).toHaveLength(1)
      }
    })
  )

  it.effect("A workflow whose source is deleted is disabled until it gets another one", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const workflows = yield* Workflows
      const { id, source_id } = yield* create()
      yield* sources.delete(team, source_id!)
      expect(yield* workflows.get(team, id)).toMatchObject({
        source_id: null,
        source: null,
        status: "disabled",
        version: 2,
        capabilities: {
          runtime_executable: false,
          runtime_issue: { code: "workflow_resource_missing", field: "source_id" }
        }
      })
      expect(yield* versionsOf(id)).toMatchObject([{ version: 1 }, { version: 2, defined_in: 1, status: "disabled" }])
      expect((yield* refused(update(id, { status: "active" }))).code).toBe("WORKFLOW_NOT_EXECUTABLE")
      const source = yield* newSource()
      expect(yield* update(id, { status: "active", source_id: source.id })).toMatchObject({
        status: "active",
        version: 3
      })
    })
  )

  it.effect("A workflow name is unique in its team and free again after the deletion", () =>
    Effect.gen(function* () {
      const workflows = yield* Workflows
      const { id, name } = yield* create()
      expect(yield* refused(create({ name }))).toMatchObject({
        code: "RESOURCE_ALREADY_EXISTS",
        data: { id, resource_type: "workflow" }
      })
      yield* create({ name }, otherTeam)
      yield* workflows.delete(team, id)
      expect((yield* create({ name })).id).not.toBe(id)
    })
  )

  it.effect("Spaces around a name are removed, and the source may be written as an object", () =>
    Effect.sync(() => {
      const written = { name: "  spaced ", source: { id: "src_1" } }
      const judged = workflow.write.judge(written)
      expect(Result.getOrThrow(judged)).toEqual({ name: "spaced", source_id: "src_1" })
      const wrong = { name: " ", source_id: "src_1", steps: {}, status: "asleep" }
      const refusal = workflow.write.judge(wrong)
      expect(Result.isFailure(refusal) ? refusal.failure.code : null).toBe("VALIDATION_ERROR")
    })
  )

  it.effect(
    "A list of workflows reads neither steps nor edges, and returns their numbers and the step with a problem",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const workflows = yield* Workflows
        const [source, destination] = [yield* newSource(), yield* newDestination()]
        const input = "x".repeat(100_000)
        const steps = ["one_", "two_"].map((id) => Object.assign(trim(id), { invocation_inputs: { input } }))
        const edges = [begin("one_"), { source_type: "step", source_step_id: "one_", target_step_id: "two_" }]
        const sound = yield* create({ source_id: source.id, steps, edges })
        const last = { ...send("three", destination.id), name: "CRM" }
        const hindered = yield* create({
          source_id: source.id,
          steps: [...steps, last],
          edges: [...edges, { source_type: "step", source_step_id: "two_", target_step_id: "three" }]
        })
        yield* (yield* Destinations).switch(team, destination.id, "disable")
        const asked = listing([sound.id, hindered.id], { orderBy: "created_at", limit: 10 })
        const statements: Array<readonly [string, ReadonlyArray<unknown>]> = []
        const { models } = yield* Effect.provideService(
          workflows.list(team, asked),
          Statement.CurrentTransformer,
          (statement) => {
            statements.push(statement.compile())
            return Effect.succeed(statement)
          }
        )
        const read = yield* Effect.forEach(statements, ([text, parameters]) => sql.unsafe(text, parameters))
        expect(JSON.stringify(read).length).toBeLessThan(10_000)
        const of = ({ capabilities, edges_count, steps_count }: (typeof models)[number]) => [
          steps_count,
          edges_count,
          capabilities.runtime_issue
        ]
        const issue = {
          code: "workflow_resource_disabled",
          message: `${destination.id} is disabled`,
          step_id: "three",
          step_number: 3,
          step_name: "CRM",
          field: "resource_id"
        }
        expect(models.map(of)).toEqual([
          [2, 2, null],
          [3, 3, issue]
        ])
        expect(of(yield* workflows.get(team, hindered.id))).toEqual([3, 3, issue])
      })
  )
})
