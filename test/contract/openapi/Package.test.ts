import { execFile } from "node:child_process"
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { delimiter, dirname, join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect } from "vitest"
import { it } from "../../support/it.ts"
import { patience } from "../../support/Waiting.ts"

/** `packages/client` as its users get it: packed, installed in an empty folder, compiled strictly, and run. */

const root = resolve(import.meta.dirname, "../../..")
const client = join(root, "packages/client")

const program = `
import { Client, TidegateError, verify, WebhookVerificationError, type components } from "@tidegate/client"
import { createServer } from "node:http"

const [origin = "", key = "", secret = ""] = process.argv.slice(2)
const tidegate = new Client({ baseUrl: origin, key })

// A target that verifies what it is sent.
const verified: Array<string> = []
const server = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    verify(Buffer.concat(chunks), request.headers, secret).then(
      ({ id }) => {
        verified.push(id)
        response.end()
      },
      (error: unknown) => {
        console.log("refused", error instanceof WebhookVerificationError)
        response.writeHead(401).end()
      }
    )
  })
})
await new Promise<void>((go) => server.listen(0, "127.0.0.1", go))
const address = server.address()
const port = typeof address === "object" ? address?.port : undefined

const rules: components["schemas"]["ConnectionWrite"]["rules"] = [{ type: "filter", body: { type: "order" } }]
const destination = await tidegate.put("/destinations", {
  body: { name: "verifier", type: "HTTP", config: { url: \`http://127.0.0.1:\${port}/\`, auth_type: "SERVICE_SIGNATURE" } }
})
const source = await tidegate.put("/sources", { body: { name: "packed" } })
const connection = await tidegate.put("/connections", {
  body: { name: "packed", source_id: source.id, destination_id: destination.id, rules }
})
console.log("rule", connection.rules[0]?.type)

// @ts-expect-error -- a source has a name
void (() => tidegate.put("/sources", { body: {} }))
// @ts-expect-error -- there is no such path
void (() => tidegate.get("/nothing"))
// @ts-expect-error -- an id is needed
void (() => tidegate.get("/sources/{id}"))
const count: number = (await tidegate.get("/events/count")).total
console.log("events", count)

for (let n = 0; n < 5; n++) {
  await fetch(source.url, { method: "POST", headers: { "content-type": "application/json" }, body: '{"type":"order"}' })
}
while (new Set(verified).size < 5) await new Promise((go) => setTimeout(go, 50))
server.close()

const query = { source_id: [source.id], limit: 2 }
const ids = new Set<string>()
for await (const request of tidegate.list("/requests", { params: { query } })) ids.add(request.id)
let webhooks = 0
for await (const { id } of tidegate.list("/events", { params: { query } })) webhooks += verified.includes(id) ? 1 : 0
console.log("listed", ids.size, webhooks)

const refused = await tidegate.get("/sources/{id}", { params: { path: { id: "src_none" } } }).catch((error: unknown) => error)
if (refused instanceof TidegateError) console.log(refused.status, refused.code, refused.requestId)
const twice = await tidegate.post("/sources", { body: { name: "packed" } }).catch((error: unknown) => error)
if (twice instanceof TidegateError) console.log(twice.code, twice.data["id"] === source.id)
`

const settings = {
  compilerOptions: {
    target: "es2022",
    module: "nodenext",
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    outDir: "out"
  },
  files: ["program.ts"]
}

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tidegate-package-"))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

it("The client package can be packed, installed, compiled and used", async ({ gateway }) => {
  const PATH = [join(root, "node_modules/.bin"), dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter)
  const run = async (cwd: string, name: string, ...args: ReadonlyArray<string>): Promise<string> => {
    const env = { ...process.env, PATH, npm_config_ignore_scripts: "false", npm_config_offline: "true" }
    const failed = ({ stderr, stdout }: { readonly stdout: string; readonly stderr: string }) => {
      throw new Error(stdout + stderr)
    }
    return (await promisify(execFile)(name, [...args], { cwd, env, timeout: 4 * patience }).catch(failed)).stdout
  }

  // Beside its sources nothing that the project has is in reach: neither its settings nor its packages.
  const [built, user] = [join(folder, "client"), join(folder, "user")]
  await cp(client, built, { recursive: true, filter: (path) => !/\/(?:dist|test|node_modules)$/.test(path) })
  const installed = join(user, "node_modules")
  for (const modules of [installed, join(built, "node_modules")]) {
    await mkdir(join(modules, "@types"), { recursive: true })
    for (const library of ["openapi-fetch", "openapi-typescript-helpers"]) {
      await symlink(join(root, "node_modules", library), join(modules, library))
    }
  }
  const tarball = (await run(built, "npm", "pack", "--silent")).trim()
  await mkdir(join(installed, "@tidegate/client"), { recursive: true })
  await run(
    folder,
    "tar",
    "-xzf",
    join(built, tarball),
    "-C",
    join(installed, "@tidegate/client"),
    "--strip-components=1"
  )
  const packed = (await run(folder, "tar", "-tzf", join(built, tarball))).trim().split("\n")
  expect(packed.filter((path) => !path.startsWith("package/dist/")).toSorted()).toEqual(
    ["LICENSE", "README.md", "package.json"].map((path) => `package/${path}`)
  )
  const manifest = JSON.parse(await readFile(join(installed, "@tidegate/client/package.json"), "utf8"))
  expect(Object.keys(manifest.dependencies)).toEqual(["openapi-fetch", "openapi-typescript-helpers"])

  for (const types of ["@types/node", "undici-types"]) {
    await symlink(join(root, "node_modules", types), join(installed, types))
  }
  await Promise.all([
    writeFile(join(user, "package.json"), '{"type":"module"}'),
    writeFile(join(user, "program.ts"), program),
    writeFile(join(user, "tsconfig.json"), JSON.stringify(settings))
  ])
  await run(user, "tsc", "-p", ".")
  const out = await run(
    user,
    process.execPath,
    "out/program.js",
    gateway.origin,
    gateway.key,
    await gateway.signingSecret()
  )
  expect(out.trim().split("\n")).toEqual([
    "rule filter",
    "events 0",
    "listed 5 5",
    "404 NOT_FOUND null",
    "RESOURCE_ALREADY_EXISTS true"
  ])
})
