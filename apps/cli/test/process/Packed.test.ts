import { execFile } from "node:child_process"
import { readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect } from "vitest"
import { it } from "./it.ts"
import { run } from "./Program.ts"

const exec = promisify(execFile)
const pack = fileURLToPath(new URL("../../pack.mjs", import.meta.url))

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
  await exec("npm", ["install", "--no-audit", "--no-fund", `./${tarball}`], { cwd: folder, env: alone })
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
    "delete globalThis.WebSocket; delete URL.parse; delete JSON.rawJSON; delete Array.fromAsync\n"
  )
  const older = (...words: ReadonlyArray<string>) => ({
    words,
    options: {
      cwd: folder,
      env: signedIn,
      program: [process.execPath, `--import=${lacking}`, "node_modules/tidegate/bin/tidegate.js"]
    }
  })
  const listening = older("listen", String(target.port), "--source", source.name)
  const tunnel = starting(listening.words, listening.options)
  await tunnel.line((line) => line.startsWith("ready"))
  const sending = older("send", source.name, "--data", '{"amount":12345678901234567890}')
  expect(await run(sending.words, sending.options)).toMatchObject({ code: 0, said: expect.stringMatching(/^200 /) })
  await tunnel.line((line) => line.startsWith("200 POST / evt_"))
  expect(await tunnel.interrupt()).toMatchObject({ code: 0 })
  const [manifest, bin] = await Promise.all(
    ["package.json", "bin/tidegate.js"].map((name) => readFile(join(folder, "node_modules/tidegate", name), "utf8"))
  )
  expect(JSON.parse(manifest!)).toMatchObject({ engines: { node: ">=20.19" } })
  // What a module does not export is an error before anything of it runs.
  expect(bin).not.toMatch(/import \{/)

  // What is loaded only when it is needed is in there, too.
  const exported = await npx("export")
  expect(exported.said).toContain(`name: ${source.name}`)
  await writeFile(join(folder, "all.yaml"), exported.said)
  expect((await npx("import", "all.yaml", "--plan")).code).toBe(0)

  // A module of the user's own is loaded by the packed program.
  await writeFile(join(folder, "flow.mjs"), 'export default { name: "a packed flow", source_id: null, triggers: {} }\n')
  const planned = await npx("workflows", "push", "flow.mjs", "--dry-run")
  expect(planned).toMatchObject({ code: 6, said: expect.stringContaining("+ workflow a packed flow") })
})
