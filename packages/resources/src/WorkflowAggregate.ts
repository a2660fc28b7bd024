import { Result, Schema } from "effect"
import { GatewayError, invalid } from "@tidegate/model/GatewayError"
import { asObject, type FieldErrors, type Members, orInvalid } from "./Input.ts"
import { Id } from "./Members.ts"
import type { Situation } from "./Resource.ts"
import { source } from "./Source.ts"
import { ids } from "./Story.ts"
import { workflow } from "./Workflow.ts"

/** A workflow that is saved together with the source that starts its runs: all of it, or nothing. */

export const aggregateExample = {
  source: { name: "shop", type: "WEBHOOK" },
  workflow: { name: workflow.example.body.name, steps: workflow.example.body.steps, edges: workflow.example.body.edges }
} as const

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
      Schema.JsonObject.annotate({
        description: "A source to make, as POST /sources takes it; or `{id}` of one that is there"
      })
    )
  ),
  workflow: Schema.JsonObject.annotate({
    description: "As POST /workflows takes it, or with workflow_id as PATCH does; without source_id"
  })
}

export const WorkflowAggregateInput = Schema.Struct(described).annotate({
  identifier: "WorkflowAggregateInput",
  examples: [aggregateExample] as never
})

/** What is to be written: bodies that are right by themselves. */
export const AggregateMessage = Schema.Struct({
  source: Schema.NullOr(Schema.Struct({ id: Schema.String, input: source.write.message })),
  write: Schema.NullOr(workflow.write.message),
  patch: Schema.NullOr(workflow.patch.message)
})
export type AggregateMessage = typeof AggregateMessage.Type

export const WorkflowAggregate = Schema.Struct({
  workflow: workflow.record,
  source: Schema.NullOr(source.record),
  actions: Schema.Array(Schema.Json).annotate({ description: "Saved actions that were made; none yet" }),
  created: Schema.Struct({ workflow: Schema.Boolean, source: Schema.Boolean, actions: Schema.Array(Schema.String) })
}).annotate({ identifier: "WorkflowAggregate" })
export type WorkflowAggregate = typeof WorkflowAggregate.Type

/** What a body says, each part by itself still to be judged. */
interface Parts {
  readonly workflow_id: string | null
  /** A source to make; null: none. */
  readonly source: Members | null
  /** A source that is there; null: none is named. */
  readonly source_id: string | null
  readonly workflow: Members
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

const membersAt = (written: Members, path: string): Members | null => {
  const read = asObject(written[path] ?? null)
  return Result.isSuccess(read) ? read.success : null
}

const partsOf = (written: Members): Result.Result<Parts, FieldErrors> => {
  const { source_id, version, workflow_id } = written
  const [workflow, given] = [membersAt(written, "workflow"), membersAt(written, "source")]
  const linked = given !== null && Object.keys(given).every((name) => name === "id") ? given["id"] : undefined
  const source = isGiven(linked) ? null : given
  const named = isGiven(linked) ? linked : source_id
  const isId = (value: unknown): boolean => !isGiven(value) || (typeof value === "string" && value.length <= 100)
  const together = [isGiven(given), isGiven(source_id), isGiven(workflow?.["source_id"] ?? workflow?.["source"])]
  const faults = [
    { path: "workflow_id", isWrong: !isId(workflow_id), message: "must be an id" },
    { path: "source_id", isWrong: !isId(source_id), message: "must be an id" },
    { path: "workflow", isWrong: workflow === null, message: "must be an object" },
    { path: "source", isWrong: isGiven(written["source"]) && given === null, message: "must be an object" },
    {
      path: "source.id",
      isWrong: isGiven(source?.["id"]) || !isId(linked),
      message: "is an id, and stands alone: a source is changed by PATCH /sources/{id}"
    },
    { path: "source_id", isWrong: together[0] && together[1], message: "cannot be used together with source" },
    {
      path: "workflow.source_id",
      isWrong: (together[0] || together[1]) && together[2],
      message: "cannot be used together with source or source_id"
    },
    { path: "version", isWrong: isGiven(version) && !isGiven(workflow_id), message: "needs workflow_id" },
    {
      path: "actions",
      isWrong: isGiven(written["actions"]),
      message: "cannot be made together with a workflow yet: make them by POST /actions"
    }
  ].flatMap(({ isWrong, message, path }) => (isWrong === true ? [{ path, message }] : []))
  return faults.length > 0
    ? Result.fail(faults)
    : Result.succeed({
        workflow_id: (workflow_id ?? null) as string | null,
        source,
        source_id: (named ?? null) as string | null,
        workflow: { ...workflow, ...(isGiven(version) ? { version: version! } : {}) }
      })
}

/** What is wrong with a part, where it stands in the whole; the error itself, where it tells of no members. */
const faultsOf = (name: string, judged: Result.Result<unknown, GatewayError>): FieldErrors | GatewayError => {
  if (Result.isSuccess(judged)) return []
  if (judged.failure.code !== "VALIDATION_ERROR") return judged.failure
  const { fields } = judged.failure.data as unknown as { readonly fields: FieldErrors }
  return fields.map(({ message, path }) => ({ path: path === "" ? name : `${name}.${path}`, message }))
}

/** Judges a body, all of it; `freshSource` is the id that a new source would have. The workflow's is null for a new one. */
export const judgeAggregate = (
  written: Members,
  freshSource: string,
  situation: Omit<Situation, "id">
): Result.Result<{ readonly workflow_id: string | null; readonly message: AggregateMessage }, GatewayError> =>
  Result.flatMap(orInvalid(partsOf(written)), ({ source: made, source_id, workflow: graph, workflow_id }) => {
    const of = made === null ? source_id : freshSource
    const body = of === null ? graph : { ...graph, source_id: of }
    const input = made === null ? null : source.write.judge(made, { ...situation, id: null })
    const write = workflow_id === null ? workflow.write.judge(body) : null
    const patch = workflow_id === null ? null : workflow.patch.judge(body)
    const found = [faultsOf("source", input ?? Result.void), faultsOf("workflow", write ?? patch ?? Result.void)]
    const other = found.find((faults) => faults instanceof GatewayError)
    if (other !== undefined) return Result.fail(other)
    const faults = found.flat() as FieldErrors
    if (faults.length > 0) return Result.fail(invalid(faults))
    const message = {
      source: input === null ? null : { id: freshSource, input: Result.getOrThrow(input) },
      write: write === null ? null : Result.getOrThrow(write),
      patch: patch === null ? null : Result.getOrThrow(patch)
    }
    return Result.succeed({ workflow_id, message })
  })
