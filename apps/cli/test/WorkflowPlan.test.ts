import { Client } from "@tidegate/client/source"
import { describe, expect, it } from "vitest"
import { apply } from "../src/transfer/Apply.ts"
import { entryOf, type Kind, kinds } from "../src/transfer/Entries.ts"
import type { Inventory } from "../src/transfer/Inventory.ts"
import type { Row } from "../src/transfer/Kind.ts"
import { type Options, planOf } from "../src/transfer/Plan.ts"
import { type Names, withIds, withNames } from "../src/transfer/References.ts"
import { parseYaml, printYaml } from "../src/transfer/Yaml.ts"

/** Workflows, actions and references by name in a configuration file, against a gateway that only remembers what it was sent. */

const names: Names = new Map([
  ["src_1", { target: "source", name: "shop" }],
  ["des_1", { target: "destination", name: "CRM" }],
  ["act_1", { target: "action", name: "ledger" }],
  ["wfl_1", { target: "workflow", name: "Paid" }],
  ["pac_1", { target: "provider_account", name: "github/ada" }]
])

const paid = {
  id: "wfl_1",
  name: "Paid",
  description: null,
  status: "active",
  source_id: "src_1",
  run_label: null,
  triggers: null,
  steps: [
    {
      id: "to_crm",
      kind: "destination",
      name: "",
      resource_id: "des_1",
      action: null,
      invocation_inputs: { body: { source: "src_1" } },
      config: { timeout_ms: 1000 }
    }
  ],
  edges: [{ id: "e_00", source_type: "trigger", source_step_id: null, source_port: "out", target_step_id: "to_crm" }]
} as unknown as Row
const ledger = {
  id: "act_1",
  name: "ledger",
  provider_key: "http",
  action_key: "request",
  status: "enabled",
  config: {
    auth_mode: "bearer",
    provider_account_id: null,
    credentials_configured: true,
    schema_version: "1.0.0",
    inputs: { method: "POST", url: "https://ledger.example" },
    rate_limit: 5,
    rate_limit_period: "second"
  }
} as unknown as Row
const shop = { id: "src_1", name: "shop", url: "http://g/e/src_1", status: "enabled", config: {} } as unknown as Row
const crm = { id: "des_1", name: "CRM", type: "HTTP", disabled_at: null, config: {} } as unknown as Row

const inventoryOf = (rows: Partial<Record<Kind, ReadonlyArray<Row>>>): Inventory => ({
  provider_accounts: new Map([
    ["github/ada", ["pac_1"]],
    ["github/twin", ["pac_2", "pac_3"]]
  ]),
  ...(Object.fromEntries(
    kinds.map((kind) => [
      kind,
      new Map((rows[kind] ?? []).map((row) => [row.name, { row, entry: entryOf(kind, row, names) }]))
    ])
  ) as unknown as Record<Kind, Inventory["sources"]>)
})
const all = inventoryOf({ sources: [shop], destinations: [crm], actions: [ledger], workflows: [paid] })

const planned = (
  file: object,
  inventory: Inventory = all,
  environment: NodeJS.ProcessEnv = {},
  options: Options = { prune: false }
) => planOf(parseYaml(Buffer.from(printYaml({ version: 1, ...file })), "f"), "f", inventory, environment, options)
const faults = (file: object, inventory?: Inventory): string => {
  try {
    planned(file, inventory)
  } catch (error) {
    return (error as Error).message
  }
  return "none"
}
const step = (id: string, kind: string, resource_id: string | null = null, more: object = {}) => ({
  id,
  kind,
  ...(resource_id === null ? {} : { resource_id }),
  ...more
})

/** Applies a plan, and returns what was sent, by method and path. */
const sent = async (plan: ReturnType<typeof planned>, inventory: Inventory = all) => {
  const calls: Array<{ readonly call: string; readonly body: { readonly [member: string]: unknown } }> = []
  const client = new Client({
    baseUrl: "http://gateway",
    key: "k",
    retries: 0,
    fetch: async (request) => {
      const text = await request.text()
      const body = (text === "" ? {} : JSON.parse(text)) as { readonly name?: string }
      const { pathname } = new URL(request.url)
      calls.push({ call: `${request.method} ${pathname}`, body })
      const { name = "" } = body
      return Response.json({ id: `id_${name}`, name, url: "" })
    }
  })
  await apply(client, plan, inventory, "f", () => undefined, new AbortController().signal)
  return calls
}

describe("References in a file", () => {
  it("Ids of known resources become references and come back as ids, and objects that look like references stay what they are", () => {
    const value = {
      source_id: "src_1",
      list: ["des_1", "des_unknown", "text with src_1"],
      account: { provider_account_id: "pac_1" },
      own: [{ $env: "HOME" }, { $source: "src_1" }, { $$source: "x" }, { $eq: 1 }, { $source: "a", $env: "b" }]
    }
    const named = withNames(value, names)
    expect(named).toEqual({
      source_id: { $source: "shop" },
      list: [{ $destination: "CRM" }, "des_unknown", "text with src_1"],
      account: { provider_account_id: { $provider_account: "github/ada" } },
      own: [
        { $$env: "HOME" },
        { $$source: { $source: "shop" } },
        { $$$source: "x" },
        { $eq: 1 },
        { $source: "a", $env: "b" }
      ]
    })
    const idOf = (target: string, name: string) =>
      [...names].find(([, known]) => known.target === target && known.name === name)![0]
    expect(withIds(named, idOf)).toEqual(value)
  })
})

