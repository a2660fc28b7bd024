import { describe, expect, it } from "vitest"
import type { Json } from "@tidegate/model/Rule"
import { limits } from "../src/Limits.ts"
import { SecretTexts } from "../src/SecretTexts.ts"
import { answerOf, answerSize, maskedAnswer } from "../src/StepAnswer.ts"
import { branch, call, compiled, echo, edge, facts } from "./Graphs.ts"
import { allOf, dice, done, Play, refuses } from "./Play.ts"

const received = (body: string, headers: Readonly<Record<string, string>> = { "content-type": "application/json" }) =>
  allOf(answerOf({ status: 422, headers, body: Buffer.from(body), truncated: false }))

const kept = (body: Json, { texts = new SecretTexts(), truncated = false } = {}) =>
  allOf(maskedAnswer({ status: 422, headers: {}, body, truncated }, texts))

describe("Answer of a refused call", () => {
  it("JSON of an answer is parsed, other bodies are text, and an empty body is null", () => {
    expect(received('{"error":"no"}').body).toEqual({ error: "no" })
    expect(received("<p>no</p>", { "content-type": "text/html" }).body).toBe("<p>no</p>")
    expect(received("").body).toBeNull()
  })

  it("Of the headers, those that explain a refusal are kept, and cookies are not", () => {
    const { headers } = received("", {
      "set-cookie": "session=1",
      "x-powered-by": "php",
      "retry-after": "30",
      "x-ratelimit-remaining": "0",
      "x-request-id": "r1",
      "www-authenticate": "Bearer",
      "content-type": "x".repeat(1_000)
    })
    expect(Object.keys(headers)).toEqual([
      "retry-after",
      "x-ratelimit-remaining",
      "x-request-id",
      "www-authenticate",
      "content-type"
    ])
    expect(headers["content-type"]).toHaveLength(500)
  })

  it("Secrets in an answer are masked: by name, by form, and those of the run", () => {
    const texts = new SecretTexts()
    allOf(texts.learn({ password: "the-one-of-the-run" }))
    const body = { token: "abc", text: "see the-one-of-the-run", card: "4111 1111 1111 1111", code: "E1" }
    const shown = allOf(
      maskedAnswer({ status: 401, headers: { "x-error-token": "abcdef" }, body, truncated: false }, texts)
    )
    expect(shown).toEqual({
      status: 401,
      headers: { "x-error-token": "[REDACTED]" },
      body: { token: "[REDACTED]", text: "see [REDACTED]", card: "[REDACTED]", code: "E1" },
      truncated: false
    })
  })

  it("A run with more secrets than it remembers keeps nothing of an answer but its status", () => {
    const texts = new SecretTexts()
    allOf(texts.learn({ password: Array.from({ length: 200 }, (_, i) => `secret-${i}`) }))
    expect(kept({ a: 1 }, { texts })).toEqual({ status: 422, headers: {}, body: null, truncated: true })
  })

  it("A long text is cut, a long JSON value is shown in part, and JSON that arrived cut is not shown", () => {
    const text = kept("é\n".repeat(60_000))
    expect(text.truncated).toBe(true)
    expect(JSON.stringify(text.body).length).toBeLessThanOrEqual(limits.answerLength + 2)
    expect(JSON.stringify(text.body).length).toBeGreaterThan(limits.answerLength / 2)
    const list = kept(Array.from({ length: 5_000 }, (_, i) => ({ i, message: "not valid" })))
    expect(list).toMatchObject({ truncated: true })
    expect(list.body).toHaveLength(20)
    expect(kept('{"token":"abc', { truncated: true })).toMatchObject({ body: null, truncated: true })
    expect(kept("<p>to be contin", { truncated: true })).toMatchObject({ body: "<p>to be contin", truncated: true })
  })

  it("No body makes an answer larger than its limit", () => {
    const roll = dice(7)
    const texts = ["\u0000", "password: x ", "4111111111111111 ", "😀", '"', "plain text "]
    const value = (level: number): Json => {
      if (level > 3 || roll() < 0.2) return texts[Math.floor(roll() * texts.length)]!.repeat(Math.floor(roll() * 9_000))
      const inner = Array.from({ length: Math.floor(roll() * 8) }, () => value(level + 1))
      return roll() < 0.5 ? inner : Object.fromEntries(inner.map((one, i) => [`n${i}`, one]))
    }
    for (let i = 0; i < 40; i++) {
      const { body } = kept(value(0))
      expect(JSON.stringify(body).length).toBeLessThanOrEqual(limits.answerLength + 2)
    }
  })
})

describe("Answer in a run", () => {
  const refusing = compiled(
    [
      call("call", { on_error: "branch" }),
      branch("reason", [
        { key: "gone", rule: "conditions", conditions: { steps: { call: { error: { response: { status: 404 } } } } } },
        { key: "other", rule: "fallback" }
      ]),
      echo("told", { hint: "{{steps.call.error.response.body.hint}}" })
    ],
    [
      edge("", "call"),
      edge("call", "reason", { source_port: "error" }),
      edge("reason", "told", { source_port: "path_other" })
    ]
  )

  it("The error branch reads the answer in conditions and templates", () => {
    const play = new Play(refusing, facts(), () => refuses({ hint: "no such customer" })).run()
    expect(play.at("told")).toMatchObject({ status: "succeeded", output: { hint: "no such customer" } })
  })

  it("The answer counts toward the size of its run, until another attempt succeeds", () => {
    const workflow = compiled([call("call", { retry: { count: 1, interval: 1_000 } })], [edge("", "call")])
    const outcomes = [refuses("x".repeat(1_000), 503), done("ok")]
    const play = new Play(workflow, facts(), () => outcomes.shift()!)
    play.tell({ type: "begun" }).step()
    const { error, size } = play.at("call")
    expect(size).toBe(answerSize(error))
    expect(size).toBeGreaterThan(1_000)
    play.finish()
    expect(play.at("call")).toMatchObject({ status: "succeeded", error: null, size: 4 })
  })

  it("An answer for which the run has no room is left out, and the step fails with its own error", () => {
    const ids = Array.from({ length: 10 }, (_, i) => `large_${i}`)
    const workflow = compiled(
      [...ids.map((id) => call(id)), call("last")],
      [...ids, "last"].map((id, i) => edge(i === 0 ? "" : ids[i - 1]!, id))
    )
    let calls = 0
    const play = new Play(workflow, facts(), () =>
      calls++ < 10 ? done("x".repeat(limits.valueLength - 100)) : refuses("y".repeat(5_000))
    ).run()
    expect(play.at("last").error).toEqual({ code: "BAD_RESPONSE", message: "HTTP 422", status: 422 })
  })
})
