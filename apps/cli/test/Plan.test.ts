import { describe, expect, it } from "vitest"
import { entryOf, type Kind, kinds } from "../src/transfer/Entries.ts"
import type { Inventory } from "../src/transfer/Inventory.ts"
import type { Entry, Row } from "../src/transfer/Kind.ts"
import { planOf } from "../src/transfer/Plan.ts"
import type { Names } from "../src/transfer/References.ts"
import { normalRules } from "../src/transfer/Rules.ts"
import { covers, referrer, resolve } from "../src/transfer/Secrets.ts"
import { parseYaml } from "../src/transfer/Yaml.ts"

const row = { id: "x_1", name: "x" } as Row
const inventory = (entries: Partial<Record<Kind, ReadonlyArray<Entry>>> = {}): Inventory =>
  Object.assign(
    { provider_accounts: new Map() },
    Object.fromEntries(
      kinds.map((kind) => [kind, new Map((entries[kind] ?? []).map((entry) => [entry.name, { row, entry }]))])
    )
  ) as unknown as Inventory

const plan = (text: string, has: Inventory = inventory(), environment: NodeJS.ProcessEnv = {}) =>
  planOf(parseYaml(Buffer.from(text), "f"), "f", has, environment)
const faults = (text: string, has?: Inventory): string => {
  try {
    plan(text, has)
  } catch (error) {
    return (error as Error).message
  }
  return "none"
}

const shop: Entry = {
  name: "shop",
  description: null,
  type: "STRIPE",
  slug: null,
  status: "enabled",
  config: { auth_type: "HMAC", auth: { webhook_secret_key: "****cret" }, mode: "webhook" }
}

describe("Import plan", () => {
  it("Import plan creates, updates and keeps resources, and keeps settings that the file does not name", () => {
    const file = [
      "version: 1",
      "sources:",
      "  - name: shop",
      "    type: STRIPE",
      "    config: {mode: webhook}",
      "  - name: till",
      "destinations:",
      "  - name: orders",
      "    config: {url: https://new.example}"
    ].join("\n")
    const orders: Entry = { name: "orders", type: "HTTP", config: { url: "https://old.example", http_method: null } }
    const { steps } = plan(file, inventory({ sources: [shop], destinations: [orders] }))
    expect(steps.map(({ action, changed, line, wanted }) => [wanted.name, action, changed, line])).toEqual([
      ["shop", "unchanged", [], 3],
      ["till", "create", [], 6],
      ["orders", "update", ["config"], 8]
    ])
  })

  it("A removed part of the body or the headers of a schedule is a change, because they are replaced as a whole", () => {
    const schedule = {
      cron: "0 3 * * *",
      timezone: "UTC",
      missed: "once",
      body: { a: 1, b: 2 },
      headers: { "x-a": "1" }
    }
    const nightly: Entry = { ...shop, name: "nightly", type: "CRON", config: { auth: {}, schedule } }
    const planned = (written: string) => {
      const file = `version: 1\nsources: [{name: nightly, type: CRON, config: {schedule: {cron: 0 3 * * *${written}}}}]`
      const [step] = plan(file, inventory({ sources: [nightly] })).steps
      const { action, changes } = step!
      return [action, changes.map(({ path }) => path)]
    }
    expect(planned("")).toEqual(["unchanged", []])
    expect(planned(", body: {a: 1, b: 2}, headers: {x-a: '1'}")).toEqual(["unchanged", []])
    expect(planned(", body: {a: 1}")).toEqual(["update", ["config.schedule.body.b"]])
    expect(planned(", headers: {}")).toEqual(["update", ["config.schedule.headers.x-a"]])
  })

  it("Import plan compares secrets by their masks and keeps secrets whose variable is not set", () => {
    const file = "version: 1\nsources: [{name: shop, config: {auth: {webhook_secret_key: {$env: SHOP}}}}]"
    const has = inventory({ sources: [shop] })
    const actions = ["a long secret", "another one", ""].map((SHOP) => {
      const { kept, steps } = plan(file, has, { SHOP })
      return [steps[0]!.action, kept]
    })
    expect(actions).toEqual([
      ["unchanged", []],
      ["update", []],
      ["unchanged", ["SHOP"]]
    ])
    expect(faults(file)).toBe("f:2: the variable SHOP is not set, and the gateway has no such secret yet")
  })

  it("Import plan lists the variables that it reads and the changed URLs, and refuses the CLI's own API key", () => {
    const file = (variable: string) =>
      `version: 1\ndestinations: [{name: orders, config: {url: https://new.example, auth: {token: {$env: ${variable}}}}}]`
    const orders: Entry = { name: "orders", type: "HTTP", config: { url: "https://old.example" } }
    const has = inventory({ destinations: [orders] })
    expect(plan(file("HOME"), has, { HOME: "/home/ada" }).steps).toMatchObject([
      {
        action: "update",
        moved: { from: "https://old.example", to: "https://new.example" },
        read: [{ name: "HOME", path: ["config", "auth", "token"] }]
      }
    ])
    expect(() => plan(file("TIDEGATE_API_KEY"), has, { TIDEGATE_API_KEY: "gwk_1" })).toThrow(
      "f:2: TIDEGATE_API_KEY is not given to a file"
    )
  })

  it("Import plan reports every fault of a file with its line", () => {
    const file = [
      "version: 2",
      "filters: [{name: a}]",
      "webhooks: []",
      "sources:",
      "  - name: a",
      "    secret: x",
      "  - name: a",
      "  - config: {}",
      "connections:",
      "  - name: c",
      "    source: a",
      "    destination: nowhere",
      "    rules:",
      "      - {type: filter}",
      "  - name: d",
      "    source: a",
      "    destination: nowhere",
      "    rules: [{type: transform, transformation: none}, {type: filter, filter: none}]"
    ].join("\n")
    expect(faults(file).split("\n")).toEqual([
      "f:1: version must be 1",
      "f:3: webhooks is not known",
      "f:2: conditions is needed",
      "f:6: a source has no secret",
      "f:7: there is another source a",
      "f:8: name is needed",
      "f:12: there is no destination nowhere",
      expect.stringMatching(/^f:14: /),
      "f:17: there is no destination nowhere",
      "f:18: there is no transformation none",
      "f:18: there is no filter none"
    ])
    expect(faults("[]")).toContain("the file must have")
    expect(faults("version: 1\nsources: 1")).toBe("f:2: sources must be a list")
  })

  it("Rules of a file are normalized like stored rules, and a second normalization changes nothing", () => {
    const written = [
      { type: "retry", strategy: "linear", count: 3, interval: 1_000 },
      { type: "transformation", transformation: "add" },
      { type: "filter", body: { a: 1 }, headers: null }
    ]
    const { rules } = normalRules(written) as { rules: ReadonlyArray<object> }
    expect(rules.map((rule) => (rule as { type: string }).type)).toEqual(["transform", "filter", "retry"])
    expect(rules[0]).toEqual({ type: "transform", transformation: "add" })
    expect(normalRules(rules as never)).toEqual({ rules })
    expect(normalRules([{ type: "transform", transformation: { name: "a", code: "b" } }])).toMatchObject({ index: 0 })
    // Filters are referred to by their names, and keep their places among each other.
    const filters = [
      { type: "filter", filter: "b" },
      { type: "filter", path: "/" },
      { type: "filter", filter: "a" }
    ]
    expect(normalRules(filters)).toEqual({ rules: filters })
    expect(normalRules([{ type: "filter", filter: "a", path: "/" }])).toMatchObject({ index: 0 })
    expect(normalRules([{ type: "filter", filter: 1 }])).toMatchObject({ index: 0 })
  })
})

