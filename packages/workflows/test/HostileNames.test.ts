import type { Json } from "@tidegate/model/Rule"
import { describe, expect, it } from "vitest"
import { onlyStep, rehearsalOf } from "../src/Mocks.ts"
import { call, compiled, echo, edge, facts, filter } from "./Graphs.ts"
import { done, Play } from "./Play.ts"

/** Names that objects have of their own in this language: ids of steps may be these, and so may names of inputs. */

const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "__defineGetter__"]

/** As it is parsed: with members of its own. */
const json = (text: string): Json => JSON.parse(text) as Json

describe.each(names)("Step with the id %s", (id) => {
  const output = { result: `of ${id}` }

  it("A step id that is a special name works in templates", () => {
    const workflow = compiled(
      [call(id), echo("after", { one: `{{steps.${id}.output.result}}`, other: `{{steps["${id}"].status}}` })],
      [edge("", id), edge(id, "after")]
    )
    const { state } = new Play(workflow, facts(), () => done(output)).run()
    expect(state.steps[1]!.output).toEqual({ one: `of ${id}`, other: "succeeded" })
    expect(state.steps[1]!.warnings).toEqual([])
  })

  it("A step id that is a special name works in conditions", () => {
    const asked = json(`{"steps": {"${id}": {"output": {"result": "of ${id}"}}}}`)
    const workflow = compiled([call(id), filter("only", asked)], [edge("", id), edge(id, "only", { condition: asked })])
    expect(new Play(workflow, facts(), () => done(output)).run().state.steps[1]!.output).toEqual({ matched: true })
    expect(new Play(workflow, facts(), () => done({})).run().state.steps[1]!.status).toBe("skipped")
  })

  it("A skipped step whose id is a special name has no output", () => {
    const workflow = compiled(
      [
        filter("none", { trigger: { path: "/none" } }),
        call(id),
        echo("join", { of: `{{steps.${id}.output ?? "nothing"}}` })
      ],
      [edge("", "none"), edge("none", id), edge("", "join"), edge(id, "join")]
    )
    expect(new Play(workflow, facts()).run().state.steps.at(-1)!.output).toEqual({ of: "nothing" })
  })

  it("A step whose id is a special name can have a mock", () => {
    const workflow = compiled(
      [call(id), echo("after", { of: `{{steps.${id}.output.result}}` })],
      [edge("", id), edge(id, "after")]
    )
    const mocks = new Map([[id, { output }]])
    const whole = new Play(rehearsalOf(workflow, mocks, true).workflow, facts()).run()
    expect(whole.state.steps[1]!.output).toEqual({ of: `of ${id}` })
    expect(onlyStep(workflow, 1, mocks, 0).steps[0]).toMatchObject({ status: "succeeded", output })
  })

  it("A special name works as an input name and as a mapped name", () => {
    const written = json(`{"${id}": "{{trigger.body.${id}}}", "deep": {"${id}": 1}}`) as never
    const mapping = json(`{"over": {"${id}": 2}}`)
    const workflow = compiled([echo("only", written)], [edge("", "only", { mapping })])
    const { state } = new Play(workflow, facts(json(`{"${id}": "own"}`))).run()
    expect(JSON.parse(JSON.stringify(state.steps[0]!.output))).toEqual(
      json(`{"${id}": "own", "deep": {"${id}": 1}, "over": {"${id}": 2}}`)
    )
    expect(Object.keys(state.steps[0]!.output as object)).toEqual([id, "deep", "over"])
  })
})
