import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { type FieldError, GatewayError, invalid } from "@tidegate/model/GatewayError"
import { type Prefix, prefixes } from "@tidegate/model/Ids"
import { Warning } from "@tidegate/model/Warning"
import { limits } from "@tidegate/workflows/Limits"
import { action } from "./Action.ts"
import { asObject, type FieldErrors, type Members, orInvalid } from "./Input.ts"
import { describedAs } from "./DescribedAs.ts"
import { Id } from "./Members.ts"
import type { Situation } from "./Resource.ts"
import { source } from "./Source.ts"
import { SourceWrite } from "./source/SourceDocument.ts"
import { ids } from "./ExampleIds.ts"
import { workflow } from "./Workflow.ts"

/**
 * A workflow that is saved together with the source that begins its runs, and with the actions that its steps call: all of it or
 * nothing.
 */

export const aggregateExample = {
  source: { name: "shop", type: "WEBHOOK" },
  workflow: { name: workflow.example.body.name, steps: workflow.example.body.steps, edges: workflow.example.body.edges }
} as const

const Action = Schema.Struct({ ref: Schema.String, ...action.write.described.fields })

/** The limit of the bodies inside the body; each is validated like a body of its own. */
const maxMembers = 100

const described = {
  workflow_id: Schema.optionalKey(
    Schema.NullOr(
      Id.annotate({ description: "The workflow to change; a new one is made without it", examples: [ids.workflow] })
    )
  ),
  version: Schema.optionalKey(
    Schema.NullOr(
      Schema.Int.annotate({
        description: "The version that the change was made from: refused when there is a later one"
      })
    )
  ),
  source_id: Schema.optionalKey(Schema.NullOr(Id.annotate({ description: "A source that is there" }))),
  source: Schema.optionalKey(
    Schema.NullOr(
      Schema.JsonObject.check(Schema.isMaxProperties(maxMembers))
        .pipe(describedAs(Schema.Union([...SourceWrite.members, Schema.Struct({ id: Id })])))
        .annotate({ description: "A source to make, as POST /sources takes it; or `{id}` of one that is there" })
    )
  ),
  actions: Schema.optionalKey(
    Schema.NullOr(
      Schema.Array(describedAs(Action)(Schema.JsonObject)).annotate({
        description:
          "Actions to save, as POST /actions takes them, each with a `ref` of its own: a step names one by the resource_id `ref:<ref>`"
      })
    )
  ),
  workflow: Schema.JsonObject.check(Schema.isMaxProperties(maxMembers))
    .pipe(describedAs(Schema.Struct(workflow.patch.described.fields)))
    .annotate({ description: "As POST /workflows takes it, or with workflow_id as PATCH does; without source_id" })
}

export const WorkflowAggregateInput = Schema.Struct(described).annotate({
  identifier: "WorkflowAggregateInput",
  examples: [aggregateExample] as never
})

/** What to write: bodies that are valid on their own. */
export const AggregateMessage = Schema.Struct({
  source: Schema.NullOr(Schema.Struct({ id: Schema.String, input: source.write.message })),
  actions: Schema.Array(Schema.Struct({ id: Schema.String, ref: Schema.String, input: action.write.message })),
  write: Schema.NullOr(workflow.write.message),
  patch: Schema.NullOr(workflow.patch.message)
})
export type AggregateMessage = typeof AggregateMessage.Type

export const WorkflowAggregate = Schema.Struct({
  workflow: workflow.record,
  source: Schema.NullOr(source.record),
  actions: Schema.Array(action.record).annotate({ description: "Those that were made" }),
  created: Schema.Struct({ workflow: Schema.Boolean, source: Schema.Boolean, actions: Schema.Array(Schema.String) }),
  warnings: Schema.optionalKey(
    Schema.Array(Warning).annotate({
      description: "Warnings about the workflow and a created source. Absent if there are none"
    })
  )
}).annotate({ identifier: "WorkflowAggregate" })
export type WorkflowAggregate = typeof WorkflowAggregate.Type

