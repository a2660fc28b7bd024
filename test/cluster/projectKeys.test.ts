import { WebSocket } from "@effect/platform-node/NodeWS"
import { describe, expect } from "vitest"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"
import { eventually, now } from "../support/Waiting.ts"

/** Keys of a team that several processes are called with. Without Redis: what they share is the database and the actors. */

type Processes = Gateways<"all" | "runner" | "edge">

const running = { all: "all", runner: "runner", edge: "edge" } as const
const processes = ["all", "edge"] as const

const path = "/v1/project-api-keys"

interface Key {
  readonly id: string
  readonly api_key: string
}

const json = (credential: string) => ({ authorization: `Bearer ${credential}`, "content-type": "application/json" })

const signIn = async (gateways: Processes): Promise<string> => {
  const { body } = await gateways.call("all", "POST", "/v1/auth/demo/login")
  return (JSON.parse(body) as { token: string }).token
}

const create = async (gateways: Processes, owner: string, policy: object = {}): Promise<Key> => {
  const body = JSON.stringify({ name: "key", scopes: ["control:read"], rate_limit_per_minute: 10_000, ...policy })
  const answer = await gateways.call("edge", "POST", path, { headers: json(owner), body })
  expect(answer.status, answer.body).toBe(201)
  return (JSON.parse(answer.body) as { data: Key }).data
}

const list = async (gateways: Processes, by: (typeof processes)[number], { api_key }: Key): Promise<number> =>
  (await gateways.call(by, "GET", "/v1/sources", { headers: { authorization: `Bearer ${api_key}` } })).status

const decided = async (gateways: Processes, owner: string, { id }: Key) => {
  const { body } = await gateways.call("all", "GET", `${path}/${id}/audit`, { headers: json(owner) })
  const rows = (JSON.parse(body) as { data: ReadonlyArray<{ decision: string; route_key: string; count: number }> })
    .data
  const of = (wanted: string) =>
    rows
      .filter(({ decision, route_key }) => decision === wanted && route_key === "GET:/v1/sources")
      .reduce((sum, { count }) => sum + count, 0)
  return { allowed: of("allowed"), denied: of("denied"), limited: of("rate_limited") }
}

describe("Project keys in two processes without Redis", () => {
  it("A revoked project key is refused by each process from the next call on", async ({ running: start }) => {
    const gateways: Processes = await start(running)
    const owner = await signIn(gateways)
    for (const [at, elsewhere] of [processes, processes.toReversed()] as ReadonlyArray<typeof processes>) {
      const key = await create(gateways, owner)
      expect([await list(gateways, at, key), await list(gateways, elsewhere, key)]).toEqual([200, 200])
      // Called all the while: nothing that is under way brings it back.
      const state = { isRevoked: false }
      const called = async (): Promise<void> => {
        while (!state.isRevoked && (await list(gateways, elsewhere, key)) === 200);
      }
      const revoke = () => gateways.call(at, "DELETE", `${path}/${key.id}`, { headers: json(owner) })
      const [, answer] = await Promise.all([called(), revoke().finally(() => (state.isRevoked = true))])
      expect(answer.status).toBe(200)
      // Not many: wrong credentials are limited by the address that they come from.
      for (let n = 0; n < 5; n++) {
        expect([await list(gateways, elsewhere, key), await list(gateways, at, key)]).toEqual([401, 401])
      }
    }
  })

  it("Streams opened with a project key end in each process soon after it is revoked", async ({
    onTestFinished,
    running: start
  }) => {
    const gateways: Processes = await start(running)
    const owner = await signIn(gateways)
    const key = await create(gateways, owner)
    const other = await create(gateways, owner)
    const source = await gateways.api("all", "POST", "/sources", { name: "watched" })
    const watch = (by: (typeof processes)[number], { api_key }: Key) => {
      const url = `${gateways.process(by).origin.replace("http", "ws")}/v1/bins/${source.id}/stream`
      const socket = new WebSocket(url, ["bin.v1"], { headers: { authorization: `Bearer ${api_key}` } })
      const reader = { isOpen: false, closed: null as number | null }
      socket.on("message", () => (reader.isOpen = true))
      socket.on("close", (code) => (reader.closed = code))
      socket.on("error", () => {})
      onTestFinished(() => socket.terminate())
      return reader
    }
    const revoked = processes.map((by) => watch(by, key))
    const kept = processes.map((by) => watch(by, other))
    for (const reader of [...revoked, ...kept]) await eventually("a greeting", () => reader.isOpen || null)
    const began = now()
    await gateways.call("all", "DELETE", `${path}/${key.id}`, { headers: json(owner) })
    for (const reader of revoked) expect(await eventually("the end", () => reader.closed)).toBe(4401)
    // Much sooner than a stream is asked about anyhow, every thirty seconds.
    expect(now() - began).toBeLessThan(20_000)
    expect(kept.map(({ closed }) => closed)).toEqual([null, null])
    expect((await decided(gateways, owner, other)).denied).toBe(0)
  })

  it("A project key's rate limit holds for both processes together", async ({ running: start }) => {
    const gateways: Processes = await start(running)
    const owner = await signIn(gateways)
    const limit = 60
    // The first call finds its actor: while it has none, a process counts alone.
    for (let n = 0; n < 5; n++) await list(gateways, processes[n % 2]!, await create(gateways, owner))
    const key = await create(gateways, owner, { rate_limit_per_minute: limit })
    expect(await list(gateways, "edge", key)).toBe(200)
    const began = now()
    const statuses = await Promise.all(
      Array.from({ length: 3 * limit }, (_, n) => list(gateways, processes[n % 2]!, key))
    )
    const more = Math.floor((limit * (now() - began)) / 60_000)
    const allowed = 1 + statuses.filter((status) => status === 200).length
    expect(statuses.every((status) => status === 200 || status === 429)).toBe(true)
    expect(allowed).toBeGreaterThanOrEqual(limit)
    expect(allowed).toBeLessThanOrEqual(limit + more)
    const counts = await eventually("all is in the audit", async () => {
      const counts = await decided(gateways, owner, key)
      return counts.allowed + counts.limited >= 1 + statuses.length ? counts : null
    })
    expect(counts).toEqual({ allowed, denied: 0, limited: 1 + statuses.length - allowed })
  })

  it("Each call of a project key is counted once in its audit, also when a process ends", async ({
    running: start
  }) => {
    const gateways: Processes = await start(running)
    const owner = await signIn(gateways)
    const key = await create(gateways, owner)
    const each = 500
    await Promise.all(Array.from({ length: 2 * each }, (_, n) => list(gateways, processes[n % 2]!, key)))
    await gateways.process("edge").end("SIGTERM")
    const counts = await eventually("all is in the audit", async () => {
      const counts = await decided(gateways, owner, key)
      return counts.allowed >= 2 * each ? counts : null
    })
    expect(counts).toEqual({ allowed: 2 * each, denied: 0, limited: 0 })
  })
})
