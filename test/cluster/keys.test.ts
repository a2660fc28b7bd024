import { randomBytes } from "node:crypto"
import { describe, expect } from "vitest"
import { GatewayProcess, type Role, usualSettings } from "../support/GatewayProcess.ts"
import { it } from "../support/it.ts"
import { admin } from "../support/Admin.ts"

const apiKey = "gwk_rolling_keys_test"
const old = `old:${randomBytes(32).toString("base64")}`
const next = `next:${randomBytes(32).toString("base64")}`

describe("Rotation of secret keys", () => {
  it("Secret keys are changed process by process, and all processes understand each other at every step", async ({
    onTestFinished,
    place,
    target
  }) => {
    const living = new Map<Role, GatewayProcess>()
    onTestFinished(async () => {
      await Promise.all([...living.values()].map((process) => process.end("SIGKILL")))
    })
    const begin = async (role: Role, keys: string): Promise<void> => {
      await living.get(role)?.end("SIGTERM")
      const process = await GatewayProcess.make(role, role, place.folder, {
        ...usualSettings(place.folder, apiKey),
        TIDEGATE_SECRET_KEYS: keys,
        DATABASE_URL: place.databaseUrl
      })
      living.set(role, process)
      await process.start()
    }
    const call = async (path: string, body: unknown, isChange = false): Promise<{ readonly id: string }> => {
      const response = await fetch(`${living.get("edge")!.origin}${path}`, {
        method: isChange ? "PATCH" : "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify(body)
      })
      expect(response.status, `${path}: ${await response.clone().text()}`).toBe(200)
      return (await response.json()) as { id: string }
    }
    const rotate = (keys: string, ...more: ReadonlyArray<string>) =>
      admin(
        { TIDEGATE_HOME: place.folder, TIDEGATE_SECRET_KEYS: keys, DATABASE_URL: place.databaseUrl },
        "keys",
        "rotate",
        ...more
      )
    let step = 0
    const sources: Array<string> = []
    // The docs' order: added behind on every process, moved to the front on every process, all encrypted anew, taken out on every process.
    for (const [role, keys] of [
      ["runner", old],
      ["edge", old],
      ["runner", `${old},${next}`],
      ["edge", `${old},${next}`],
      ["edge", `${next},${old}`],
      ["runner", `${next},${old}`],
      ["edge", next],
      ["runner", next]
    ] as const) {
      if (step === 5) {
        const both = `${next},${old}`
        expect(await rotate(both, "--check")).toMatchObject({
          code: 1,
          said: expect.stringContaining("key old: 3 in sources.auth")
        })
        expect(await rotate(next)).toMatchObject({
          code: 1,
          complained: expect.stringContaining("TIDEGATE_SECRET_KEYS")
        })
        const turned = await rotate(both)
        expect(turned).toMatchObject({ code: 0, said: expect.stringContaining("key old: used nowhere") })
        expect(await rotate(both, "--check")).toMatchObject({ code: 0 })
      }
      await begin(role, keys)
      if (living.size < 2) continue
      // What the edge creates, two commands and a delivery, each from it to an actor of the runner; a secret of each step is read.
      const name = `step-${step++}`
      const source = await call("/v1/sources", {
        name,
        config: { auth_type: "API_KEY", auth: { header_key: "x-key", api_key: `secret-${name}` } }
      })
      const destination = await call("/v1/destinations", {
        name,
        config: { url: `${target.origin}/${name}`, forward_credentials: true }
      })
      await call("/v1/connections", { name, source_id: source.id, destination_id: destination.id })
      await call(`/v1/sources/${source.id}`, { description: name }, true)
      await call(`/v1/destinations/${destination.id}`, { description: name }, true)
      const answer = await fetch(`${living.get("edge")!.origin}/e/${source.id}`, {
        method: "POST",
        headers: { "x-key": `secret-${name}` },
        body: "{}"
      })
      expect(answer.status, await answer.text()).toBe(200)
      await target.next(step)
      expect(target.received.length).toBe(step)
      expect(target.received.at(-1)?.headers["x-key"]).toBe(`secret-${name}`)
      sources.push(source.id)
    }
    expect(step).toBe(7)
    // What the old key had encrypted is read without it.
    for (const [n, source] of sources.entries()) {
      const headers = { "x-key": `secret-step-${n}` }
      const answer = await fetch(`${living.get("edge")!.origin}/e/${source}`, { method: "POST", headers, body: "{}" })
      expect(answer.status, await answer.text()).toBe(200)
    }
    await target.next(2 * step)
    expect(new Set(target.received.slice(step).map(({ headers }) => headers["x-key"]))).toEqual(
      new Set(sources.map((_, n) => `secret-step-${n}`))
    )
  })
})
