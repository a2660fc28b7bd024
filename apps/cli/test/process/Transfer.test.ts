import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect } from "vitest"
import { printYaml } from "../../src/transfer/Yaml.ts"
import { it } from "./it.ts"

/** A configuration as a file, between teams of a real gateway. */

const numbered = <A>(count: number, make: (n: string) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, n) => make(String(n).padStart(3, "0")))

const secret = "whsec_c2VjcmV0LW9mLWEtZGV2ZWxvcGVy"

/** `slug`: that of a source, which no other team of the gateway may have. */
const fileWith = (slug: string) => ({
  version: 1,
  transformations: [
    { name: "add", code: 'addHandler("transform", (request) => request)', env: { TENANT: { $env: "ADD_TENANT" } } }
  ],
  sources: numbered(20, (n) => ({
    name: `source-${n}`,
    type: n === "000" ? "STRIPE" : "WEBHOOK",
    ...(n === "000" ? { config: { auth: { webhook_secret_key: { $env: "STRIPE_SECRET" } } } } : {}),
    ...(n === "001" ? { slug, config: { rate_limit: 100 } } : {}),
    ...(n === "002" ? { status: "disabled" } : {})
  })),
  destinations: numbered(20, (n) => ({
    name: `destination-${n}`,
    type: "HTTP",
    config: { url: `https://${n}.example.com/hooks`, rate_limit: 10 },
    ...(n === "003" ? { disabled: true } : {})
  })),
  connections: numbered(500, (n) => ({
    name: `connection-${n}`,
    source: `source-0${String(Number(n) % 20).padStart(2, "0")}`,
    destination: `destination-0${String(Math.floor(Number(n) / 25)).padStart(2, "0")}`,
    rules: [
      { type: "retry", strategy: "exponential", count: 5, interval: 60_000 },
      { type: "filter", body: { n: Number(n) } },
      ...(n.endsWith("7") ? [{ type: "transformation", transformation: "add" }] : [])
    ],
    ...(n === "004" ? { paused: true } : {}),
    ...(n === "005" ? { disabled: true } : {}),
    ...(n === "006" ? { ordering: { key: "body.id" } } : {})
  }))
})

