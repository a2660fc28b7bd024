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

describe("Credentials written into steps", () => {
  it("Credentials in headers, query and body of a step are found", () => {
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

  it("Credentials are found in the inputs of every step kind and in mappings of edges", () => {
    const given = { headers: { authorization: "Bearer s3cr3t-value" } }
    const steps = ["transformation", "destination", "filter"].map((kind) => ({
      id: kind,
      kind,
      invocation_inputs: given
    }))
    const edges = steps.map(({ id }) => ({
      id: `e_${id}`,
      target_step_id: id,
      mapping: { query: { token: "abc123" } }
    }))
    const issues = credentialsIn({ steps, edges } as never)
    expect(issues.map(({ edge_id, field, step_id }) => `${step_id ?? edge_id} ${field}`)).toEqual([
      ...steps.map(({ id }) => `${id} invocation_inputs.headers.authorization`),
      ...edges.map(({ id }) => `${id} mapping.query.token`)
    ])
    expect(issues[0]!.message).toContain("variable of the transformation")
    expect(issues[1]!.message).toContain("keep it with the destination")
    expect(JSON.stringify(shownGraph({ steps, edges } as never))).not.toMatch(/s3cr3t|abc123/)
  })

  it.each([
    ["in a URL", { url: "https://a.example/?a=1&api_key=qwertzuiop" }, "url"],
    ["before the host of a URL", { url: "https://ada:lovelace@a.example/" }, "url"],
    ["in a path", { path: "/a?access_token=qwertzuiop" }, "path"],
    ["in a form", { body: "grant_type=x&client_secret=qwertzuiop" }, "body"],
    ["in JSON as text", { body: '{"a":[{"password":"qwertzuiop"}]}' }, "body"],
    ["in JSON as text with templates", { body: '{"n": {{trigger.body.n}}, "password": "qwertzuiop"}' }, "body"],
    ["by its format alone", { headers: { "x-thing": "sk_live_qwertzuiop" } }, "headers.x-thing"],
    ["after an authorization scheme", { headers: { "x-thing": "Bearer qwertz1234" } }, "headers.x-thing"],
    ["in the URL of a chat webhook", { url: "https://hooks.slack.com/services/T0/B0/qwertz" }, "url"],
    [
      "in the default of a template",
      { headers: { authorization: 'Bearer {{trigger.body.a ?? "qwertz"}}' } },
      "headers.authorization"
    ],
    ["in a pair of name and value", { body: [["x-api-key", "qwertz"]] }, "body[0][1]"],
    ["beside a member with its name", { body: [{ header: "x-api-key", content: "qwertz" }] }, "body[0].content"],
    ["as the mask that replaced it", { url: "[REDACTED]" }, "url"]
  ])("A written credential is found %s", (_, inputs, place) => {
    expect(places(inputs)).toEqual([`invocation_inputs.${place}`])
    expect(JSON.stringify(shownGraph(graph(inputs)))).not.toMatch(/qwertz|lovelace/)
  })

  it.each([
    [
      "names that are about a secret",
      { body: { authorization_status: "approved", passwordReset: "asked", token_type: "Bearer" } }
    ],
    ["words after a scheme name", { body: { plan: "Basic shipping", text: "our basic package has a bearer" } }],
    [
      "a URL with templates",
      { url: "https://{{trigger.body.a}}:{{trigger.body.b}}@a.example/?token={{trigger.body.t}}" }
    ],
    ["JSON text with templates", { body: '{"password": "{{trigger.body.p}}", "n": {{trigger.body.n}}}' }],
    ["a template with an empty default", { headers: { authorization: '{{trigger.body.a ?? ""}}' } }],
    ["text that is not JSON", { body: "{not json, password: it is asked for later}" }]
  ])("No credential is found in %s", (_, inputs) => {
    expect(places(inputs)).toEqual([])
  })

  it("Formatter inputs are checked for texts that look secret, and not by the names of inputs", () => {
    const formatter = { action: { provider_key: "formatter" } }
    expect(places({ input: "sk_live_qwertzuiop", token: "abcdef" }, formatter)).toEqual(["invocation_inputs.input"])
  })

  it("Templates, empty values and formatter inputs with secret names are not reported as credentials", () => {
    expect(places({ headers: { Authorization: "Bearer {{trigger.headers.x-token}}", accept: "text/plain" } })).toEqual(
      []
    )
    expect(places({ body: { token: "{{steps.login.output.body.token}}", secret: null, password: "" } })).toEqual([])
    expect(places({ input: "s", token: "abcdef" }, { action: { provider_key: "formatter" } })).toEqual([])
  })

  it("Only the credentials of a stored graph are masked when it is shown", () => {
    const shown = shownGraph(graph({ url: "https://a.example", headers: { "x-api-key": "k-123456", accept: "a/b" } }))
    expect(shown.steps[0]!.invocation_inputs).toEqual({
      url: "https://a.example",
      headers: { "x-api-key": "[REDACTED]", accept: "a/b" }
    })
    const plain = graph({ url: "https://a.example" }) as { readonly steps: ReadonlyArray<unknown> }
    expect(shownGraph(plain as never).steps[0]).toBe(plain.steps[0])
  })
})
