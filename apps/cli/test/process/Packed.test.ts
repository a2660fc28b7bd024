import { execFile } from "node:child_process"
import { readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect } from "vitest"
import { it } from "./it.ts"
import { run } from "./Program.ts"

const exec = promisify(execFile)
const pack = fileURLToPath(new URL("../../pack.mjs", import.meta.url))

it("the packed tarball installs without a registry, and runs as npx tidegate", async ({
  folder,
  gateway,
  signedIn
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
  // What is loaded only when it is needed is in there, too.
  const exported = await npx("export")
  expect(exported.said).toContain(`name: ${source.name}`)
  await writeFile(join(folder, "all.yaml"), exported.said)
  expect((await npx("import", "all.yaml", "--plan")).code).toBe(0)
})