it("Import of 500 connections is repeatable, and an export returns the same resources", async ({
  folder,
  gateway: shared,
  tidegate: anywhere
}) => {
  // One that has nothing else: all that it has is exported.
  const gateway = await shared.forTeam()
  const own = { TIDEGATE_URL: gateway.origin, TIDEGATE_API_KEY: gateway.key }
  const tidegate: typeof anywhere = (words, options) =>
    anywhere(words, { ...options, env: { ...own, ...options?.env } })
  const path = join(folder, "all.yaml")
  const slug = shared.name("first-of-all")
  const file = fileWith(slug)
  await writeFile(path, printYaml(file))
  const env = { STRIPE_SECRET: secret, ADD_TENANT: "acme" }

  expect(await tidegate(["import", path])).toMatchObject({
    code: 2,
    complained: expect.stringContaining("ADD_TENANT is not set")
  })
  const planned = await tidegate(["import", path, "--plan"], { env })
  expect(planned).toMatchObject({
    code: 6,
    complained: expect.stringContaining("541 to create, 0 to change, 0 as they are")
  })
  expect(planned.said.split("\n")).toContain("+ connection connection-007")
  expect(planned.said).toContain("$STRIPE_SECRET is given to source source-000: config.auth.webhook_secret_key\n")
  expect((await gateway.api("GET", "/sources")).count).toBe(0)
  expect(await tidegate(["import", path], { env })).toMatchObject({
    code: 2,
    complained: expect.stringContaining("add --yes")
  })

  expect(await tidegate(["import", path, "--yes"], { env })).toMatchObject({
    code: 0,
    complained: expect.stringContaining("541 done")
  })
  const again = await tidegate(["import", path, "--plan", "--json"], { env })
  expect(again.code).toBe(0)
  expect(JSON.parse(again.said)).toEqual({ applied: true, steps: [], variables: [], kept_secrets: [] })
  // The secrets need not be at hand for what is there already.
  const without = await tidegate(["import", path, "--plan", "--json"])
  expect(JSON.parse(without.said)).toEqual({
    applied: true,
    steps: [],
    variables: [],
    kept_secrets: ["ADD_TENANT", "STRIPE_SECRET"]
  })

  const out = join(folder, "out.yaml")
  expect((await tidegate(["export", out])).code).toBe(0)
  const text = await readFile(out, "utf8")
  expect(text).not.toContain(secret)
  expect(text).not.toContain("acme")
  const taken = await tidegate(["import", out, "--plan", "--json"], {
    env: { TIDEGATE_TRANSFORMATION_ADD_TENANT: "acme" }
  })
  expect(JSON.parse(taken.said)).toEqual({
    applied: true,
    steps: [],
    variables: [],
    kept_secrets: ["TIDEGATE_SOURCE_SOURCE_000_AUTH_WEBHOOK_SECRET_KEY"]
  })
  // Every line that went in is in what came out.
  const exported = JSON.parse((await tidegate(["export", "--json"])).said) as typeof file
  const withoutSecrets = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value).replace(/\{"\$env":"\w+"\}/g, '"secret"'))
  expect(withoutSecrets(exported.transformations)).toMatchObject(withoutSecrets(file.transformations) as object)
  expect(withoutSecrets(exported.sources)).toMatchObject(withoutSecrets(file.sources) as object)
  expect(exported.destinations).toMatchObject(file.destinations)
  expect(exported.connections.map(({ name }) => name)).toEqual(file.connections.map(({ name }) => name))
  expect(exported.connections[7]).toMatchObject({
    source: "source-007",
    destination: "destination-000",
    rules: [{ type: "transform", transformation: "add" }, { type: "filter" }, { type: "retry" }]
  })

  // What one changes in the file is all that is planned.
  const [first, ...others] = exported.connections
  const changed = { ...exported, connections: [{ ...first!, rules: [] }, ...others] }
  await writeFile(out, printYaml(changed))
  const plan = JSON.parse(
    (await tidegate(["import", out, "--plan", "--json"], { env: { TIDEGATE_TRANSFORMATION_ADD_TENANT: "acme" } })).said
  )
  expect(plan.steps).toMatchObject([
    { action: "update", kind: "connection", name: "connection-000", changed: ["rules"] }
  ])
  const [slugged] = (await gateway.api("GET", "/sources?name=source-001" as "/sources")).models
  expect(slugged?.url).toContain(`/e/${slug}`)
})

it("Import reports a refused resource with its line and keeps what it created before", async ({ folder, tidegate }) => {
  const path = join(folder, "wrong.yaml")
  await writeFile(
    path,
    "version: 1\nsources:\n  - name: good-one\ndestinations:\n  - name: bad-one\n    config: {url: nowhere}\n"
  )
  expect(await tidegate(["import", path, "--yes"])).toMatchObject({
    code: 1,
    complained: expect.stringContaining(`${path}:5: destination bad-one: config.url`)
  })
  const plan = await tidegate(["import", path, "--plan"])
  expect(plan.complained).toContain("1 to create, 0 to change, 1 as they are")
  expect(await tidegate(["import", join(folder, "none.yaml")])).toMatchObject({
    code: 2,
    complained: expect.stringContaining("ENOENT")
  })
})

