import { spawn } from "node:child_process"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { expect } from "vitest"
import { it as gatewayIt } from "../support/it.ts"
import { shellEnvironment } from "../support/Page.ts"
import { patience } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"

/** Pages about workflows, word for word, as somebody reads them who has a gateway and nothing else. */

const commandsOf = async (page: string): Promise<string> => {
  const text = await readFile(resolve(import.meta.dirname, "../../docs", page), "utf8")
  return [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, code]) => code!).join("")
}

/** Carries out what a page says, in a folder where a gateway was started. */
const carryOut = async (page: string, folder: string, gateway: { readonly key: string; readonly origin: string }) => {
  await mkdir(join(folder, ".tidegate"))
  await writeFile(join(folder, ".tidegate/api-key"), `${gateway.key}\n`)
  // What the page waits for may never come: then the shell ends, and says so by its signal.
  const shell = spawn("sh", ["-eu"], { cwd: folder, env: shellEnvironment(), timeout: 3 * patience })
  shell.stdin.end((await commandsOf(page)).replaceAll("http://localhost:8080", gateway.origin))
  const [out, error] = await Promise.all([shell.stdout.toArray(), shell.stderr.toArray()])
  const code = shell.exitCode ?? (await new Promise<number | null>((end) => shell.once("close", end)))
  expect(code, Buffer.concat([...out, ...error]).toString()).toBe(0)
}

const it = gatewayIt.extend("folder", async ({}, { onCleanup }) => {
  const scope = Scope.makeUnsafe()
  onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
})

it(
  "The tutorial leads from a template to a run that failed and was retried",
  { timeout: 4 * patience },
  async ({ folder, gateway }) => {
    await carryOut("tutorial-workflow.md", folder, gateway)
    const [workflow] = (await gateway.call("GET", "/workflows?name=Failed%20payments")).body.models
    expect(workflow).toMatchObject({ status: "active", version: 3 })
    const runs = (await gateway.call("GET", `/workflows/${workflow.id}/runs`)).body.models
    expect(
      runs.map(({ attempt_count, status }: { attempt_count: number; status: string }) => [status, attempt_count])
    ).toEqual([
      ["succeeded", 2],
      ["succeeded", 1]
    ])
  }
)

it("The actions page saves an action", { timeout: 4 * patience }, async ({ folder, gateway }) => {
  await carryOut("actions.md", folder, gateway)
  const { models } = (await gateway.call("GET", "/actions")).body
  expect(models).toMatchObject([{ name: "Post to ledger", config: { credentials_configured: true } }])
})