describe("Workflows in an import plan", () => {
  it("An exported workflow names its source and resources, and importing it again changes nothing", () => {
    const { steps } = planned({
      workflows: [
        {
          name: "Paid",
          status: "active",
          source_id: "shop",
          steps: [
            step("to_crm", "destination", "CRM", {
              invocation_inputs: { body: { source: { $source: "shop" } } },
              config: { timeout_ms: 1000 }
            })
          ],
          edges: [{ source_type: "trigger", target_step_id: "to_crm" }]
        }
      ]
    })
    expect(steps).toMatchObject([{ action: "unchanged", changed: [], changes: [] }])
  })

  it("The plan shows each value that changes in a workflow, by the id of its step", () => {
    const { steps } = planned({
      workflows: [
        {
          name: "Paid",
          status: "paused",
          source_id: "shop",
          steps: [
            step("to_crm", "destination", "CRM", { config: { timeout_ms: 2000 } }),
            step("again", "workflow", "Paid")
          ]
        }
      ]
    })
    expect(steps[0]).toMatchObject({ action: "update", changed: ["status", "steps"] })
    expect(steps[0]!.changes).toEqual([
      { path: "status", from: '"active"', to: '"paused"' },
      { path: "steps.to_crm.config.timeout_ms", from: "1000", to: "2000" },
      { path: "steps.again", from: null, to: expect.stringContaining('"again"') }
    ])
  })

  it("A removed trigger is a change, because triggers are replaced as a whole", () => {
    const triggers = {
      schedule: [{ cron: "0 3 * * *", timezone: "UTC", missed: "once" }],
      answer: null,
      deduplicate: null,
      concurrency: null,
      rate_limit: null,
      debounce: { key: null, wait_ms: 1000, max_wait_ms: 10_000 }
    }
    const inventory = inventoryOf({ sources: [shop], workflows: [{ ...paid, triggers }] })
    const changed = [
      { schedule: [{ cron: "0 3 * * *" }], debounce: { wait_ms: 1000 } },
      { schedule: triggers.schedule }
    ].map(
      (written) => planned({ workflows: [{ name: "Paid", steps: [], triggers: written }] }, inventory).steps[0]!.changed
    )
    expect(changed).toEqual([["steps"], ["steps", "triggers"]])
  })

  it("Secrets are masked in the plan: values of variables by their names, others by their places and looks", () => {
    const { steps } = planned(
      {
        actions: [
          {
            name: "ledger",
            provider_key: "http",
            action_key: "request",
            config: {
              auth_mode: "basic",
              credentials: { username: "ada", password: { $env: "LEDGER" } },
              inputs: { method: "POST", url: "https://ledger.example", headers: { "x-api-key": "a-literal-secret" } }
            }
          }
        ]
      },
      all,
      { LEDGER: "a-long-password" }
    )
    expect(steps[0]!.changes).toEqual([
      { path: "config.auth_mode", from: '"bearer"', to: '"basic"' },
      { path: "config.credentials", from: null, to: '{"username":"****","password":"$LEDGER"}' },
      { path: "config.inputs.headers", from: null, to: '{"x-api-key":"****cret"}' }
    ])
    expect(JSON.stringify(steps[0]!.changes)).not.toMatch(/literal-secret|long-password/)
  })

  it("Credentials of an action stay while its mode does, and are written when the action is new or has another mode", () => {
    const file = (auth_mode: string) => ({
      actions: [
        {
          name: "ledger",
          provider_key: "http",
          action_key: "request",
          config: { auth_mode, credentials: { token: { $env: "TOKEN" } } }
        }
      ]
    })
    const same = planned(file("bearer"), all, { TOKEN: "new" })
    expect(same).toMatchObject({ kept: ["TOKEN"], steps: [{ action: "unchanged" }] })
    expect(planned(file("bearer"))).toMatchObject({ kept: ["TOKEN"], steps: [{ action: "unchanged" }] })
    expect(planned(file("custom"), all, { TOKEN: "new" }).steps[0]!.wanted["config"]).toMatchObject({
      credentials: { token: "new" }
    })
    expect(faults(file("custom"))).toContain("the variable TOKEN is not set")
    expect(faults(file("bearer"), inventoryOf({}))).toContain("the variable TOKEN is not set")
  })

  it("A removed input of an action is a change, because inputs are replaced as a whole", () => {
    const actions = [
      { name: "ledger", provider_key: "http", action_key: "request", config: { inputs: { method: "POST" } } }
    ]
    const [one] = planned({ actions }).steps
    expect(one).toMatchObject({
      action: "update",
      changes: [{ path: "config.inputs.url", from: '"https://ledger.example"', to: null }]
    })
  })

  it("References to what does not exist, is not unique or comes later are refused with their lines", () => {
    const workflow = (...steps: ReadonlyArray<object>) => ({ workflows: [{ name: "w", source_id: null, steps }] })
    expect(faults(workflow(step("one1", "destination", "nowhere")))).toBe("f:8: there is no destination nowhere")
    expect(faults(workflow(step("one1", "wait", "nowhere")))).toContain("there is no source nowhere")
    expect(faults(workflow(step("one1", "workflow", "nowhere")))).toContain("there is no workflow nowhere")
    const calling = (account: string) =>
      workflow(step("one1", "action", null, { action: { provider_account_id: { $provider_account: account } } }))
    expect(faults(calling("github/ada"))).toBe("none")
    expect(faults(calling("github/bob"))).toContain(
      "there is no provider account github/bob: connect an account at github with this name"
    )
    expect(faults(calling("github/twin"))).toContain("there are 2 provider accounts github/twin: write the id of one")
    expect(faults({ sources: [{ name: "s", config: { x: { $workflow: "Paid" } } }] })).toContain(
      "a source cannot refer to a workflow"
    )
  })
})

