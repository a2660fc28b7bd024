/** The measured workflows. */
import { atLeast } from "./Comparison.ts"
import type { Requirement } from "./Report.ts"

/** A graph. Its steps may send to the given destination. */
export interface Graph {
  readonly name: string
  readonly steps: (destination: string) => ReadonlyArray<object>
  readonly edges: ReadonlyArray<object>
  readonly triggers?: object
  /** The part of the event path's rate that runs of this graph have to reach. */
  readonly required?: Requirement
}

export const format = (id: string, input: string) => ({
  id,
  kind: "action",
  action: { provider_key: "formatter", action_key: "text.uppercase" },
  invocation_inputs: { input }
})

const edge = (from: string | null, to: string, port?: string) => ({
  source_type: from === null ? "trigger" : "step",
  source_step_id: from,
  target_step_id: to,
  ...(port === undefined ? {} : { source_port: port })
})

/** The edges of steps that follow one after the other. */
export const inLine = (ids: ReadonlyArray<string>) => ids.map((id, at) => edge(ids[at - 1] ?? null, id))

const pureIds = ["read", "only_eur", "upper", "again", "done"]
const pure = [
  format("read", "{{trigger.body.customer.email}}"),
  { id: "only_eur", kind: "filter", config: { conditions: { body: { currency: "EUR" } } } },
  format("upper", "{{steps.read.output.result}}"),
  format("again", "{{trigger.body.type}} of {{steps.upper.output.result}}"),
  format("done", "{{steps.again.output.result}}")
]

const ways = Array.from({ length: 10 }, (_, at) => `way_${at}`)

export const graphs: ReadonlyArray<Graph> = [
  { name: "five pure steps", steps: () => pure, edges: inLine(pureIds), required: atLeast("ratio", 1 / 2) },
  {
    name: "five pure steps and a destination",
    steps: (destination) => [...pure, { id: "send", kind: "destination", resource_id: destination }],
    edges: inLine([...pureIds, "send"]),
    required: atLeast("ratio", 1 / 3)
  },
  {
    name: "ten branches and a join",
    steps: () => [
      { id: "split", kind: "branch", config: { paths: ways.map((key) => ({ key, rule: "always" })) } },
      ...ways.map((id) => format(id, "{{trigger.body.type}}")),
      format("join", "{{steps.way_0.output.result}}")
    ],
    edges: [
      edge(null, "split"),
      ...ways.map((id) => edge("split", id, `path_${id}`)),
      ...ways.map((id) => edge(id, "join"))
    ]
  }
]
