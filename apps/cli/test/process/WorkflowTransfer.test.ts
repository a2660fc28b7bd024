import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect } from "vitest"
import { printYaml } from "../../src/transfer/Yaml.ts"
import { it } from "./it.ts"

/** Workflows and actions of a configuration file, between teams of a real gateway. */

const token = "a-token-of-the-ledger"

const file = {
  version: 1,
  sources: [{ name: "orders" }],
  destinations: [{ name: "crm", type: "MOCK_API", config: {} }],
  actions: [
    {
      name: "ledger",
      provider_key: "http",
      action_key: "request",
      config: {
        auth_mode: "bearer",
        credentials: { token: { $env: "LEDGER_TOKEN" } },
        inputs: { method: "POST", url: "https://ledger.example.com/entries" },
        rate_limit: 5
      }
    }
  ],
  workflows: [
    {
      name: "Paid orders",
      source_id: "orders",
      status: "active",
      triggers: { schedule: [{ cron: "0 3 * * *" }] },
      steps: [
        { id: "only_paid", kind: "filter", config: { conditions: { trigger: { body: { status: "paid" } } } } },
        { id: "to_crm", kind: "destination", resource_id: "crm", config: { timeout_ms: 1000 } },
        { id: "to_ledger", kind: "action", resource_id: "ledger" },
        {
          id: "publish",
          kind: "action",
          action: { provider_key: "gateway", action_key: "publish" },
          invocation_inputs: { source_id: { $source: "orders" }, body: { $$source: "of the user" } }
        },
        { id: "refund", kind: "workflow", resource_id: "Refund" }
      ]
    },
    {
      name: "Refund",
      source_id: null,
      status: "draft",
      steps: [{ id: "back", kind: "workflow", resource_id: "Paid orders" }]
    }
  ]
}

it("Workflows and actions are exported by name and imported into another team, which exports the same file", async ({
  folder,
  gateway,
  tidegate
}) => {
  const [own, other] = [await gateway.forTeam(), await gateway.forTeam()]
  const as = (team: typeof gateway, variables: Readonly<Record<string, string>> = {}) => ({
    env: { TIDEGATE_API_KEY: team.key, ...variables }
  })
  const path = join(folder, "workflows.yaml")
  await writeFile(path, printYaml(file))
  const made = await tidegate(["import", path, "--yes"], as(own, { LEDGER_TOKEN: token }))
  expect(made).toMatchObject({ code: 0, complained: expect.stringContaining("5 done") })
  const again = await tidegate(["import", path, "--plan", "--json"], as(own))
  expect(JSON.parse(again.said)).toEqual({ applied: true, steps: [], variables: [], kept_secrets: ["LEDGER_TOKEN"] })

  // What came out goes into another team, where all ids are others.
  const exported = await tidegate(["export"], as(own))
  expect(exported.said).not.toMatch(/(?:src|des|act|wfl)_[0-9a-z]{20}/)
  expect(exported.said).not.toContain(token)
  const out = join(folder, "out.yaml")
  await writeFile(out, exported.said)
  expect(await tidegate(["import", out, "--yes"], as(other))).toMatchObject({
    code: 2,
    complained: expect.stringContaining("the variable TIDEGATE_ACTION_LEDGER_CREDENTIALS_TOKEN is not set")
  })
  const variables = { TIDEGATE_ACTION_LEDGER_CREDENTIALS_TOKEN: token }
  expect(await tidegate(["import", out, "--yes"], as(other, variables))).toMatchObject({ code: 0 })
  expect((await tidegate(["export"], as(other))).said).toBe(exported.said)
  const [paid] = (await other.api("GET", "/workflows?name=Paid%20orders" as "/workflows")).models
  const { steps } = (await other.call("GET", `/workflows/${paid!.id}`)).body as { readonly steps: unknown }
  const { models: sources } = await other.api("GET", "/sources")
  expect(steps).toMatchObject([
    {},
    {},
    {},
    { invocation_inputs: { source_id: sources[0]!.id, body: { $source: "of the user" } } },
    {}
  ])

  // One value differs, and one workflow is no longer in the file.
  await writeFile(
    out,
    exported.said
      .replace("timeout_ms: 1000", "timeout_ms: 2000")
      .replace(/\n {2}- name: Refund[^]*/, "\n")
      .replace(/\n {6}- id: refund[^]*?(?=\n {4}edges)/, "")
      .replace(/\n {6}- id: \S+\n(?: {8}.*\n)*? {8}target_step_id: refund\n(?: {8}.*\n)*/, "\n")
  )
  const plan = await tidegate(["import", out, "--prune", "--plan"], as(other))
  expect(plan.said).toContain("    steps.to_crm.config.timeout_ms: 1000 -> 2000\n")
  expect(plan.said).toContain("- workflow Refund\n")
  expect(plan.complained).toContain("0 to create, 1 to change, 3 as they are, 1 to delete")
  expect(await tidegate(["import", out, "--prune"], as(other))).toMatchObject({
    code: 2,
    complained: expect.stringContaining("add --yes")
  })
  expect(await tidegate(["import", out, "--prune", "--yes"], as(other))).toMatchObject({ code: 0 })
  const left = await other.api("GET", "/workflows")
  expect(left.models.map(({ name }) => name)).toEqual(["Paid orders"])
})

it("Workflows are pushed with an account by its provider and name, which has to be the only one of that name", async ({
  folder,
  gateway,
  target,
  tidegate
}) => {
  const team = await gateway.forTeam()
  const env = { TIDEGATE_API_KEY: team.key }
  let user = 0
  target.reply = (response) =>
    void response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ id: ++user, login: `user-${user}` }))
  const connect = () =>
    team.api("POST", "/provider-accounts/credentials/connect", {
      provider_key: "git_host",
      name: "ada",
      base_url: target.origin,
      credentials: { token: "t0ken-of-an-account" }
    })
  const path = join(folder, "issues.json")
  const write = (provider_account_id: string) => {
    const action = { provider_key: "git_host", action_key: "create_issue", version: "1.0.0", provider_account_id }
    const step = {
      id: "report",
      kind: "action",
      action,
      invocation_inputs: { repository: "acme/shop", title: "Failed" }
    }
    return writeFile(path, JSON.stringify({ name: "Issues", source_id: null, triggers: {}, steps: [step] }))
  }
  const push = (...words: ReadonlyArray<string>) => tidegate(["workflows", "push", path, ...words], { env })

  await write("git_host/ada")
  expect(await push()).toMatchObject({
    code: 4,
    complained: expect.stringContaining("there is no provider account git_host/ada: connect an account at git_host")
  })
  const account = await connect()
  expect(await push()).toMatchObject({ code: 0, said: expect.stringMatching(/version 1\n$/) })
  const [listed] = (await team.api("GET", "/workflows")).models
  expect((await team.call("GET", `/workflows/${listed!.id}`)).body).toMatchObject({
    steps: [{ action: { provider_account_id: account.id } }]
  })
  // A second push finds the same account, so nothing differs.
  expect(await push("--dry-run")).toMatchObject({ code: 0, said: "" })

  await connect()
  expect(await push()).toMatchObject({
    code: 2,
    complained: expect.stringContaining("there are 2 provider accounts git_host/ada: write the id")
  })
  await write(account.id)
  expect(await push("--dry-run")).toMatchObject({ code: 0, said: "" })
})