describe("Import of workflows", () => {
  it("New workflows are created after those that they call, with ids instead of names", async () => {
    const plan = planned({
      sources: [{ name: "till" }],
      workflows: [
        { name: "first", source_id: "till", steps: [step("call", "workflow", "second")] },
        {
          name: "second",
          source_id: null,
          steps: [step("send", "destination", "CRM", { invocation_inputs: { body: { $$env: { $source: "till" } } } })]
        }
      ]
    })
    const calls = await sent(plan)
    expect(calls.map(({ body, call }) => `${call} ${String(body["name"])}`)).toEqual([
      "POST /v1/sources till",
      "POST /v1/workflows second",
      "POST /v1/workflows first"
    ])
    expect(calls[1]!.body["steps"]).toMatchObject([
      { resource_id: "des_1", invocation_inputs: { body: { $env: "id_till" } } }
    ])
    expect(calls[2]!.body).toMatchObject({ source_id: "id_till", steps: [{ resource_id: "id_second" }] })
  })

  it("An on-failure workflow is named in the file, and is created before the workflows that name it", async () => {
    const on_failure = { workflow_id: "wfl_1" }
    const entry = entryOf("workflows", { ...paid, name: "other", triggers: { on_failure } }, names)
    expect(entry["triggers"]).toEqual({ on_failure: { workflow_id: { $workflow: "Paid" } } })
    const named = { on_failure: { workflow_id: { $workflow: "alarm" } } }
    const calls = await sent(
      planned({
        workflows: [
          { name: "first", source_id: null, steps: [], triggers: named },
          { name: "alarm", source_id: null, steps: [], triggers: {} }
        ]
      })
    )
    expect(calls.map(({ body }) => body["name"])).toEqual(["alarm", "first"])
    expect(calls[1]!.body["triggers"]).toEqual({ on_failure: { workflow_id: "id_alarm" } })
  })

  it("Workflows that call each other in a circle are created without steps first", async () => {
    const calling = (name: string, called: string) => ({
      name,
      source_id: null,
      status: "active",
      steps: [step("call", "workflow", called)]
    })
    const calls = await sent(planned({ workflows: [calling("a", "b"), calling("b", "a"), calling("self", "self")] }))
    expect(calls.map(({ body, call }) => `${call} ${String(body["name"])} ${String(body["status"])}`)).toEqual([
      "POST /v1/workflows a draft",
      "POST /v1/workflows self draft",
      "POST /v1/workflows b active",
      "PATCH /v1/workflows/id_a a active",
      "PATCH /v1/workflows/id_self self active"
    ])
    expect(calls[3]!.body["steps"]).toMatchObject([{ resource_id: "id_b" }])
    expect(calls[4]!.body["steps"]).toMatchObject([{ resource_id: "id_self" }])
  })

  it("Prune deletes what is not in the file, of the kinds that the file has, after everything else and in the opposite order", async () => {
    const file = { sources: [{ name: "till" }], destinations: [], workflows: [] }
    expect(planned(file).steps.map(({ action }) => action)).toEqual(["create"])
    const plan = planned(file, all, {}, { prune: true })
    const calls = await sent(plan)
    expect(calls.map(({ call }) => call)).toEqual([
      "POST /v1/sources",
      "DELETE /v1/workflows/wfl_1",
      "DELETE /v1/destinations/des_1",
      "DELETE /v1/sources/src_1"
    ])
  })

  it("Prune refuses a reference to a resource that it would delete", () => {
    const file = {
      destinations: [],
      workflows: [{ name: "w", source_id: "shop", steps: [step("send", "destination", "CRM")] }]
    }
    expect(faults(file)).toBe("none")
    expect(() => planned(file, all, {}, { prune: true })).toThrow("there is no destination CRM")
  })
})
