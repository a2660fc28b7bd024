import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { randomBytes } from "node:crypto"
import { GatewayProcess, type Role } from "../faults/GatewayProcess.ts"
import { waitUntil } from "../faults/Waiting.ts"
import { freshDatabase } from "../postgres.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { Receiver } from "./Receiver.ts"

const apiKey = "gwk_rolling_keys_test"
const old = `old:${randomBytes(32).toString("base64")}`
const next = `next:${randomBytes(32).toString("base64")}`

describe("secret keys that are changed process by process", () => {
  it.live(
    "leave the processes together at every step",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const url = Redacted.value(yield* freshDatabase)
        yield* Effect.promise(async () => {
          const receiver = await Receiver.start()
          const living = new Map<Role, GatewayProcess>()
          const begin = async (role: Role, keys: string): Promise<void> => {
            await living.get(role)?.end("SIGTERM")
            const process = await GatewayProcess.make(role, role, folder, {
              TIDEGATE_HOME: folder,
              TIDEGATE_API_KEY: apiKey,
              TIDEGATE_SECRET_KEYS: keys,
              TIDEGATE_EGRESS_ALLOW: "127.0.0.0/8",
              DATABASE_URL: url
            })
            living.set(role, process)
            await process.start()
          }
          const call = async (path: string, body: unknown): Promise<{ readonly id: string }> => {
            const response = await fetch(`${living.get("edge")!.origin}${path}`, {
              method: "POST",
              headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
              body: JSON.stringify(body)
            })
            assert.strictEqual(response.status, 200, `${path}: ${await response.clone().text()}`)
            return (await response.json()) as { id: string }
          }
          try {
            let step = 0
            // The docs' order: added behind on every process, then moved to the front on every process.
            for (const [role, keys] of [
              ["runner", old],
              ["edge", old],
              ["runner", `${old},${next}`],
              ["edge", `${old},${next}`],
              ["edge", `${next},${old}`],
              ["runner", `${next},${old}`]
            ] as const) {
              await begin(role, keys)
              if (living.size < 2) continue
              // Three commands and a delivery, each from the edge to an actor of the runner; a secret of each step is read.
              const name = `step-${step++}`
              const source = await call("/v1/sources", {
                name,
                config: { auth_type: "API_KEY", auth: { header_key: "x-key", api_key: `secret-${name}` } }
              })
              const destination = await call("/v1/destinations", {
                name,
                config: { url: `${receiver.origin}/${name}` }
              })
              await call("/v1/connections", { name, source_id: source.id, destination_id: destination.id })
              const answer = await fetch(`${living.get("edge")!.origin}/e/${source.id}`, {
                method: "POST",
                headers: { "x-key": `secret-${name}` },
                body: "{}"
              })
              assert.strictEqual(answer.status, 200, await answer.text())
              await waitUntil(`${name} is delivered`, () => receiver.arrivals.length === step, { patienceMs: 15_000 })
            }
            assert.strictEqual(step, 5)
          } finally {
            await Promise.all([...living.values()].map((process) => process.end("SIGKILL")))
            await receiver.close()
          }
        })
      }),
    240_000
  )
})
