import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { chmod, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect } from "vitest"
import { freePort } from "../../../../test/support/Ports.ts"
import { it as usual } from "./it.ts"
import { run } from "./Program.ts"

const exec = promisify(execFile)
const modules = fileURLToPath(new URL("../../../../node_modules", import.meta.url))
const pack = fileURLToPath(new URL("../../../package/pack.mjs", import.meta.url))
const unitFile = fileURLToPath(new URL("../../../../infra/systemd/tidegate.service", import.meta.url))

/** The package, packed and installed once for this file. */
const it = usual
  /** The folder of an installation without the optional dependencies, which are Node and PostgreSQL. */
  .extend("installed", { scope: "file" }, async ({ folder }) => {
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
    return folder
  })
  /** The same folder, from then on with them: tests that need it without them come before. */
  .extend("whole", { scope: "file" }, async ({ installed }) => {
    const { optionalDependencies } = JSON.parse(
      await readFile(join(installed, "node_modules/tidegate/package.json"), "utf8")
    ) as { readonly optionalDependencies: object }
    for (const name of Object.keys(optionalDependencies)) {
      const there = join(modules, name)
      if (!existsSync(there)) continue
      await mkdir(dirname(join(installed, "node_modules", name)), { recursive: true })
      await symlink(there, join(installed, "node_modules", name))
    }
    return installed
  })

const program = [process.execPath, "node_modules/tidegate/bin/tidegate.js"]

it("Packed tarball installs without a registry and runs as npx tidegate", async ({
  gateway,
  installed: folder,
  signedIn,
  starting,
  target
}) => {
  const npx = (...words: ReadonlyArray<string>) =>
    run(words, { cwd: folder, env: { ...signedIn, npm_config_offline: "true" }, program: ["npx", "tidegate"] })
  // What npx runs, without the time that npm takes to find it.
  const tidegate = (...words: ReadonlyArray<string>) =>
    run(words, { cwd: folder, env: signedIn, program: ["node_modules/.bin/tidegate"] })
  expect((await npx("--version")).said).toMatch(/^tidegate v\d+\.\d+\.\d+\n$/)
  const source = await gateway.source()
  expect(await npx("send", source.name, "--data", "{}")).toMatchObject({
    code: 0,
    said: expect.stringMatching(/^200 /)
  })
  expect((await tidegate("requests", "--source", source.name)).said).toContain("accepted")
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

  // The list of parts has what the bundles contain: all that the project depends on, except the bundler.
  const parts = JSON.parse(await readFile(join(folder, "node_modules/tidegate/sbom.cdx.json"), "utf8"))
  const { dependencies } = JSON.parse(await readFile(join(modules, "../package.json"), "utf8"))
  const { rolldown: _, ...bundled } = dependencies as Readonly<Record<string, string>>
  expect(parts.components).toEqual(
    expect.arrayContaining(Object.entries(bundled).map(([name, version]) => expect.objectContaining({ name, version })))
  )

  // Code that is loaded only when it is needed is in the package, too.
  const exported = await tidegate("export")
  expect(exported.said).toContain(`name: ${source.name}`)
  await writeFile(join(folder, "all.yaml"), exported.said)
  expect((await tidegate("import", "all.yaml", "--plan")).code).toBe(0)

  // A module of the user's own is loaded by the packed program.
  await writeFile(join(folder, "flow.mjs"), 'export default { name: "a packed flow", source_id: null, triggers: {} }\n')
  const planned = await tidegate("workflows", "push", "flow.mjs", "--dry-run")
  expect(planned).toMatchObject({ code: 6, said: expect.stringContaining("+ workflow a packed flow") })

  // Without the Node of the optional dependencies, an older Node cannot run the gateway.
  const missing = older("start")
  expect(await run(missing.words, missing.options)).toMatchObject({
    code: 1,
    complained: expect.stringMatching(/^tidegate: the gateway needs Node 26/)
  })
})

