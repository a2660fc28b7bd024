import { execFile } from "node:child_process"
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect } from "vitest"
import { Document } from "./Document.ts"
import { it } from "../../support/it.ts"
import { patience } from "../../support/Waiting.ts"

/** A client that somebody else's generator makes of the document compiles, and carries the quick start through. */

const run = promisify(execFile)
const root = resolve(import.meta.dirname, "../../..")
const generator = join(dirname(createRequire(import.meta.url).resolve("openapi-typescript/package.json")), "bin/cli.js")

/** The quick start, as a stranger writes it: each name and each type in it is the generator's. */
const quickStart = `
import createClient from "openapi-fetch"
import type { components, paths } from "./api.js"

const [origin = "", key = ""] = process.argv.slice(2)
const api = createClient<paths>({ baseUrl: origin + "/v1", headers: { authorization: "Bearer " + key } })

const must = <A>({ data, error }: { data?: A; error?: { code: string; message: string } }): A => {
  if (data === undefined) throw new Error(error === undefined ? "no data" : error.code + " " + error.message)
  return data
}

const rules: components["schemas"]["ConnectionWrite"]["rules"] = [
  { type: "filter", body: { type: { $in: ["order.created"] } } },
  { type: "retry", strategy: "exponential", interval: 60_000, count: 5 }
]

const destination = must(await api.PUT("/destinations", { body: { name: "mock", type: "MOCK_API", config: { path: "/hooks" } } }))
const source = must(await api.PUT("/sources", { body: { name: "shop", config: { auth_type: "API_KEY", auth: { api_key: "sender-key" } } } }))
must(await api.PUT("/sources", { body: { name: "stripe", type: "STRIPE", config: { auth: { webhook_secret_key: "whsec_secret" } } } }))
const connection = must(
  await api.PUT("/connections", {
    body: { name: "shop-to-mock", source_id: source.id, destination_id: destination.id, rules }
  })
)

// What is read is typed too, by what tells it apart.
for (const rule of connection.rules) {
  if (rule.type === "retry") console.log("count", rule.count satisfies number | undefined)
}
if (source.config.auth_type === "API_KEY") console.log("header", source.config.auth.header_key)
// @ts-expect-error -- a filter has no count
const wrong: components["schemas"]["FilterRule"] = { type: "filter", count: 1 }
// @ts-expect-error -- an HTTP destination needs a config with a URL
const lacking: components["schemas"]["DestinationWrite"] = { name: "x", type: "HTTP" }
void wrong, lacking

const ingress = createClient<paths>({ baseUrl: origin })
const receipt = must(
  await ingress.POST("/e/{source_id}", {
    params: { path: { source_id: source.id } },
    headers: { "x-api-key": "sender-key" },
    body: { type: "order.created", id: 1 }
  })
)

const params = { path: { id: receipt.request_id } }
for (let delivered = false; !delivered; ) {
  const trace = must(await api.GET("/requests/{id}/trace", { params }))
  delivered = trace.attempts[0]?.status === "SUCCESSFUL"
  if (!delivered) await new Promise((go) => setTimeout(go, 50))
}
console.log("delivered")

const listed = must(await api.GET("/events", { params: { query: { status: ["SUCCESSFUL"], include: ["data"], limit: 5 } } }))
console.log("events", listed.count)

const refused = await api.GET("/sources/{id}", { params: { path: { id: "src_00000000000000000000000000" } } })
console.log(refused.response.status, refused.error?.code)
const twice = await api.POST("/sources", { body: { name: "shop" } })
if (twice.error?.code === "RESOURCE_ALREADY_EXISTS") console.log("exists", twice.error.data?.id === source.id)
`

const settings = {
  compilerOptions: {
    target: "esnext",
    lib: ["esnext", "dom", "dom.iterable"],
    module: "nodenext",
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    outDir: "out"
  },
  files: ["quickstart.ts"]
}

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tidegate-client-"))
  await symlink(join(root, "node_modules"), join(folder, "node_modules"))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

it("The OpenAPI client can be generated, compiles and runs the quick start", async ({ gateway }) => {
  const { json } = await Document.of(gateway)
  await Promise.all([
    writeFile(join(folder, "openapi.json"), JSON.stringify(json)),
    writeFile(join(folder, "package.json"), '{"type":"module"}'),
    writeFile(join(folder, "quickstart.ts"), quickStart),
    writeFile(join(folder, "tsconfig.json"), JSON.stringify(settings))
  ])
  const node = (...args: ReadonlyArray<string>) =>
    run(process.execPath, [...args], { cwd: folder, timeout: 4 * patience })

  await node(generator, "openapi.json", "--output", "api.ts")
  await node(join(root, "node_modules/typescript/bin/tsc"), "-p", ".").catch(
    ({ stdout }: { readonly stdout: string }) => {
      throw new Error(stdout)
    }
  )
  const { stdout } = await node("out/quickstart.js", gateway.origin, gateway.key)
  expect(stdout.trim().split("\n")).toEqual([
    "count 5",
    "header x-api-key",
    "delivered",
    "events 1",
    "404 NOT_FOUND",
    "exists true"
  ])
})
