import { Ajv2020 } from "ajv/dist/2020.js"
import { Result, type Schema } from "effect"
import { describe, expect, it } from "vitest"
import { manifest, providers } from "@tidegate/actions/Manifest"
import type { Call } from "@tidegate/actions/Call"
import { callOf, inlineActionOf } from "@tidegate/actions/Providers"
import { noCredentials } from "@tidegate/actions/Provider"
import type { Step } from "@tidegate/workflows/Definition"
import { outputFault } from "../../workflows/src/OutputNames.ts"
import { connectors } from "@tidegate/connectors/Connectors"

const everyAction = providers.flatMap((provider) =>
  provider.actions.map((action) => [`${provider.key} ${action.key}`, provider, action] as const)
)

describe("List of action providers", () => {
  it("List of providers has each key once, and every destination type except those that steps cannot use", () => {
    const keys = providers.map(({ key }) => key)
    expect(new Set(keys).size).toBe(keys.length)
    expect(new Set(everyAction.map(([name]) => name)).size).toBe(everyAction.length)
    const types = connectors
      .map(({ type }) => type)
      .filter((type) => !["HTTP", "CLI", "MOCK_API", "PULL"].includes(type))
    expect(keys).toEqual(expect.arrayContaining(types.map((type) => type.toLowerCase())))
    expect(everyAction.filter(([, { key }]) => key === "formatter")).toHaveLength(45)
  })

  it("List of providers is plain JSON", () => {
    expect(JSON.parse(JSON.stringify(manifest))).toEqual(manifest)
  })
})

const judge = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })

const faultsOf = (schema: Schema.JsonObject, value: unknown) => {
  judge.validate(Object.assign({}, schema, { $schema: "https://json-schema.org/draft/2020-12/schema" }), value)
  return judge.errors ?? []
}

describe.each(everyAction)("Action %s", (_name, provider, action) => {
  it("Samples of an action match its own schemas", () => {
    expect(faultsOf(action.input, action.sample.inputs)).toEqual([])
    expect(faultsOf(action.output, action.sample.output)).toEqual([])
    // A step that asks for any of them is not warned.
    const names = Object.keys(action.sample.output)
    expect(names.flatMap((name) => outputFault(action.action.output ?? {}, [name]) ?? [])).toEqual([])
    if (!("patternProperties" in action.output)) {
      expect(outputFault(action.action.output ?? {}, [`${names[0]}x`])).not.toBeNull()
    }
  })

  it("Action takes the inputs of its schema and refuses others", () => {
    expect([...(action.action.inputs ?? [])].toSorted()).toEqual(
      Object.keys(action.input["properties"] as object).toSorted()
    )
    expect(action.input["additionalProperties"]).toBe(false)
    if (action.call === null) return
    expect(faultsOf(action.input, Object.assign({ nonsense: 1 }, action.sample.inputs))).toHaveLength(1)
    const call = action.call(Object.assign({ nonsense: 1 }, action.sample.inputs), noCredentials)
    expect(Result.isFailure(call) && call.failure.code).toBe("INPUT_INVALID")
  })

  it("Action that needs no credentials, or an account, can be defined inside a step", () => {
    if (action.call === null) return
    const name = { provider_key: provider.key, action_key: action.key, version: action.version }
    const step = { invocation_inputs: action.sample.inputs, config: {} } as unknown as Step
    const isOpen = provider.auth.some(({ fields, key }) => key === "none" && fields.every(({ required }) => !required))
    const takesAccount = provider.auth.some(({ key }) => key === "account")
    const compiled = (provider_account_id: string | null) => {
      const result = inlineActionOf({ ...name, provider_account_id })!.compile(step)
      return Result.isSuccess(result) || result.failure[0]?.field
    }
    const account = "action.provider_account_id"
    expect(compiled(null)).toBe(isOpen || (takesAccount ? account : "action"))
    expect(compiled("pac_1")).toBe(takesAccount || account)
    if (isOpen) expect(Result.isSuccess(callOf(name, action.sample.inputs, noCredentials))).toBe(true)
  })
})

it("Names of headers and parameters may be names of built-in object properties", () => {
  const publish = providers.find(({ key }) => key === "gateway")!.actions.find(({ key }) => key === "publish")!
  const names = ["__proto__", "constructor", "toString"]
  const headers = Object.fromEntries(names.map((name) => [name, "a"]))
  const made = callOf(
    { provider_key: "gateway", action_key: "publish", version: publish.version },
    { source_id: "src_00000000000000000000000000", headers, query: headers, body: {} },
    noCredentials
  )
  const { operation } = Result.getOrThrow(made) as Extract<Call, { readonly kind: "gateway" }>
  const message = operation.name === "publish" ? operation.message : null
  expect(Object.entries(message!.headers)).toEqual(
    expect.arrayContaining(names.map((name) => [name.toLowerCase(), "a"]))
  )
  expect(message!.query).toBe("__proto__=a&constructor=a&toString=a")
})
