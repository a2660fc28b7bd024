import { expect } from "vitest"
import { callingProviders } from "@tidegate/actions/Providers"
import { rows } from "../../packages/connectors/test/rows/Rows.ts"
import type { Body } from "../support/Gateway.ts"
import { configAt } from "../support/Mocks.ts"
import { answering, it } from "./apiStandIn.ts"
import { begin, edge, ended } from "./workflowRuns.ts"

/**
 * Steps that send through each type of destination that calls an API. A mock replaces the API. Each type is used through a destination, and as an
 * action, which has no destination.
 */

const event = { message: "hello", id: 7, media_url: "https://93.184.216.34/a.png" }

const calling = rows.filter(({ mock }) => mock !== null).map((row) => [row.type, row] as const)

it.for(calling)("A destination step calls the API of %s", async ([type, { accepted }], { api, calls, gateway }) => {
  api.reset()
  api.reply = answering(accepted)
  const destination = await gateway.destination(configAt(type, api.origin), type)
  const step = { id: "send_it", kind: "destination", resource_id: destination.id }
  const { post } = await begin(gateway, [step], [edge(null, "send_it")])
  const { outputs, row } = await ended(gateway, await post({ body: JSON.stringify(event) }))
  expect(row).toMatchObject({ status: "succeeded", error_message: null })
  expect(outputs["0"].output.status).toBe(accepted.status)
  const made = calls()
  expect(made.length).toBeGreaterThan(0)
  expect(made.at(-1)!.headers).toMatchObject({ "x-gateway-run-id": row.id, "x-gateway-step-id": "send_it" })
})

const asActions = calling.flatMap(([type, row]) => {
  const provider = callingProviders.find(({ key }) => key === type.toLowerCase())
  return provider === undefined ? [] : [[type, row, provider] as const]
})

it.for(asActions)("An action calls the API of %s", async ([type, { accepted }, provider], { api, calls, gateway }) => {
  api.reset()
  api.reply = answering(accepted)
  const { auth, auth_type, ...config } = configAt(type, api.origin) as Body
  const [{ action, key, sample }] = provider.actions as [(typeof provider.actions)[number]]
  // Where a store or a queue is goes with its key.
  const isPlace = ([name]: readonly [string, unknown]): boolean => name === "endpoint" || name === "queue_url"
  const isInput = (entry: readonly [string, unknown]): boolean =>
    !isPlace(entry) && (action.inputs?.includes(entry[0]) ?? false)
  const mode = String(auth_type ?? "none").toLowerCase()
  const { fields } = provider.auth.find((one) => one.key === mode) ?? provider.auth[0]
  const secrets = Object.entries(config).filter(([name]) => fields.some((field) => field.key === name))
  const saved = await gateway.call("POST", "/actions", {
    name: gateway.name("action"),
    provider_key: provider.key,
    action_key: key,
    auth_mode: mode === "no_auth" ? "none" : mode,
    ...(auth === null && secrets.length === 0 ? {} : { credentials: { ...auth, ...Object.fromEntries(secrets) } }),
    inputs: Object.fromEntries(Object.entries(config).filter((entry) => isPlace(entry) && typeof entry[1] === "string"))
  })
  expect(saved.status, JSON.stringify(saved.body)).toBe(201)
  const inputs = Object.fromEntries(Object.entries(config).filter(isInput))
  // What a destination fills from its event comes from the run here.
  const given = JSON.parse(
    JSON.stringify(inputs).replaceAll(/\{\{(\w+)(.*?)\}\}/g, (whole, name: string, path: string) =>
      name === "payload"
        ? `{{trigger.body${path}}}`
        : Object.hasOwn(event, name)
          ? `{{trigger.body.${name}}}`
          : name.endsWith("_id")
            ? "{{run.id}}"
            : whole
    )
  )
  const rest = ["payload", "values"].filter(
    (name) => action.inputs?.includes(name) === true && !Object.hasOwn(given, name)
  )
  const step = {
    id: "call_it",
    kind: "action",
    resource_id: saved.body.id,
    invocation_inputs: {
      ...given,
      ...Object.fromEntries(rest.map((name) => [name, sample.inputs[name] ?? "{{trigger.body}}"]))
    }
  }
  const { post } = await begin(gateway, [step], [edge(null, "call_it")])
  const { outputs, row } = await ended(gateway, await post({ body: JSON.stringify(event) }))
  expect(row).toMatchObject({ status: "succeeded", error_message: null })
  expect(outputs["0"].output.status).toBe(accepted.status)
  const made = calls()
  expect(made.at(-1)!.headers).toMatchObject({ "x-gateway-run-id": row.id, "x-gateway-step-id": "call_it" })
})

it("An answer that repeats the token of its call is stored without it", async ({ api, calls, gateway }) => {
  api.reset()
  api.reply = (response, { headers }) =>
    void response.writeHead(400, { "content-type": "text/plain" }).end(`you sent ${String(headers["authorization"])}`)
  const saved = await gateway.call("POST", "/actions", {
    name: gateway.name("action"),
    provider_key: "azure_service_bus",
    action_key: "send",
    auth_mode: "azure_sas_key",
    credentials: { key_name: "gateway-send", key: "s3cret-of-the-policy" },
    inputs: { endpoint: api.origin }
  })
  expect(saved.status, JSON.stringify(saved.body)).toBe(201)
  const invocation_inputs = { entity: "orders", payload: "{{trigger.body}}" }
  const step = { id: "call_it", kind: "action", resource_id: saved.body.id, invocation_inputs }
  const { post } = await begin(gateway, [step], [edge(null, "call_it")])
  const { outputs, row } = await ended(gateway, await post({ body: JSON.stringify(event) }))
  expect(row.status).toBe("failed")
  const token = String(calls().at(-1)!.headers["authorization"])
  expect(token).toMatch(/^SharedAccessSignature sr=/)
  const stored = JSON.stringify([row, outputs])
  expect(stored).toContain("you sent ****")
  expect(stored).not.toContain(token)
})
