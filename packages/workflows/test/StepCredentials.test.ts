import { describe, expect, it } from "@effect/vitest"
import { credentialsIn, shownGraph } from "../src/StepCredentials.ts"

const call = (inputs: object, more: object = {}) => ({
  id: "call",
  kind: "action",
  action: { provider_key: "http", action_key: "request", version: "1.0.0", provider_account_id: null },
  invocation_inputs: inputs,
  ...more
})
const graph = (inputs: object, more: object = {}) => ({ steps: [call(inputs, more)], edges: [] }) as never
const places = (inputs: object, more: object = {}) => credentialsIn(graph(inputs, more)).map(({ field }) => field)

describe("credentials that are written into steps", () => {
  it("are found wherever something outside is given them", () => {
    expect(places({ headers: { Authorization: "Bearer s3cr3t-value" } })).toEqual([
      "invocation_inputs.headers.Authorization"
    ])
    expect(places({ query: { api_key: 123456 }, body: { auth: { user: "ada1", pass: "lovelace" } } })).toEqual([
      "invocation_inputs.query.api_key",
      "invocation_inputs.body.auth.user",
      "invocation_inputs.body.auth.pass"
    ])
    expect(places({ headers: [{ name: "x-api-key", value: "k-123456" }] })).toEqual([
      "invocation_inputs.headers[0].value"
    ])
    expect(places({ headers: { Authorization: "Bearer s3cr3t{{trigger.body.a}}" } })).toHaveLength(1)
  })

  it("are none where the run brings the value, or nothing leaves the process", () => {
    expect(places({ headers: { Authorization: "Bearer {{trigger.headers.x-token}}", accept: "text/plain" } })).toEqual(
      []
    )
    expect(places({ body: { token: "{{steps.login.output.body.token}}", secret: null, password: "" } })).toEqual([])
    expect(places({ input: "s", token: "abcdef" }, { action: { provider_key: "formatter" } })).toEqual([])
  })

  it("of a graph that was stored are masked where it is shown, and nothing else is", () => {
    const shown = shownGraph(graph({ url: "https://a.example", headers: { "x-api-key": "k-123456", accept: "a/b" } }))
    expect(shown.steps[0]!.invocation_inputs).toEqual({
      url: "https://a.example",
      headers: { "x-api-key": "[REDACTED]", accept: "a/b" }
    })
    const plain = graph({ url: "https://a.example" }) as { readonly steps: ReadonlyArray<unknown> }
    expect(shownGraph(plain as never).steps[0]).toBe(plain.steps[0])
  })
})