describe("Exported rules", () => {
  const names: Names = new Map([
    ["trs_1", { target: "transformation", name: "add" }],
    ["flt_1", { target: "filter", name: "paid" }]
  ])

  it("Exported rules name filters and transformations and omit the gateway's copies of them", () => {
    const rules = [
      { type: "transform", transformation_id: "trs_1" },
      { type: "filter", filter_id: "flt_1", filter_snapshot: { name: "paid" }, body: { a: 1 } },
      { type: "filter", path: "/", detached_from_filter: { id: "flt_2", name: "gone" } }
    ]
    const row = { id: "web_1", name: "c", description: null, rules, ordering: null } as unknown as Row
    expect(entryOf("connections", row, names)["rules"]).toEqual([
      { type: "transform", transformation: "add" },
      { type: "filter", filter: "paid" },
      { type: "filter", path: "/" }
    ])
  })

  it("Filter conditions are replaced as a whole, so a removed condition is a change", () => {
    const has = inventory({ filters: [{ name: "paid", conditions: { body: { a: 1 }, path: "/" } }] })
    const actions = ["{body: {a: 1}, path: /}", "{body: {a: 1}}"].map(
      (conditions) => plan(`version: 1\nfilters: [{name: paid, conditions: ${conditions}}]`, has).steps[0]!.action
    )
    expect(actions).toEqual(["unchanged", "update"])
  })
})

describe("Exported secrets", () => {
  it("Exported secrets become variable references with unique names", () => {
    const { hide } = referrer()
    const config = {
      auth: { key: "****", name: "ada", list: ["****1234"] },
      url: "https://a.example/****",
      text: "a ****"
    }
    const hidden = hide(config, ["source", "Ünser Shop!"])
    expect(hidden).toEqual({
      auth: {
        key: { $env: "TIDEGATE_SOURCE_NSER_SHOP_AUTH_KEY" },
        name: "ada",
        list: [{ $env: "TIDEGATE_SOURCE_NSER_SHOP_AUTH_LIST_0" }]
      },
      url: { $env: "TIDEGATE_SOURCE_NSER_SHOP_URL" },
      text: "a ****"
    })
    expect(hide({ auth: { key: "****" } }, ["source", "nser-shop"])).toEqual({
      auth: { key: { $env: "TIDEGATE_SOURCE_NSER_SHOP_AUTH_KEY_2" } }
    })
    const found = resolve(hidden, config, { TIDEGATE_SOURCE_NSER_SHOP_AUTH_KEY: "k" })
    expect(found).toMatchObject({
      kept: ["TIDEGATE_SOURCE_NSER_SHOP_AUTH_LIST_0", "TIDEGATE_SOURCE_NSER_SHOP_URL"],
      missing: []
    })
    expect(found.value).toEqual({ ...config, auth: { ...config.auth, key: "k" } })
  })

  it.each<[unknown, unknown, boolean]>([
    [{ a: 1, b: 2 }, { a: 1 }, true],
    [{ a: 1 }, { a: 1, b: null }, true],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [[1, 2], [1], false],
    [[{ a: 1, b: 1 }], [{ a: 1 }], true],
    ["****5678", "12345678", true],
    ["****", "12345678", false],
    ["https://chat.example/hooks/****5678", "https://chat.example/hooks/12345678", true],
    ["https://chat.example/hooks/****5678", "https://chat.example/other/12345678", false],
    ["as it is: ****", "as it is: 1234", false],
    [null, {}, false],
    [{}, {}, true]
  ])("Stored value %o covers the wanted value %o: %o", (current, wanted, is) => {
    expect(covers(current as never, wanted as never)).toBe(is)
  })
})
