import { Effect, Exit, Redacted, Scope } from "effect"
import { appendFile, chmod, cp, readdir, rm } from "node:fs/promises"
import type { ServerResponse } from "node:http"
import { join } from "node:path"
import { expect } from "vitest"
import * as EmbeddedPostgres from "@tidegate/embedded-postgres/EmbeddedPostgres"
import { admin } from "../support/Admin.ts"
import { GatewayProcess, usualSettings } from "../support/GatewayProcess.ts"
import { it } from "../support/it.ts"
import { type Received, saying } from "../support/Target.ts"
import { query } from "../support/sql.ts"
import { eventually, sleep, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { edge } from "./workflowRuns.ts"

/** Backups of the embedded server, over the whole gateway: made while senders post, and restored after the machine is gone. */

const apiKey = "gwk_backup_test_key"

const call = async (gateway: GatewayProcess, method: string, path: string, body?: object) => {
  const response = await fetch(`${gateway.origin}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const answer = (await response.json()) as { id: string }
  expect(response.status, JSON.stringify(answer)).toBe(200)
  return answer
}

/** Statements in the embedded database of a home, by the server that runs there or by one that is started for them. */
const inHome = <A>(
  home: string,
  use: (ask: (statement: string, parameters?: ReadonlyArray<unknown>) => ReturnType<typeof query>) => Promise<A>
) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(EmbeddedPostgres.start({ home: join(home, "postgres") }), ({ url }) =>
        Effect.promise(() => use((statement, parameters) => query(Redacted.value(url), statement, parameters)))
      )
    )
  )

const numberOf = ({ body }: Received): number => (JSON.parse(body.toString()) as { number: number }).number

it("After a disaster, a restored backup has all that was acknowledged before it, and repeats deliveries by their ids", async ({
  onTestFinished,
  startTarget
}) => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
  // The server may run as another user.
  await chmod(folder, 0o755)
  const settingsOf = (name: string) => usualSettings(join(folder, name), apiKey)
  const first = await GatewayProcess.make("first", "all", folder, settingsOf("first"))
  onTestFinished(() => first.end("SIGKILL"))
  await first.start()

  const target = await startTarget()
  const source = await call(first, "POST", "/sources", { name: "shop" })
  const destination = await call(first, "POST", "/destinations", {
    name: "till",
    type: "HTTP",
    // Signed by the team's secret: only with the right keys.
    config: { url: target.origin, auth_type: "SERVICE_SIGNATURE" }
  })
  await call(first, "POST", "/connections", {
    name: "shop",
    source_id: source.id,
    destination_id: destination.id,
    rules: [{ type: "retry", strategy: "linear", interval: 1_000, count: 50 }]
  })
  const workflow = await call(first, "POST", "/workflows", {
    name: "each minute",
    source_id: (await call(first, "POST", "/sources", { name: "unused" })).id,
    steps: [
      {
        id: "name",
        kind: "action",
        action: { provider_key: "formatter", action_key: "text.trim" },
        invocation_inputs: { input: " a " }
      }
    ],
    edges: [edge(null, "name")],
    triggers: { schedule: [{ cron: "* * * * *", timezone: "UTC" }] }
  })

  // Two senders post fifty times a second at most, until the gateway is killed.
  let next = 0
  const end = new AbortController()
  const acknowledged = new Set<number>()
  const senders = Array.from({ length: 2 }, async () => {
    while (!end.signal.aborted) {
      const number = next++
      const answer = await fetch(`${first.origin}/e/${source.id}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ number })
      }).catch(() => null)
      if (answer?.status === 200) acknowledged.add(number)
      await sleep(40)
    }
  })
  onTestFinished(async () => {
    end.abort()
    await Promise.all(senders)
  })
  await waitUntil("some are delivered", () => target.received.length > 50)
  // From here on deliveries are held, so some are under way while the backup is made, and are delivered after it.
  const held: Array<ServerResponse> = []
  target.reply = (response) => void held.push(response)
  const heldFrom = next
  await waitUntil("some are held", () => target.received.some((received) => numberOf(received) >= heldFrom))

  const before = new Set(acknowledged)
  const backup = join(folder, "backup")
  const made = await admin(settingsOf("first"), "backup", backup)
  expect(made, made.complained).toMatchObject({
    code: 0,
    said: expect.stringContaining("whoever has this folder can read")
  })
  const bare = join(folder, "bare")
  const left = await admin(settingsOf("first"), "backup", bare, "--without-keys")
  expect(left, left.complained).toMatchObject({
    code: 0,
    said: expect.stringContaining("does NOT contain secrets.key")
  })
  expect(await readdir(bare)).toEqual(["SHA256SUMS", "about", "data", "password"])

  target.reply = saying("ok")
  for (const response of held) response.end("ok")
  const after = next
  await waitUntil("events that came after the backup are delivered", () =>
    target.received.some((received) => numberOf(received) >= after)
  )
  end.abort()
  await Promise.all(senders)
  expect(acknowledged.size).toBeGreaterThan(before.size)
  await first.end("SIGKILL")
  const deliveredBefore = new Set(target.received.map(numberOf))
  const repeatedFrom = target.received.length
  // Its server may write its last meanwhile.
  await waitUntil("the folder of the first gateway is gone", () =>
    rm(join(folder, "first"), { recursive: true, force: true, maxRetries: 5 }).then(() => true)
  )

  const damaged = join(folder, "damaged")
  await cp(backup, damaged, { recursive: true })
  await appendFile(join(damaged, "data", "global", "pg_control"), "x")
  expect(await admin(settingsOf("second"), "restore", damaged)).toMatchObject({
    code: 1,
    complained: expect.stringContaining("data/global/pg_control has changed")
  })
  const restored = await admin(settingsOf("second"), "restore", backup)
  expect(restored, restored.complained).toMatchObject({ code: 0, said: expect.stringContaining("nothing is wrong") })
  expect(restored.said).toContain("removed the entries of the backup's runners (1)")
  expect(await admin(settingsOf("second"), "restore", backup)).toMatchObject({
    code: 1,
    complained: expect.stringContaining("is not empty")
  })

  // The installation was away for three hours: 180 times of the schedule are missed.
  await inHome(join(folder, "second"), async (ask) => {
    const stored = await ask(
      "select convert_from(body, 'UTF8')::json ->> 'number' as number from requests where source_id = $1",
      [source.id]
    )
    const numbers = new Set(stored.map(({ number }) => Number(number)))
    expect([...before].filter((number) => !numbers.has(number))).toEqual([])
    await ask("delete from workflow_queue")
    await ask("update workflow_schedules set due_at = date_trunc('minute', now()) - interval '3 hours'")
  })
  const second = await GatewayProcess.make("second", "all", folder, settingsOf("second"))
  onTestFinished(() => second.end("SIGTERM"))
  const began = Date.now()
  await second.start()
  await inHome(join(folder, "second"), async (ask) => {
    await eventually("nothing waits any more", async () => {
      const [row] = await ask("select count(*)::int as waiting from deliveries")
      return Number(row!["waiting"]) === 0 ? row : null
    })
    const runs = await eventually("the schedule has begun a run", async () => {
      const found = await ask("select created_at from workflow_runs where workflow_id = $1 and created_at > $2", [
        workflow.id,
        new Date(began)
      ])
      return found.length > 0 ? found : null
    })
    // One for what was missed, and one for each minute since.
    expect(runs.length).toBeLessThanOrEqual(2 + Math.ceil((Date.now() - began) / 60_000))
  })

  const delivered = new Map<number, Set<unknown>>()
  for (const received of target.received) {
    const ids = delivered.get(numberOf(received)) ?? new Set()
    delivered.set(numberOf(received), ids.add(received.headers["webhook-id"]))
  }
  expect([...before].filter((number) => !delivered.has(number))).toEqual([])
  const repeated = target.received.slice(repeatedFrom).filter((received) => deliveredBefore.has(numberOf(received)))
  expect(repeated.length).toBeGreaterThan(0)
  expect([...delivered.values()].filter((ids) => ids.size !== 1 || ids.has(undefined))).toEqual([])

  const healthy = await admin(settingsOf("second"), "doctor")
  expect(healthy, healthy.said).toMatchObject({ code: 0 })
  await second.end("SIGTERM")

  // Without its keys, the installation is refused until they are back.
  expect(await admin(settingsOf("third"), "restore", bare)).toMatchObject({
    code: 0,
    said: expect.stringContaining("put secrets.key of the installation into")
  })
  expect(await admin(settingsOf("third"), "teams", "list")).toMatchObject({
    code: 1,
    complained: expect.stringContaining("secrets.key is missing")
  })
  await cp(join(backup, "keys", "secrets.key"), join(folder, "third", "secrets.key"))
  expect(await admin(settingsOf("third"), "keys", "rotate", "--check")).toMatchObject({ code: 0 })
})
