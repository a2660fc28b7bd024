import { of, row, type Section, tests } from "./Facts.ts"

const api = tests("packages/api/test/Workflows.test.ts")
const stored = tests("packages/storage/test/Workflows.test.ts")
const input = stored("a name is judged without the space around it, and a source may be written as an object")

const graph = stored("stores a workflow and shows it, its graph with all defaults")
const issue = stored("is not activated while it names what is disabled; it tells so when that comes later")
const written = [of("name source_id description", input), of("steps edges", graph), of("status", issue)]

export const workflows: Section = {
  title: "Workflows",
  endpoints: [
    row("GET /workflows", api("a list is of the latest change first, and knows the states")),
    row("POST,PUT /workflows; GET,PUT,PATCH,DELETE /workflows/{id}", api("the life of one of ${prefix}/workflows"))
  ],
  fields: {
    Workflow: [of("steps edges", graph)],
    WorkflowTrigger: [],
    WorkflowCapabilities: [],
    WorkflowRuntimeIssue: [],
    WorkflowWrite: written,
    WorkflowPatch: [...written, of("version", stored("a change of an old version is refused, and nothing is written"))]
  }
}
