import { execFile } from "node:child_process"
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { describe, expect } from "vitest"
import { it as gatewayIt } from "../support/it.ts"
import { shellEnvironment } from "../support/Page.ts"
import { patience } from "../support/Waiting.ts"

/** The README's quick start, word for word, is what a newcomer sees first: it works. */

const run = promisify(execFile)

let folder: string
let section: string

const it = gatewayIt
  /** The only block of that language, for this gateway instead of one on the usual port. */
  .extend("block", ({ gateway }) => (language: string): string => {
    const blocks = [...section.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))]
    expect(blocks).toHaveLength(1)
    const code = blocks[0]![1]!
    expect(code).toContain("http://localhost:8080")
    return code.replaceAll("http://localhost:8080", gateway.origin)
  })
  .extend("delivered", ({ gateway }) => async (requestId: string): Promise<void> => {
    await gateway.eventually("the webhook is delivered", async () => {
      const { events } = await gateway.api("GET", `/requests/${requestId}/trace`)
      return events[0]?.status === "SUCCESSFUL" ? events[0] : null
    })
  })
  .extend(
    "latest",
    ({ gateway }) =>
      async (): Promise<string> =>
        (await gateway.api("GET", "/requests?limit=1")).models[0]!.id
  )

it.beforeAll(async ({ gateway }) => {
  // Where a newcomer stands: in a folder that `npm start` has left its key in.
  folder = await mkdtemp(join(tmpdir(), "tidegate-quick-start-"))
  await mkdir(join(folder, ".tidegate"))
  await writeFile(join(folder, ".tidegate/api-key"), `${gateway.key}\n`)
  const readme = await readFile(resolve(import.meta.dirname, "../../README.md"), "utf8")
  section = readme.slice(readme.indexOf("## A first event"), readme.indexOf("## Building a client"))
})

it.afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** Runs a program where the newcomer stands, with the Node of this test. */
const shell = async (program: string, args: ReadonlyArray<string>): Promise<string> => {
  const { stdout } = await run(program, [...args], { cwd: folder, env: shellEnvironment(), timeout: 2 * patience })
  return stdout
}

describe("Quick start of the README", () => {
  it("The quick start needs no tool to extract ids from JSON", () => {
    expect(section).not.toMatch(/\b(?:sed|awk|grep|jq|npx)\b/)
  })

  it("The quick start works in JavaScript, also a second time", async ({ block, delivered, latest }) => {
    await writeFile(join(folder, "first.mjs"), block("js"))
    for (let times = 0; times < 2; times++) {
      expect(await shell(process.execPath, ["first.mjs"])).toMatch(/^1 event: Request accepted, Event created/)
      await delivered(await latest())
    }
  })

  it("The quick start works with curl and updates the same resources", async ({
    block,
    delivered,
    gateway,
    latest
  }) => {
    await writeFile(join(folder, "first.sh"), block("sh"))
    const out = await shell("sh", ["-eu", "first.sh"])
    const id = await latest()
    expect(out).toContain(`"id":"${id}"`)
    expect(out).not.toContain('"error":"')
    await delivered(id)
    const [source, ...others] = (await gateway.api("GET", "/sources?name=shop")).models
    expect([source?.name, others]).toEqual(["shop", []])
  })
})