/** The warnings of its parts, with their places in the whole. */
export const warningsOfParts = (
  { created, source: made }: WorkflowAggregate,
  ofWorkflow: ReadonlyArray<Warning>
): ReadonlyArray<Warning> => {
  const ofSource = made !== null && created.source && typeof source.warnings === "function" ? source.warnings(made) : []
  const within =
    (part: string) =>
    ({ code, message, path }: Warning) => ({ code, message, path: `${part}.${path}` })
  return [...ofWorkflow.map(within("workflow")), ...ofSource.map(within("source"))]
}

/** The parts of a body, each not validated yet. */
interface Parts {
  readonly workflow_id: string | null
  /** A new source; null: none. */
  readonly source: Members | null
  /** An existing source; null: none is named. */
  readonly source_id: string | null
  readonly actions: ReadonlyArray<{ readonly ref: string; readonly body: Members }>
  readonly workflow: Members
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

const membersAt = (written: Members, path: string): Members | null => {
  const read = asObject(written[path] ?? null)
  return Result.isSuccess(read) ? read.success : null
}

/** The name of an action in the body, by which steps refer to it. */
const refPattern = /^[A-Za-z0-9_-]{1,96}$/

const actionsOf = (written: unknown): Result.Result<Parts["actions"], FieldErrors> => {
  if (!isGiven(written)) return Result.succeed([])
  if (!Array.isArray(written) || written.length > limits.steps) {
    return Result.fail([{ path: "actions", message: `must be a list of at most ${limits.steps}` }])
  }
  const faults: Array<FieldError> = []
  const actions = new Map<string, Members>()
  for (const [i, one] of written.entries()) {
    const read = asObject(one as Schema.Json)
    if (Result.isFailure(read)) {
      faults.push({ path: `actions[${i}]`, message: "must be an object" })
      continue
    }
    const { ref, ...body } = read.success
    if (typeof ref === "string" && refPattern.test(ref) && !actions.has(ref)) actions.set(ref, body)
    else {
      const message = "must be 1 to 96 letters, digits, _ and -, and no other action's"
      faults.push({ path: `actions[${i}].ref`, message })
    }
  }
  return faults.length > 0 ? Result.fail(faults) : Result.succeed(Array.from(actions, ([ref, body]) => ({ ref, body })))
}

/** The steps with ids in place of the names of actions; or the faults of steps that name none. */
const linked = (graph: Members, ids: ReadonlyMap<string, string>): Result.Result<Members, FieldErrors> => {
  const { steps } = graph
  if (!Array.isArray(steps)) return Result.succeed(graph)
  const faults: Array<FieldError> = []
  const named = steps.map((step: Schema.Json, i): Schema.Json => {
    const read = asObject(step)
    const id = Result.isSuccess(read) ? read.success["resource_id"] : undefined
    if (Result.isFailure(read) || typeof id !== "string" || !id.startsWith("ref:")) return step
    const resource_id = ids.get(id.slice("ref:".length))
    if (resource_id !== undefined) return Object.assign({}, read.success, { resource_id })
    faults.push({ path: `workflow.steps[${i}].resource_id`, message: "names no action of the body" })
    return step
  })
  return faults.length > 0 ? Result.fail(faults) : Result.succeed({ ...graph, steps: named })
}

const partsOf = (written: Members): Result.Result<Parts, FieldErrors> => {
  const { source_id, version, workflow_id } = written
  const [workflow, given] = [membersAt(written, "workflow"), membersAt(written, "source")]
  const of = given !== null && Object.keys(given).every((name) => name === "id") ? given["id"] : undefined
  const source = isGiven(of) ? null : given
  const named = isGiven(of) ? of : source_id
  const isId = (value: unknown): boolean =>
    !isGiven(value) || (typeof value === "string" && Characters.isUpTo(value, 100))
  const together = [isGiven(given), isGiven(source_id), isGiven(workflow?.["source_id"] ?? workflow?.["source"])]
  const faults = [
    { path: "workflow_id", isWrong: !isId(workflow_id), message: "must be an id" },
    { path: "source_id", isWrong: !isId(source_id), message: "must be an id" },
    { path: "workflow", isWrong: workflow === null, message: "must be an object" },
    { path: "source", isWrong: isGiven(written["source"]) && given === null, message: "must be an object" },
    {
      path: "source.id",
      isWrong: isGiven(source?.["id"]) || !isId(of),
      message: "is an id, and stands alone: a source is changed by PATCH /sources/{id}"
    },
    { path: "source_id", isWrong: together[0] && together[1], message: "cannot be used together with source" },
    {
      path: "workflow.source_id",
      isWrong: (together[0] || together[1]) && together[2],
      message: "cannot be used together with source or source_id"
    },
    { path: "version", isWrong: isGiven(version) && !isGiven(workflow_id), message: "needs workflow_id" }
  ].flatMap(({ isWrong, message, path }) => (isWrong === true ? [{ path, message }] : []))
  const actions = actionsOf(written["actions"])
  if (Result.isFailure(actions)) faults.push(...actions.failure)
  return faults.length > 0
    ? Result.fail(faults)
    : Result.succeed({
        workflow_id: (workflow_id ?? null) as string | null,
        source,
        source_id: (named ?? null) as string | null,
        actions: Result.getOrElse(actions, () => []),
        workflow: { ...workflow, ...(isGiven(version) ? { version: version! } : {}) }
      })
}

/** The faults of a part, with their places in the whole; or the error itself when it names no members. */
const faultsOf = (name: string, judged: Result.Result<unknown, GatewayError>): FieldErrors | GatewayError => {
  if (Result.isSuccess(judged)) return []
  if (judged.failure.code !== "VALIDATION_ERROR") return judged.failure
  const { fields } = judged.failure.data as unknown as { readonly fields: FieldErrors }
  return fields.map(({ message, path }) => ({ path: path === "" ? name : `${name}.${path}`, message }))
}

/** Validates a whole body; `fresh` makes the ids of new resources. The workflow's is null for a new one. */
export const judgeAggregate = (
  written: Members,
  fresh: (prefix: Prefix) => string,
  situation: Omit<Situation, "id">
): Result.Result<{ readonly workflow_id: string | null; readonly message: AggregateMessage }, GatewayError> =>
  Result.gen(function* () {
    const { actions: made, source: begun, source_id, workflow: graph, workflow_id } = yield* orInvalid(partsOf(written))
    const actions = made.map(({ body, ref }) => ({ id: fresh(prefixes.action), ref, body }))
    const steps = yield* orInvalid(linked(graph, new Map(actions.map(({ id, ref }) => [ref, id]))))
    const sourceId = fresh(prefixes.source)
    const of = begun === null ? source_id : sourceId
    const body = of === null ? steps : { ...steps, source_id: of }
    const input = begun === null ? null : source.write.judge(begun, { ...situation, id: null })
    const saved = actions.map(({ body }) => action.write.judge(body, { ...situation, id: null }))
    const write = workflow_id === null ? workflow.write.judge(body) : null
    const patch = workflow_id === null ? null : workflow.patch.judge(body)
    const found = [
      faultsOf("source", input ?? Result.void),
      ...saved.map((judged, i) => faultsOf(`actions[${i}]`, judged)),
      faultsOf("workflow", write ?? patch ?? Result.void)
    ]
    const other = found.find((faults) => faults instanceof GatewayError)
    if (other !== undefined) return yield* Result.fail(other)
    const faults = found.flat() as FieldErrors
    if (faults.length > 0) return yield* Result.fail(invalid(faults))
    const message = {
      source: input === null ? null : { id: sourceId, input: yield* input },
      actions: actions.map(({ id, ref }, i) => ({ id, ref, input: Result.getOrThrow(saved[i]!) })),
      write: write === null ? null : yield* write,
      patch: patch === null ? null : yield* patch
    }
    return { workflow_id, message }
  })
