import { expect, it } from "vitest"
import type { Client, components } from "../src/index.ts"

/** What the compiler says of steps and edges: a line with a mark must not compile, and the check of types fails where it does. */

type Step = components["schemas"]["WorkflowStep"]
type Edge = components["schemas"]["WorkflowEdge"]

const paths = [{ key: "eu", rule: "always" as const }]
const branch: Step = { id: "by_region", kind: "branch", config: { paths } }
const edge: Edge = { source_type: "step", source_step_id: "by_region", target_step_id: "to_crm" }
const further: Edge = { source_step_id: "by_region", target_step_id: "to_crm" }
const begin: Edge = { source_type: "trigger", target_step_id: "by_region" }

// @ts-expect-error -- a step is no number, and no text
const numbers: ReadonlyArray<Step> = [1, "x"]
// @ts-expect-error -- a step is of a kind that there is
const loop: Step = { id: "step_1", kind: "loop" }
// @ts-expect-error -- a branch has paths
const pathless: Step = { id: "step_1", kind: "branch", config: {} }
// @ts-expect-error -- an edge begins somewhere
const loose: Edge = { target_step_id: "to_crm" }

const written = { name: "typed", source_id: "src_1" }
const save = (client: Client) =>
  client.post("/workflows", { body: { ...written, steps: [branch], edges: [begin, edge, further] } })
// @ts-expect-error -- nor does a call take what is no step
const saveNumbers = (client: Client) => client.post("/workflows", { body: { ...written, steps: [1, "x"] } })

it("Steps and edges of workflows are typed by their kinds", () => {
  expect([branch.kind, edge.source_type, begin.source_type]).toEqual(["branch", "step", "trigger"])
  expect([numbers, loop, pathless, loose, save, saveNumbers]).toHaveLength(6)
})