it("Packed gateway starts with all it serves, is looked at by doctor, and goes on elsewhere from its backup", async ({
  starting,
  whole: folder
}) => {
  const port = String(await freePort())
  const key = "gwk_of_the_package"
  const settingsOf = (home: string) => ({
    PORT: port,
    TIDEGATE_HOME: join(folder, home),
    TIDEGATE_API_KEY: key,
    DATABASE_URL: ""
  })
  const begin = async (home: string) => {
    const begun = starting(["start"], { cwd: folder, env: settingsOf(home), program })
    await begun.line((line) => line.includes("Create a source"))
    return begun
  }
  const started = await begin("home")
  const origin = `http://localhost:${port}`
  const call = async (path: string, body?: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    const posting = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }
    return (await fetch(`${origin}/v1${path}`, { headers, ...posting })).json()
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

  const source = (await call("/sources", { name: "kept" })) as { readonly id: string; readonly url: string }
  const sent = await fetch(source.url, { method: "POST", body: '{"order":7}', headers: request.headers })
  const { request_id } = (await sent.json()) as { readonly request_id: string }
  expect({ status: sent.status, request_id }).toEqual({ status: 200, request_id: expect.stringMatching(/^req_/) })

  const operate = (home: string, ...words: ReadonlyArray<string>) =>
    run(words, { cwd: folder, env: settingsOf(home), program })
  const well = await operate("home", "doctor")
  expect(well, well.said).toMatchObject({ code: 0, said: expect.stringContaining("nothing is wrong") })
  const secret = join(folder, "home/secrets.key")
  await chmod(secret, 0o644)
  expect(await operate("home", "doctor")).toMatchObject({
    code: 1,
    said: expect.stringContaining(`others than its owner can read ${secret}`)
  })
  await chmod(secret, 0o600)

  const backup = join(folder, "backup")
  const made = await operate("home", "backup", backup)
  expect(made, made.complained).toMatchObject({ code: 0, said: expect.stringContaining("Everything that was acknow") })
  // As `npm start` ends: interrupted, in order.
  expect(await started.interrupt("SIGTERM")).toMatchObject({ code: 130 })

  const restored = await operate("elsewhere", "restore", backup)
  expect(restored, restored.complained).toMatchObject({ code: 0, said: expect.stringContaining("nothing is wrong") })
  const again = await begin("elsewhere")
  expect(await call(`/requests/${request_id}`)).toMatchObject({ source_id: source.id, data: { body: { order: 7 } } })
  expect(await again.interrupt("SIGTERM")).toMatchObject({ code: 130 })
})

it("Packed gateway of two processes starts, reloads and ends as its systemd unit asks for", async ({
  starting,
  whole: folder
}) => {
  const unit = await readFile(unitFile, "utf8")
  const of = (name: string): string => new RegExp(`^${name}=(.+)$`, "m").exec(unit)![1]!
  const environment = Object.fromEntries(
    of("Environment")
      .split(" ")
      .map((one) => one.split("=", 2))
  ) as object
  const [, ...words] = of("ExecStart").split(" ")
  // Only the process that was started is told to end.
  expect(of("KillMode")).toBe("mixed")
  const home = join(folder, "service")
  const PORT = String(await freePort())
  // systemd makes the folders of the unit, and an empty value is none.
  const own = {
    TIDEGATE_HOME: home,
    XDG_CACHE_HOME: join(folder, "cache"),
    PORT,
    DATABASE_URL: "",
    TIDEGATE_API_KEY: ""
  }
  const service = starting(words, {
    cwd: folder,
    env: { ...environment, ...own, TIDEGATE_PROCESSES: "2" },
    program: [join(folder, "node_modules/.bin/tidegate")]
  })
  const pids = new Set<number>()
  const ready = (count: number) =>
    service.line((line) => {
      const [, pid] = /process \d is ready \(pid (\d+)\)/.exec(line) ?? []
      if (pid !== undefined) pids.add(Number(pid))
      return pids.size >= count
    })
  await ready(2)
  const authorization = `Bearer ${(await readFile(join(home, "api-key"), "utf8")).trim()}`
  const metrics = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${PORT}/metrics`, { headers: { authorization } })).text()
  const before = await metrics()
  for (const id of [1, 2]) expect(before).toContain(`process="${id}"`)
  service.child.kill("SIGHUP")
  await ready(4)
  expect((await fetch(`http://127.0.0.1:${PORT}/readyz`)).status).toBe(200)
  const { code } = await service.interrupt("SIGTERM")
  expect(String(code)).toBe(of("SuccessExitStatus"))
  const runs = (pid: number): boolean => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  expect([...pids].filter(runs)).toEqual([])
})
