import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { limits } from "@tidegate/workflows/Limits"
import { type CommonSetting, envelopeInputs, noInputs, type StepKind } from "@tidegate/workflows/StepKind"
import { stepKinds } from "@tidegate/workflows/StepKinds"
import { commonSettings, note } from "@tidegate/workflows/Settings"
import { closed, portsMark } from "../DescribedAs.ts"
import { setting } from "../Members.ts"
import { ids } from "../ExampleIds.ts"

/**
 * Steps and edges for the document and for typed clients: built from the table of kinds. The code that stores a graph validates
 * it and refuses unknown members.
 */

type Fields = Schema.Struct.Fields

const GraphId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{4,96}$/u)).annotate({
  description: "4 to 96 letters, digits, _ and -; it belongs to the same kind of step in all versions of the workflow"
})

const Values = Schema.Record(Schema.String, Schema.Json.annotate({ description: "A value, or a text with templates" }))

const NoValues = Values.check(Schema.isMaxProperties(0)).annotate({ description: "Its steps take no inputs" })

const InlineAction = Schema.Struct({
  provider_key: Schema.String.check(Characters.between(1, 96)),
  action_key: Schema.String.check(Characters.between(1, 96)),
  version: Schema.optionalKey(
    Schema.String.check(Characters.between(1, 32)).annotate({ description: "Default: 1.0.0" })
  ),
  provider_account_id: setting(Schema.String.annotate({ description: "Always null: a saved action names an account" }))
})
  .check(closed)
  .annotate({ identifier: "InlineAction", description: "An action of the catalog, instead of a saved one" })

const position = setting(
  Schema.Struct({ x: Schema.Finite, y: Schema.Finite })
    .check(closed)
    .annotate({ description: "Its position on the canvas in pixels, which runs ignore" })
)

/** Generated clients (openapi-fetch) lose a member that can only be null. */
const none = Schema.String.annotate({ description: "Null" })

/** A step of each kind. */
const examples: { readonly [kind: string]: Schema.JsonObject } = {
  action: {
    id: "fmt_name",
    kind: "action",
    name: "Title case",
    action: { provider_key: "formatter", action_key: "text.titlecase", version: "1.0.0" },
    invocation_inputs: { input: "{{trigger.body.customer.name}}" },
    config: { formatter: { options: { style: "english" } } }
  },
  destination: {
    id: "to_crm",
    kind: "destination",
    name: "CRM",
    resource_id: ids.destination,
    invocation_inputs: { body: { order: "{{trigger.body.id}}" } },
    config: { timeout_ms: 30_000, retry: { strategy: "exponential", interval: 1_000, count: 3 } }
  },
  transformation: { id: "reshape", kind: "transformation", name: "Reshape", resource_id: ids.transformation },
  filter: {
    id: "only_paid",
    kind: "filter",
    name: "Paid only",
    config: { conditions: { trigger: { body: { status: { $in: ["paid", "captured"] } } } } }
  },
  delay: { id: "wait_1d", kind: "delay", name: "Cool off", config: { mode: "for", amount: 1, unit: "days" } },
  branch: {
    id: "by_region",
    kind: "branch",
    name: "Region",
    config: {
      evaluation: "first",
      paths: [
        {
          key: "eu",
          name: "EU",
          rule: "conditions",
          conditions: { trigger: { body: { country: { $in: ["DE", "FR"] } } } }
        },
        { key: "rest", name: "Elsewhere", rule: "fallback" }
      ]
    }
  },
  wait: { id: "approved", kind: "wait", name: "Approval", config: { for: "approval", amount: 2, unit: "days" } },
  workflow: {
    id: "ship",
    kind: "workflow",
    name: "Ship the order",
    resource_id: ids.workflow,
    invocation_inputs: { input: { order: "{{trigger.body.id}}" } }
  },
  store: {
    id: "count_orders",
    kind: "store",
    name: "Count orders",
    config: { operation: "increment" },
    invocation_inputs: { key: "orders of {{trigger.body.customer}}", by: 1 }
  }
}

/** What each kind is, and which resource it names. */
const descriptions: { readonly [kind: string]: string } = {
  action: "Calls an action: a saved one by resource_id (act_…), or one in the step itself.",
  destination: "Sends to a destination (des_…), with its rate limit, credentials and retries.",
  transformation: "Runs a transformation (trs_…).",
  filter: "Continues if its conditions match: its own or those of a stored filter (flt_…).",
  delay: "Waits for an amount of a unit, or until a time. At most 31 days.",
  branch:
    "Continues on the paths that match: an edge selects one by the port path_<key>. `paths` is an alias of the kind.",
  wait: "Waits for a decision of a person, for a callback, or for a request at a source (src_…) that matches the input filter. It is left by out, rejected (a decision only), or timed_out.",
  workflow:
    "Calls a workflow of the team (wfl_…): begins a run of it with the input as its body, and continues with the result when that has ended. It is left by out or timed_out.",
  store:
    "Reads or changes a value that the workflow keeps between runs. compare_and_set is left by out, or by conflict."
}

