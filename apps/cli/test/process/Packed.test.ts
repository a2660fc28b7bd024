import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect } from "vitest"
import { freePort } from "../../../../test/support/Ports.ts"
import { it } from "./it.ts"
import { run } from "./Program.ts"

const exec = promisify(execFile)
const modules = fileURLToPath(new URL("../../../../node_modules", import.meta.url))
const pack = fileURLToPath(new URL("../../../package/pack.mjs", import.meta.url))

it("Packed tarball installs without a registry and runs as npx tidegate", async ({
  folder,
  gateway,
  signedIn,
  starting,
  target
}) => {
  await exec(process.execPath, [pack, folder])
  const tarball = (await readdir(folder)).find((name) => name.endsWith(".tgz"))!
  expect(tarball).toMatch(/^tidegate-\d+\.\d+\.\d+\.tgz$/)
  await writeFile(join(folder, "package.json"), "{}")
  // No registry is there: whatever is missing in the tarball could come from nowhere.
  const alone = { ...process.env, npm_config_registry: "http://127.0.0.1:9/", npm_config_offline: "true" }
  await exec("npm", ["install", "--omit=optional", "--no-audit", "--no-fund", `./${tarball}`], {
    cwd: folder,
    env: alone
  })
  expect((await readdir(join(folder, "node_modules"))).filter((name) => !name.startsWith("."))).toEqual(["tidegate"])

  const npx = (...words: ReadonlyArray<string>) =>
    run(words, { cwd: folder, env: { ...signedIn, npm_config_offline: "true" }, program: ["npx", "tidegate"] })
  expect((await npx("--version")).said).toMatch(/^tidegate v\d+\.\d+\.\d+\n$/)
  const source = await gateway.source()
  expect(await npx("send", source.name, "--data", "{}")).toMatchObject({
    code: 0,
    said: expect.stringMatching(/^200 /)
  })
  expect((await npx("requests", "--source", source.name)).said).toContain("accepted")
  // As on Node 20, which has none of these: a tunnel needs a WebSocket.
  const lacking = join(folder, "node20.mjs")
  await writeFile(
    lacking,
    `delete globalThis.WebSocket; delete URL.parse; delete JSON.rawJSON; delete Array.fromAsync
    Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.0" } })
`
  )
  const older = (...words: ReadonlyArray<string>) => ({
    words,
    options: {
      cwd: folder,
      env: signedIn,
      program: [process.execPath, `--import=${lacking}`, "node_modules/tidegate/bin/tidegate.js"]
    }
  })
  const listening = older("listen", String(target.port), "--source", source.name, "--create")
  const tunnel = starting(listening.words, listening.options)
  await tunnel.line((line) => line.startsWith("ready"))
  const sending = older("send", source.name, "--data", '{"amount":12345678901234567890}')
  expect(await run(sending.words, sending.options)).toMatchObject({ code: 0, said: expect.stringMatching(/^200 /) })
  await tunnel.line((line) => /^[\d:]{8} 200 POST \/ \d+ ms .*\/dashboard\/events\/evt_/.test(line))
  expect(await tunnel.interrupt()).toMatchObject({ code: 0 })
  const [manifest, bin] = await Promise.all(
    ["package.json", "bin/tidegate.js"].map((name) => readFile(join(folder, "node_modules/tidegate", name), "utf8"))
  )
  expect(JSON.parse(manifest!)).toMatchObject({ engines: { node: ">=20.19" } })
  // What a module does not export is an error before anything of it runs.
  expect(bin).not.toMatch(/import \{/)

  // Code that is loaded only when it is needed is in the package, too.
  const exported = await npx("export")
  expect(exported.said).toContain(`name: ${source.name}`)
  await writeFile(join(folder, "all.yaml"), exported.said)
  expect((await npx("import", "all.yaml", "--plan")).code).toBe(0)

  // A module of the user's own is loaded by the packed program.
  await writeFile(join(folder, "flow.mjs"), 'export default { name: "a packed flow", source_id: null, triggers: {} }\n')
  const planned = await npx("workflows", "push", "flow.mjs", "--dry-run")
  expect(planned).toMatchObject({ code: 6, said: expect.stringContaining("+ workflow a packed flow") })

  // The optional dependencies are Node and PostgreSQL. Without the former, an older Node cannot run the gateway.
  const missing = older("start")
  expect(await run(missing.words, missing.options)).toMatchObject({
    code: 1,
    complained: expect.stringMatching(/^tidegate: the gateway needs Node 26/)
  })
  for (const name of Object.keys(JSON.parse(manifest!).optionalDependencies)) {
    const installed = join(modules, name)
    if (!existsSync(installed)) continue
    await mkdir(dirname(join(folder, "node_modules", name)), { recursive: true })
    await symlink(installed, join(folder, "node_modules", name))
  }
  const port = String(await freePort())
  const key = "gwk_of_the_package"
  const started = starting(["start"], {
    cwd: folder,
    env: { PORT: port, TIDEGATE_HOME: join(folder, "home"), TIDEGATE_API_KEY: key, DATABASE_URL: "" },
    program: [process.execPath, "node_modules/tidegate/bin/tidegate.js"]
  })
  await started.line((line) => line.includes("Create a source"))
  const origin = `http://localhost:${port}`
  const call = async (path: string, body: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    const answer = await fetch(`${origin}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })
    return answer.json()
  }
  // The sandbox, the formatter's worker and its libraries, the dashboard, the guides and the page of the API are in the package.
  const code = 'addHandler("transform", (request) => { request.body.n *= 2; return request })'
  const request = { body: { n: 21 }, headers: { "content-type": "application/json" } }
  expect(await call("/transformations/run", { code, request })).toMatchObject({ request: { body: { n: 42 } } })
  const phone = { operation: "number.phone", options: { format: "2" } }
  expect(await call("/workflow-formatter/test", { config: phone, inputs: { input: "8005551212" } })).toMatchObject({
    output: { result: "(800) 555-1212" }
  })
  for (const path of ["/dashboard/", "/docs/guides/", "/docs", "/openapi.json", "/schemas/workflow.json"]) {
    expect({ path, status: (await fetch(origin + path)).status }).toEqual({ path, status: 200 })
  }
  const script = /<script[^>]+src="([^"]+)"/.exec(await (await fetch(`${origin}/docs`)).text())![1]!
  expect((await fetch(new URL(script, `${origin}/docs`))).status).toBe(200)
  // As `npm start` ends: interrupted, in order.
  expect(await started.interrupt("SIGTERM")).toMatchObject({ code: 130 })
})
