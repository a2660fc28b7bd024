import { describe, expect, it } from "vitest"
import { completionsOf, type Known } from "../../apps/dashboard/src/parts/Completions.ts"

const none = { hasIds: false, isUsual: false }
const filters: ReadonlyArray<Known> = [
  {
    ...none,
    name: "status",
    key: "status",
    label: "Status",
    values: [
      ["FAILED", "Failed"],
      ["HOLD", "On hold"]
    ]
  },
  {
    name: "source_id",
    key: "source",
    label: "Source",
    values: [["src_1", "Failed orders"]],
    hasIds: true,
    isUsual: false
  },
  { ...none, name: "q", key: "id", label: "Id", values: null, isUsual: true }
]

const offered = (text: string) => completionsOf(text, filters).map(({ label }) => label)

describe("Completion of filters in the dashboard", () => {
  it("An empty field offers all filters by name, and the beginning of a name offers it", () => {
    expect(offered("")).toEqual(["Status (status:)", "Source (source:)", "Id (id:)"])
    expect(completionsOf("sta", filters)[0]).toMatchObject({ does: "write", text: "status:" })
  })

  it("A named filter offers the values that have the text, by the word or by the value of the URL", () => {
    expect(offered("status:")).toEqual(["Status: Failed", "Status: On hold"])
    expect(completionsOf("STATUS: hold", filters)).toMatchObject([{ does: "set", name: "status", value: "HOLD" }])
    expect(offered("status:nothing")).toEqual([])
  })

  it("A resource is found by its name, or by an id whose name is not known", () => {
    expect(completionsOf("source:ORDERS", filters)).toMatchObject([{ name: "source_id", value: "src_1" }])
    expect(completionsOf("source:src_2", filters)).toMatchObject([{ name: "source_id", value: "src_2" }])
    expect(offered("source:no id")).toEqual([])
  })

  it("A text without a name is a value if it is exactly one, and is searched for otherwise, with its colons", () => {
    expect(offered("failed")).toEqual(["Status: Failed", "Id: failed", "Source: Failed orders"])
    expect(completionsOf("a:b", filters)).toMatchObject([{ name: "q", value: "a:b" }])
    expect(completionsOf("id:a:b", filters)).toMatchObject([{ name: "q", value: "a:b" }])
  })
})