it("Filters are imported with an owner's session, and rules refer to them by name", async ({
  folder,
  gateway,
  tidegate
}) => {
  const path = join(folder, "filters.yaml")
  const conditions = { body: { total: { $gte: 100 } } }
  const wanted = {
    version: 1,
    filters: [{ name: "filtered-paid", conditions }],
    sources: [{ name: "filtered-source" }],
    destinations: [{ name: "filtered-destination", type: "MOCK_API", config: {} }],
    connections: [
      {
        name: "filtered",
        source: "filtered-source",
        destination: "filtered-destination",
        rules: [
          { type: "filter", filter: "filtered-paid" },
          { type: "filter", path: "/" }
        ]
      }
    ]
  }
  await writeFile(path, printYaml(wanted))
  expect(await tidegate(["import", path, "--yes"])).toMatchObject({
    code: 3,
    complained: expect.stringContaining("filter filtered-paid: this needs a signed-in user")
  })
  const env = { TIDEGATE_API_KEY: await gateway.session("owner") }
  expect(await tidegate(["import", path, "--yes"], { env })).toMatchObject({ code: 0 })
  const again = await tidegate(["import", path, "--plan", "--json"], { env })
  expect(JSON.parse(again.said)).toEqual({ applied: true, steps: [], kept_secrets: [], variables: [] })
  const exported = JSON.parse((await tidegate(["export", "--json"])).said) as typeof wanted
  expect(exported.filters).toEqual(wanted.filters)
  const { rules } = exported.connections.find(({ name }) => name === "filtered")!
  expect(rules).toEqual(wanted.connections[0]!.rules)

  await writeFile(path, printYaml({ ...wanted, filters: [{ name: "filtered-paid", conditions: { path: "/x" } }] }))
  const plan = await tidegate(["import", path, "--plan", "--json"], { env })
  expect(JSON.parse(plan.said).steps).toEqual([
    {
      action: "update",
      kind: "filter",
      name: "filtered-paid",
      changed: ["conditions"],
      values: [
        { path: "conditions.path", from: null, to: '"/x"' },
        { path: "conditions.body", from: expect.stringContaining("100"), to: null }
      ]
    }
  ])
})

it("Export and import keep all digits of large numbers in YAML and in JSON", async ({
  folder,
  gateway,
  tidegate: anywhere
}) => {
  const teams = await Promise.all([gateway.forTeam(), gateway.forTeam()])
  const [first, second] = teams.map(
    ({ key, origin }): typeof anywhere =>
      (words, options) =>
        anywhere(words, { ...options, env: { TIDEGATE_URL: origin, TIDEGATE_API_KEY: key, ...options?.env } })
  )
  const numbers = ["12345678901234567891", "0.1000000000000000055", "-9007199254740993.25", "9007199254740993", "7"]
  const path = join(folder, "exact.yaml")
  const fileOf = (last: string) => `version: 1
sources:
  - name: exact-source
destinations:
  - name: exact-destination
    type: MOCK_API
    config: {}
connections:
  - name: exact
    source: exact-source
    destination: exact-destination
    rules:
      - type: filter
        body: {id: {$in: [${[...numbers, last].join(", ")}]}}
`
  await writeFile(path, fileOf("12345678901234567892"))
  expect(await first!(["import", path, "--yes"])).toMatchObject({ code: 0 })
  const again = await first!(["import", path, "--plan", "--json"])
  expect(JSON.parse(again.said)).toMatchObject({ applied: true, steps: [] })

  const yaml = await first!(["export"])
  const json = await first!(["export", "--json"])
  for (const one of [...numbers, "12345678901234567892"]) {
    expect(yaml.said).toContain(`- ${one}\n`)
    expect(json.said).toMatch(new RegExp(`\\s${one.replaceAll(/[.+]/g, "\\$&")},?\n`))
  }
  for (const [name, text] of [
    ["out.yaml", yaml.said],
    ["out.json", json.said]
  ] as const) {
    const out = join(folder, name)
    await writeFile(out, text)
    expect((await second!(["import", out, "--yes"])).code).toBe(0)
    expect((await second!(["export"])).said).toBe(yaml.said)
    expect((await second!(["export", "--json"])).said).toBe(json.said)
  }
  // One digit far behind is a change.
  await writeFile(path, fileOf("12345678901234567893"))
  const plan = await first!(["import", path, "--plan", "--json"])
  expect(JSON.parse(plan.said).steps).toMatchObject([
    { action: "update", kind: "connection", name: "exact", changed: ["rules"] }
  ])
})
