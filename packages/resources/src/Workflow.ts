import { Result, Schema } from "effect"
import { maxDefinitionValues } from "@tidegate/model/BodyLimits"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { administering, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { Workflow, WorkflowStatus } from "@tidegate/model/Workflow"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import { limits } from "@tidegate/workflows/Limits"
import { labelFault } from "@tidegate/workflows/RunLabel"
import { describedAs } from "./DescribedAs.ts"
import { isStorableJson, type Members } from "./Input.ts"
import { DescriptionUpTo, Id, Name, OneOf, optional, Storable } from "./Members.ts"
import { type Body, bodyOf, type Change, resource, type Situation } from "./Resource.ts"
import { ids, times } from "./ExampleIds.ts"
import { chainOf, isChain } from "./workflow/Chain.ts"
import { WorkflowEdges, WorkflowSteps } from "./workflow/Document.ts"
import { triggersOf, TriggersWrite } from "./workflow/Triggers.ts"

/** The limit of one team. */
export const maxWorkflows = 1_000

/** Whether they are valid steps or edges is checked by the code that stores the graph, with all other faults. */
const parts = (what: string, most: number, described: Schema.Top, absent = "") =>
  Schema.Array(Schema.Json)
    .annotate({ message: "must be a list" })
    .check(
      Schema.makeFilter(
        (value: ReadonlyArray<Schema.Json>) => isStorableJson(value) || "must be valid Unicode without NUL",
        { toJsonSchema: () => ({}) }
      )
    )
    .pipe(describedAs(described))
    .annotate({ description: `All ${what} of the workflow; at most ${most}${absent}` })

const Status = OneOf(WorkflowStatus.literals).annotate({ description: "Default: active" })

/** What is wrong with a template is said when it is written, because a run cannot say it. */
const RunLabel = Schema.NullOr(
  Storable(limits.labelTemplateLength).check(
    Schema.makeFilter((template: string) => labelFault(template) ?? true, { toJsonSchema: () => ({}) })
  )
).annotate({
  description: `A template that labels each run when it begins, such as "order {{trigger.body.id}}"; it reads trigger, run, workflow and source. The label has at most ${limits.labelLength} characters`,
  examples: ["order {{trigger.body.id}}"]
})

const chained = ". A new workflow without this member is a chain: each step follows the one before"

const SourceId = Schema.NullOr(Id).annotate({
  message: "must be an id",
  description: "The source whose requests begin runs. Null: only its triggers begin runs"
})

const settings = {
  description: optional(DescriptionUpTo(4_000)),
  run_label: optional(RunLabel),
  status: optional(Status),
  steps: optional(parts("steps", limits.steps, WorkflowSteps)),
  edges: optional(parts("edges", limits.edges, WorkflowEdges, chained)),
  triggers: optional(TriggersWrite)
}

const steps: ReadonlyArray<Schema.JsonObject> = [
  {
    id: "only_paid",
    kind: "filter",
    name: "Paid only",
    config: { conditions: { trigger: { body: { status: "paid" } } } }
  },
  {
    id: "to_crm",
    kind: "destination",
    name: "CRM",
    resource_id: ids.destination,
    invocation_inputs: { body: { order: "{{trigger.body.id}}" } }
  }
]

const edges: ReadonlyArray<Schema.JsonObject> = [
  { id: "e_begin", source_type: "trigger", target_step_id: "only_paid" },
  { id: "e_paid", source_type: "step", source_step_id: "only_paid", target_step_id: "to_crm" }
]

const body = { name: "Paid order to CRM", source_id: ids.source, steps, edges }

const $schema = optional(
  Schema.String.annotate({
    message: "must be a text",
    description: "For editors: the URL of the JSON Schema (`/schemas/workflow.json`). It is not stored"
  })
)

const version = (what: string) =>
  optional(
    Schema.Int.annotate({
      message: "must be a whole number",
      description: `The version that the change ${what}is based on: refused when there is a later one. Without it the last change wins`
    })
  )

const Write = Schema.Struct({
  name: Name,
  source_id: SourceId,
  ...settings,
  version: version("of an existing workflow "),
  $schema
}).annotate({
  identifier: "WorkflowWrite",
  examples: [body] as never
})

const Patch = Schema.Struct({
  name: optional(Name),
  source_id: optional(SourceId),
  ...settings,
  version: version(""),
  $schema
}).annotate({ identifier: "WorkflowPatch" })

/** `source: {id}` is accepted for `source_id`, as in a connection; spaces around a name and the text `$schema` are removed. */
const canonical = (given: Members): Members => {
  const { $schema, ...rest } = given
  const written = typeof $schema === "string" ? rest : given
  const { name, source, source_id } = written
  const named = typeof name === "string" ? { ...written, name: name.trim() } : written
  const isMeant = source_id === undefined && typeof source === "object" && source !== null && "id" in source
  return isMeant ? { ...named, source_id: source["id"] as Schema.Json } : named
}

const judged = <B extends Body<Schema.Codec<unknown>>>(of: B): B => ({
  ...of,
  judge: (written: Members, situation: Situation) => of.judge(canonical(written), situation)
})

export interface WorkflowFields {
  readonly name: string
  readonly description: string | null
  readonly run_label: string | null
  readonly source_id: string | null
  readonly status: WorkflowStatus
  readonly steps: ReadonlyArray<Schema.Json>
  readonly edges: ReadonlyArray<Schema.Json>
  readonly version: number
  readonly triggers: WorkflowTriggers | null
}

type Written = Omit<{ readonly [Name in keyof WorkflowFields]?: WorkflowFields[Name] }, "triggers"> & {
  readonly triggers?: typeof TriggersWrite.Type
}

const columns = {
  name: "plain",
  description: "plain",
  run_label: "plain",
  source_id: "plain",
  status: "plain",
  steps: "plain",
  edges: "plain",
  version: "plain",
  triggers: "plain"
} as const

const change =
  ({ triggers, ...input }: Written) =>
  (stored: WorkflowFields): Result.Result<Change<WorkflowFields, typeof columns>, GatewayError> => {
    const { version } = input
    if (version !== undefined && version !== stored.version) {
      return Result.fail(
        fail("workflow_conflict", `Workflow was changed since version ${version}`, {
          current_version: stored.version,
          supplied_version: version
        })
      )
    }
    const { edges, steps } = input
    const staysChain = steps !== undefined && edges === undefined && isChain(stored)
    return Result.succeed({
      ...stored,
      ...input,
      ...(staysChain ? { edges: chainOf(steps) } : {}),
      ...(triggers === undefined ? {} : { triggers: triggersOf(triggers) })
    })
  }

/** A workflow as it is returned. */
export const WorkflowRecord = Schema.Struct({
  ...Workflow.fields,
  steps: Schema.optionalKey(Schema.Array(Schema.Json).pipe(describedAs(WorkflowSteps))),
  edges: Schema.optionalKey(Schema.Array(Schema.Json).pipe(describedAs(WorkflowEdges)))
}).annotate({ identifier: "Workflow" })

/** A graph of steps that a source's requests run through. */
export const workflow = resource({
  name: "workflow",
  plural: "workflows",
  prefix: prefixes.workflow,
  description: "Graphs of steps that run for the requests of a source.",
  permissions: { read: notByProjectKeys(reading), edit: administering },
  said: {
    list: {
      description:
        "Returns pages by cursor, without steps and edges, last changed first unless `order_by` says otherwise."
    },
    create: {
      description:
        "One answer has all faults of the graph. References to unknown members of outputs are accepted, with `warnings`. A team can have at most 1,000."
    },
    upsert: { description: "Absent members stay unchanged." },
    retrieve: { description: "Includes its steps and edges, and whether it can run." },
    update: {
      description:
        "`steps` and `edges` are replaced as a whole. A workflow that was written without edges stays a chain when it gets new steps without edges. A change creates a new version; runs that have begun keep theirs. Without a change the version stays."
    },
    delete: { description: "Also deletes its runs; running ones start no further step. Its source stays." }
  },
  record: WorkflowRecord,
  warnings: "looked up",
  deleted: {
    fields: { source_id: Schema.NullOr(Schema.String), source_deleted: Schema.Literal(false) },
    example: { source_id: ids.source, source_deleted: false }
  },
  write: judged(bodyOf(Write)),
  patch: judged(bodyOf(Patch)),
  create: ({
    description = null,
    name,
    run_label = null,
    source_id,
    status = "active",
    steps = [],
    edges = chainOf(steps),
    triggers = null
  }: typeof Write.Type) =>
    Result.succeed<WorkflowFields>({
      name,
      description,
      run_label,
      source_id,
      status,
      steps,
      edges,
      version: 1,
      triggers: triggersOf(triggers)
    }),
  change,
  upsert: change,
  columns,
  switches: [],
  // A list shows only the number of steps, and which of them name missing resources.
  outline: [
    "id",
    "team_id",
    "source_id",
    "name",
    "description",
    "status",
    "version",
    "run_label",
    "named",
    "edges_count",
    "triggers",
    "created_at",
    "updated_at"
  ],
  weight: "coalesce(octet_length(t.description), 0) + octet_length(t.named::text)",
  largestBody: limits.definitionBytes,
  most: maxWorkflows,
  maxValues: maxDefinitionValues,
  errors: {
    write: ["NOT_FOUND", "WORKFLOW_GRAPH_INVALID", "WORKFLOW_NOT_EXECUTABLE", "workflow_conflict", "LIMIT_EXCEEDED"]
  },
  example: {
    body,
    patch: { status: "paused", version: 1 },
    record: {
      id: ids.workflow,
      team_id: ids.team,
      source_id: ids.source,
      name: body.name,
      description: null,
      status: "active",
      version: 1,
      run_label: null,
      source: {
        id: ids.source,
        name: "shop",
        type: "WEBHOOK",
        status: "enabled",
        provider_key: null,
        definition_key: null,
        definition_name: null,
        output_schema: null,
        schema_provenance: "none",
        primary_output: "body",
        export_path: null,
        sample: null
      },
      capabilities: {
        branching: true,
        fan_out: true,
        join: true,
        sequential_action_loop: true,
        runtime_executable: true,
        runtime_issue: null
      },
      steps,
      edges,
      triggers: null,
      steps_count: 2,
      edges_count: 2,
      ...times
    }
  }
})
