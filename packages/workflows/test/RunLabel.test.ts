import { describe, expect, it } from "vitest"
import { compileLabel, labelFault, labelling } from "../src/RunLabel.ts"
import { SecretTexts } from "../src/SecretTexts.ts"
import { facts } from "./Graphs.ts"
import { allOf } from "./Play.ts"

const label = (template: string, body: unknown, texts = new SecretTexts()): string | null =>
  allOf(labelling(compileLabel(template)!, facts(body as never), texts))

describe("Label of a run", () => {
  it("A label is the text that its template makes of the request", () => {
    expect(label("order {{trigger.body.id}} of {{trigger.body.who}}", { id: 7, who: "Ada" })).toBe("order 7 of Ada")
    expect(label("{{trigger.body}}", { id: 7 })).toBe('{"id":7}')
    expect(label("{{trigger.body.id}}", { id: 7 })).toBe("7")
    expect(label("{{trigger.body.none}}", {})).toBeNull()
    expect(label("  ", {})).toBeNull()
  })

  it("A label is one line of at most 200 characters", () => {
    expect(label("{{trigger.body}}", " a\u0000\nb\u2028 ")).toBe("a b")
    const long = label("{{trigger.body}}", "😀".repeat(500))!
    expect(long).toHaveLength(400)
    expect(long.isWellFormed()).toBe(true)
  })

  it("A label has no secrets, also not the beginning of one at its end", () => {
    const texts = new SecretTexts()
    allOf(texts.learn({ password: `the-secret-${"x".repeat(60)}` }))
    expect(label("{{trigger.body.a}}", { a: `is the-secret-${"x".repeat(60)}` }, texts)).toBe("is [REDACTED]")
    expect(label("{{trigger.body.a}}", { a: "pay 4111 1111 1111 1111" })).toBe("pay [REDACTED]")
    const cut = label("{{trigger.body.a}}", { a: `${"y".repeat(780)} the-secret-${"x".repeat(60)}` }, texts)!
    expect(cut).not.toContain("the-secret")
  })

  it.each([
    ["{{steps.a.output}}", /steps/],
    ["{{item}}", /item/],
    ["{{trigger.bdoy.id}}", /did you mean body/],
    ["{{trigger.body.id", /./]
  ])("Template %s of a label is refused", (template, why) => {
    expect(labelFault(template)).toMatch(why)
  })

  it("A template without tokens is a label for all runs", () => {
    expect(labelFault("nightly")).toBeNull()
    expect(label("nightly", {})).toBe("nightly")
  })
})