const typeName = (kind: string): string => kind.charAt(0).toUpperCase() + kind.slice(1)

const configOf = ({ config, kind, settings }: StepKind<unknown>) =>
  Schema.Struct({
    ...(config.fields as Fields),
    ...Object.fromEntries(settings.map((name: CommonSetting) => [name, commonSettings[name]])),
    note
  })
    .check(closed)
    .annotate({ identifier: `${typeName(kind)}StepConfig` })

/** Whether a `config` is required, because one of its members is. */
const needsConfig = (kind: string): boolean => ["delay", "branch", "wait", "store"].includes(kind)

const stepOf = (row: StepKind<unknown>): Schema.Top => {
  const { callsAction, inline, kind, resource } = row
  const config = configOf(row)
  const id = Schema.String.check(Schema.isPattern(new RegExp(`^${resource ?? ""}[A-Za-z0-9_:-]{1,92}$`, "u")))
  const taken =
    kind === "destination" || kind === "transformation"
      ? `${envelopeInputs.join(", ")}; absent ones have the trigger's values`
      : kind === "wait"
        ? "filter: conditions about the request that the step waits for. A template in it stands for a text, a number or a truth value"
        : "Values and templates such as {{trigger.body.id}}, by input name"
  return Schema.Struct({
    id: GraphId,
    kind: kind === "branch" ? Schema.Literals(["branch", "paths"]) : Schema.Literal(kind),
    name: Schema.optionalKey(Schema.String.check(Characters.upTo(155)).annotate({ description: "For display" })),
    resource_id: resource === null ? setting(none) : inline ? setting(id) : id,
    action: callsAction ? setting(InlineAction) : setting(none),
    action_revision_id: setting(Schema.String.annotate({ description: "Reserved" })),
    invocation_inputs: setting(row.inputs === noInputs ? NoValues : Values.annotate({ description: taken })),
    config: needsConfig(kind) ? config : Schema.optionalKey(config),
    position
  })
    .check(closed, portsMark(row.ports))
    .annotate({
      identifier: `${typeName(kind)}Step`,
      description: descriptions[kind] ?? "",
      examples: [examples[kind]] as never
    })
}

/** The result of the table is known at run time only: this process's derived client is typed with this much. */
interface StepShown {
  readonly id: string
  readonly kind: string
}

export const WorkflowStep = Schema.Union(stepKinds.map(stepOf), { mode: "oneOf" }).annotate({
  identifier: "WorkflowStep",
  description: "`kind` selects the form. Every step needs an edge that leads to it, except in a chain."
}) as unknown as Schema.Codec<StepShown>

const ofEdge = {
  id: Schema.optionalKey(GraphId.annotate({ description: "Default: derived from its position" })),
  target_step_id: Schema.String.annotate({ description: "The step that it leads to" }),
  target_port: Schema.optionalKey(Schema.Literal("in").annotate({ description: "in: there is no other" })),
  mapping: setting(
    Values.annotate({
      description: "Inputs of its target step, which override the step's own when the run follows the edge"
    })
  ),
  condition: Schema.optionalKey(Schema.Json.annotate({ description: "Further conditions, like those of a filter" })),
  position: Schema.optionalKey(Schema.Int.annotate({ description: "Its order among the edges of one port" }))
}

export const WorkflowEdge = Schema.Union(
  [
    Schema.Struct({
      source_type: Schema.Literal("trigger"),
      source_step_id: setting(none),
      source_port: setting(Schema.Literal("out")),
      ...ofEdge
    })
      .check(closed)
      .annotate({
        identifier: "TriggerEdge",
        description: "An edge from the trigger.",
        examples: [{ source_type: "trigger", target_step_id: "only_paid" }]
      }),
    Schema.Struct({
      source_type: Schema.optionalKey(Schema.Literal("step").annotate({ description: "Default: step" })),
      source_step_id: Schema.String.annotate({ description: "The step where it starts" }),
      source_port: setting(
        Schema.String.annotate({
          description:
            "The port of the step: out, error, matched, or path_<key> of a branch, for which it is required (default: its first port)"
        })
      ),
      ...ofEdge
    })
      .check(closed)
      .annotate({
        identifier: "StepEdge",
        description: "An edge from an earlier step.",
        examples: [
          {
            source_type: "step",
            source_step_id: "by_region",
            source_port: "path_eu",
            target_step_id: "to_crm"
          } as never
        ]
      })
  ],
  { mode: "oneOf" }
).annotate({
  identifier: "WorkflowEdge",
  description: "`source_type` selects the form; an edge with `source_step_id` needs none."
})

export const WorkflowSteps = Schema.Array(WorkflowStep).check(Schema.isMaxLength(limits.steps))
export const WorkflowEdges = Schema.Array(WorkflowEdge).check(Schema.isMaxLength(limits.edges))
