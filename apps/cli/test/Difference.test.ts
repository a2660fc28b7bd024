import { describe, expect, it } from "vitest"
import { differenceOf } from "../src/workflows/Difference.ts"
import { parseJsonc } from "../src/workflows/Files.ts"

const stored = {
  id: "wfl_1",
  name: "flow",
  status: "active",
  description: null,
  steps: [
    {
      id: "one1",
      kind: "filter",
      name: "",
      resource_id: null,
      invocation_inputs: null,
      config: { conditions: { a: 1 } }
    },
    { id: "two2", kind: "destination", name: "CRM", resource_id: "des_1", invocation_inputs: null, config: {} }
  ],
  edges: [
    {
      id: "e_00",
      source_type: "trigger",
      source_step_id: null,
      source_port: "out",
      target_step_id: "one1",
      mapping: {}
    },
    {
      id: "e_01",
      source_type: "step",
      source_step_id: "one1",
      source_port: "matched",
      target_step_id: "two2",
      mapping: {}
    }
  ]
}
const same = {
  name: "flow",
  status: "active",
  steps: [
    { id: "one1", kind: "filter", config: { conditions: { a: 1 } } },
    { id: "two2", kind: "destination", name: "CRM", resource_id: "des_1" }
  ],
  edges: [
    { source_type: "trigger", target_step_id: "one1" },
    { source_step_id: "one1", target_step_id: "two2" }
  ]
}

describe("Difference between a written and a stored workflow", () => {
  it("A written workflow without the defaults of the stored one does not differ from it", () => {
    expect(differenceOf(stored, same)).toEqual([])
    expect(differenceOf(stored, { name: "flow" })).toEqual([])
  })

  it("Difference names changed settings, and steps and edges that are added, removed or changed", () => {
    const written = {
      ...same,
      status: "paused",
      steps: [
        { id: "one1", kind: "filter", config: {} },
        { id: "six6", kind: "delay", config: {} }
      ],
      edges: [same.edges[0], { source_step_id: "one1", target_step_id: "six6" }]
    }
    expect(differenceOf(stored, written as never)).toEqual([
      { change: "changed", what: "status", members: [] },
      { change: "changed", what: "step one1", members: ["config"] },
      { change: "added", what: "step six6", members: [] },
      { change: "removed", what: "step two2", members: [] },
      { change: "added", what: "edge one1 -> six6", members: [] },
      { change: "removed", what: "edge one1 -> two2", members: [] }
    ])
    expect(differenceOf(null, { name: "new", steps: [same.steps[0]] }).map(({ change }) => change)).toEqual(["added"])
  })

  it("JSON with comments and commas at the end keeps texts that look like them", () => {
    const text = '{\n  // a comment\n  "url": "https://x/,]", /* and\n one */ "list": [1, 2,],\n}'
    expect(parseJsonc(text, "f")).toEqual({ url: "https://x/,]", list: [1, 2] })
    expect(() => parseJsonc("{", "f.jsonc")).toThrow("f.jsonc is not JSON")
  })
})
