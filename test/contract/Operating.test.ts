import { spawn } from "node:child_process"
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { describe, expect } from "vitest"
import { Gateway } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"
import { shellEnvironment } from "../support/Page.ts"
import { patience } from "../support/Waiting.ts"

/** What `docs/operating.md` tells an operator to type, word for word, one part after the other. */

const page = await readFile(resolve(import.meta.dirname, "../../docs/operating.md"), "utf8")

/** The commands of a part, by its heading; of the beginning, by none. */
const commands = (heading: string | null): string => {
  const parts = page.split(/^## /m)
  const part = heading === null ? parts[0] : parts.find((text) => text.startsWith(`${heading}\n`))
  expect(part, heading ?? "").toBeDefined()
  return [...part!.matchAll(/^```sh\n(.*?)^```/gms)].map(([, code]) => code).join("\n")
}

const it = gatewayIt
  .extend("folder", async ({}, { onCleanup }) => {
    const folder = await mkdtemp(join(tmpdir(), "tidegate-operating-"))
    onCleanup(() => rm(folder, { recursive: true, force: true }))
    await mkdir(join(folder, ".tidegate"))
    return folder
  })
  /** Runs the beginning and a part as an operator would, and tells what `about` prints of it afterwards. */
  .extend(
    "operate",
    ({ folder, gateway }) =>
      async (heading: string, about = "", at = gateway): Promise<ReadonlyArray<string>> => {
        await writeFile(join(folder, ".tidegate/api-key"), `${at.key}\n`)
        const own = `${commands(null)}\n${commands(heading)}`.replaceAll("http://localhost:8080", at.origin)
        expect(own).toContain(at.origin)
        // What the page waits for may never come: then the shell ends, and says so by its signal.
        const shell = spawn("sh", ["-eu"], { cwd: folder, env: shellEnvironment(), timeout: 2 * patience })
        shell.stdin.end(`{ ${own}\n} >parts.log\n${about}\n`)
        const [out, error] = await Promise.all([shell.stdout.toArray(), shell.stderr.toArray()])
        const code = shell.exitCode ?? (await new Promise<number | null>((end) => shell.once("close", end)))
        expect(code, Buffer.concat(error).toString()).toBe(0)
        return Buffer.concat(out).toString().trim().split("\n")
      }
  )

describe("docs/operating.md", () => {
  it("The operating page replays a request with an edit", async ({ gateway, operate }) => {
    const [original, copy] = await operate("Replay a request with an edit", 'echo "$REQ"; echo "$COPY"')
    const read = async (id: string | undefined) => (await gateway.call("GET", `/requests/${id}`)).body
    expect((await read(copy)).retry_parent_request_id).toBe(original)
    expect((await read(copy)).data).toMatchObject({ path: "/orders", body: { order: 7, amount: 12.5 } })
    expect((await read(original)).data.body).toEqual({ order: 7, amount: "12,50" })
  })

  it("The operating page retries 1,000 failed events in bulk", async ({ gateway, operate }) => {
    const [id] = await operate("Retry 1,000 failed events in bulk", 'echo "$OP"')
    expect((await gateway.call("GET", `/events/bulk_operations/${id}`)).body).toMatchObject({
      status: "COMPLETED",
      total_count: 1_000,
      queued_count: 1_000,
      failed_count: 0
    })
  })

  it("The operating page shares a request and revokes the share", async ({ operate }) => {
    const log = (await operate("Share a request", "cat parts.log")).join("\n")
    expect(log).toMatch(/"title":"Order 8".*"sanitized":true.*"acme".*410$/)
    expect(log).not.toMatch(/hunter2|DE00/)
  })

  it("The operating page keeps a bin with the requests that it received", async ({ gateway, operate }) => {
    const [id] = await operate("Keep a bin", 'echo "$ID"')
    expect((await gateway.call("GET", `/sources/${id}`)).status).toBe(200)
    expect((await gateway.call("GET", `/requests?source_id=${id}`)).body.count).toBe(1)
  })

  it("The operating page changes both keys without losing a delivery", async ({ onTestFinished, operate, target }) => {
    // Whose key is none that the other tests go by.
    const gateway = await Gateway.start()
    onTestFinished(() => gateway.close())
    const { source } = await gateway.route(target, { destination: { auth_type: "SERVICE_SIGNATURE" } })
    const [secret, key] = await operate("Change a key", 'echo "$SECRET"; echo "$NEW"', gateway)
    expect((await gateway.call("GET", "/sources")).status).toBe(401)
    const answer = await fetch(`${gateway.origin}/v1/sources`, { headers: { authorization: `Bearer ${key}` } })
    expect(answer.status).toBe(200)
    expect((await fetch(source.url, { method: "POST", body: "x" })).status).toBe(200)
    const [delivery] = await target.next()
    expect(String(delivery!.headers["webhook-signature"]).split(" ")).toHaveLength(2)
    expect(await gateway.signingSecret()).toBe(secret)
  })
})
