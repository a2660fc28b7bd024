import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import { rehearsalOf } from "../src/Mocks.ts"
import { compileWorkflow } from "../src/Workflow.ts"
import { catalog, compiled, echo, edge, facts } from "./Graphs.ts"
import { Play } from "./Play.ts"

const store = (operation: string, invocation_inputs: object) => ({
  id: "store",
  kind: "store",
  config: { operation },
  invocation_inputs
})

it("A step that stores values takes the inputs of its operation only", () => {
  for (const [operation, inputs, isValid] of [
    ["get", { key: "a" }, true],
    ["set", { key: "a", value: 1, expires_in_seconds: 60 }, true],
    ["compare_and_set", { key: "a", expected: 1, value: 2 }, true],
    ["increment", { key: "a", by: 2 }, true],
    ["get", { key: "a", value: 1 }, false],
    ["delete", { key: "a", expires_in_seconds: 1 }, false],
    ["set", { key: "a", expected: 1 }, false],
    ["luck", { key: "a" }, false]
  ] as const) {
    const result = compileWorkflow([store(operation, inputs)], [edge("", "store")], catalog)
    expect([operation, inputs, Result.isSuccess(result)]).toEqual([operation, inputs, isValid])
  }
})

it("A test of a workflow stores nothing: the step finds nothing, or what its mock says", () => {
  const graph = compiled(
    [store("compare_and_set", { key: "a", value: 1 }), echo("by_out"), echo("by_conflict")],
    [edge("", "store"), edge("store", "by_out"), edge("store", "by_conflict", { source_port: "conflict" })]
  )
  for (const [mock, step] of [
    [null, "by_out"],
    [{ conflict: true }, "by_conflict"]
  ] as const) {
    const mocks = new Map(mock === null ? [] : [["store", { output: mock }]])
    const play = new Play(rehearsalOf(graph, mocks, false).workflow, facts()).run()
    expect([mock, play.at(step).status]).toEqual([mock, "succeeded"])
  }
})
