import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { messageOf, requestOf } from "../src/Workflow/effects/Envelope.ts"

const run = { method: "POST", path: "/", query: "", headers: "{}", body: null, presented: null } as never
const effectOf = (values: object) =>
  ({ inputs: { values, warnings: [] }, context: { trigger: { headers: {}, body: null } } }) as never

describe("Headers and parameters of a step", () => {
  const many = Object.fromEntries(Array.from({ length: 5_001 }, (_, i) => [`k${i}`, "a"]))
  const list = { a: Array.from({ length: 5_001 }, () => "a") }

  it.each([
    ["headers", many],
    ["headers", list],
    ["query", many],
    ["query", list],
    ["query", `?${"a=1&".repeat(5_000)}b=2`]
  ])("More than 5,000 values of a step's message are rejected (%s)", (name, values) => {
    const effect = effectOf({ [name]: values })
    const refused = { code: "INPUT_INVALID", message: `${name} has more than 5000 values` }
    expect(Result.getOrThrow(Result.flip(messageOf(effect, run)))).toEqual(refused)
    expect(Result.getOrThrow(Result.flip(requestOf(effect, run)))).toEqual(refused)
  })

  it("A step's message may have 5,000 values, also as text", () => {
    const query = "a=1&".repeat(4_999) + "b=2"
    expect(Result.getOrThrow(messageOf(effectOf({ query: `?${query}` }), run)).query).toBe(query)
    expect(Object.keys(Result.getOrThrow(requestOf(effectOf({ query }), run)).parsed_query)).toEqual(["a", "b"])
  })

  it("A step's headers and parameters may have any names", () => {
    const values = JSON.parse('{"__proto__": "a", "constructor": ["b", "c"]}') as object
    const message = Result.getOrThrow(messageOf(effectOf({ headers: values, query: values }), run))
    expect(Object.entries(message.headers)).toEqual([
      ["__proto__", "a"],
      ["constructor", ["b", "c"]]
    ])
    expect(message.query).toBe("__proto__=a&constructor=b&constructor=c")
    const request = Result.getOrThrow(requestOf(effectOf({ query: values }), run))
    expect(Object.entries(request.parsed_query)).toEqual([
      ["__proto__", "a"],
      ["constructor", ["b", "c"]]
    ])
  })
})
