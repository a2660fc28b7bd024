import { afterAll, describe, expect } from "vitest"
import { parseExposition, sampleValue } from "../support/Exposition.ts"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"
import { noOwnRedis, Redis } from "../support/Redis.ts"
import { eventually, now, waitUntil } from "../support/Waiting.ts"

/** The limit that a project key has of its own, over three processes that have one Redis: exact while it answers, and never in the way when it does not. */

type Processes = Gateways<"a" | "b" | "edge">

const redis = noOwnRedis ? null : await Redis.start()
const settings = { TIDEGATE_REDIS_URL: redis?.url ?? "" }
afterAll(() => redis?.stop())

const limit = 60
const calls = 300
/** Longer than a call waits for Redis, and for an actor whose shard has no owner; on a machine that is busy. */
const maxMs = 15_000

const signIn = async (gateways: Processes): Promise<string> =>
  (JSON.parse((await gateways.call("a", "POST", "/v1/auth/demo/login")).body) as { token: string }).token

let last: string | null = null

/** A key that nobody has called with, in the place of the last one: a team has fifty at the most, and what a busy machine spoils is repeated. */
const freshKey = async (gateways: Processes, owner: string, callsPerMinute = limit): Promise<string> => {
  const authorization = `Bearer ${owner}`
  if (last !== null) {
    const gone = await gateways.call("edge", "DELETE", `/v1/project-api-keys/${last}`, { headers: { authorization } })
    expect(gone.status, gone.body).toBe(200)
  }
  const answer = await gateways.call("edge", "POST", "/v1/project-api-keys", {
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ name: "key", scopes: ["control:read"], rate_limit_per_minute: callsPerMinute })
  })
  expect(answer.status, answer.body).toBe(201)
  const { data } = JSON.parse(answer.body) as { data: { api_key: string; id: string } }
  last = data.id
  return data.api_key
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly tookMs: number
}

const call = async (gateways: Processes, by: "a" | "b" | "edge", key: string): Promise<Answer> => {
  const since = now()
  const response = await fetch(`${gateways.process(by).origin}/v1/sources`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(maxMs)
  })
  await response.arrayBuffer()
  return { status: response.status, headers: response.headers, tookMs: now() - since }
}

/** So many calls at once of one key, by all processes in turn, and what became of them; `amid` happens in their midst. */
const burst = async (gateways: Processes, key: string, amid: () => Promise<unknown> = async () => {}) => {
  const began = now()
  const each = (index: number) => call(gateways, gateways.names[index % gateways.names.length]!, key)
  const first = Array.from({ length: calls / 2 }, (_, index) => each(index))
  const happening = amid()
  const second = Array.from({ length: calls / 2 }, (_, index) => each(index))
  const [answers] = await Promise.all([Promise.all([...first, ...second]), happening])
  const allowed = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 429)
  expect(allowed.length + refused.length).toBe(calls)
  expect(Math.max(...answers.map(({ tookMs }) => tookMs)), "nobody waits for Redis").toBeLessThan(maxMs)
  /** What has come back of the allowance meanwhile. */
  const more = Math.floor((limit * (now() - began)) / 60_000)
  return { answers, allowed, refused, more }
}

const allowanceOf = ({ headers }: Answer) => {
  const [, left, reset] = /^"key";r=(\d+);t=(\d+)$/.exec(headers.get("ratelimit") ?? "") ?? []
  expect([headers.get("x-ratelimit-remaining"), headers.get("x-ratelimit-reset")]).toEqual([left, reset])
  expect(headers.get("x-ratelimit-limit")).toBe(String(limit))
  expect(headers.get("ratelimit-policy")).toBe(`"key";q=${limit};w=60`)
  return { left: Number(left), reset: Number(reset) }
}

const metric = async (
  gateways: Processes,
  of: "a" | "b" | "edge",
  name: string,
  labels: Record<string, string> = {}
) => {
  const headers = { authorization: "Bearer gwk_cluster_test_key" }
  return sampleValue(parseExposition((await gateways.call(of, "GET", "/metrics", { headers })).body), name, labels) ?? 0
}

const unanswered = async (gateways: Processes): Promise<number> => {
  const counts = gateways.names.flatMap((of) =>
    ["away", "deadline", "lost", "refused", "busy"].map((reason) =>
      metric(gateways, of, "tidegate_redis_unanswered_total", { reason })
    )
  )
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

const answering = (gateways: Processes, owner: string, is: 0 | 1) =>
  waitUntil(`Redis answers all: ${is}`, async () => {
    // A process without calls to count finds out by its heartbeat.
    const key = await freshKey(gateways, owner)
    await Promise.all(gateways.names.map((of) => call(gateways, of, key)))
    const up = await Promise.all(gateways.names.map((of) => metric(gateways, of, "tidegate_redis_up")))
    return up.every((one) => one === is)
  })

/** On a busy machine Redis may be late once: then a burst proves nothing, and is repeated. */
const countTogether = async (gateways: Processes, owner: string): Promise<void> => {
  const { allowed, more, refused } = await eventually("a burst was counted with all answers", async () => {
    const before = await unanswered(gateways)
    const counted = await burst(gateways, await freshKey(gateways, owner))
    return (await unanswered(gateways)) > before ? null : counted
  })
  expect(allowed.length).toBeGreaterThanOrEqual(limit)
  expect(allowed.length).toBeLessThanOrEqual(limit + more)
  // Each answer states a different rest of the allowance; only what has come back meanwhile is stated a second time.
  const left = allowed.map((answer) => allowanceOf(answer).left)
  expect(Math.max(...left)).toBe(limit - 1)
  expect(left.length - new Set(left).size).toBeLessThanOrEqual(more)
  for (const answer of refused) {
    const { left, reset } = allowanceOf(answer)
    expect(left).toBe(0)
    expect(reset).toBeGreaterThan(0)
    expect(reset).toBeLessThanOrEqual(60)
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
    expect(Number(answer.headers.get("retry-after"))).toBeLessThanOrEqual(reset)
  }
}

describe.skipIf(redis === null)("Project key in three processes with one Redis", () => {
  it("A project key's rate limit holds while Redis is away and after it is back", async ({ running }) => {
    const gateways: Processes = await running({ a: "all", b: "all", edge: "edge" }, settings)
    const owner = await signIn(gateways)
    await answering(gateways, owner, 1)
    await countTogether(gateways, owner)

    for (const [away, back] of [
      [() => redis!.stop(), () => redis!.start()],
      [async () => redis!.freeze(), async () => redis!.thaw()]
    ] as const) {
      // In the midst of it: nobody hangs, and nobody fails. What was counted there each process knows in part, and the key's actor not at all.
      const amid = await burst(gateways, await freshKey(gateways, owner), away)
      expect(amid.allowed.length).toBeGreaterThanOrEqual(limit)
      expect(amid.allowed.length).toBeLessThanOrEqual((gateways.names.length + 2) * (limit + amid.more))
      await answering(gateways, owner, 0)
      // Without it, the key's actor counts: exact over all of them. On a busy machine it may be late once: then a burst proves nothing, and is repeated.
      const { allowed } = await eventually(
        "a burst was counted by the key's actor",
        async () => {
          const key = await freshKey(gateways, owner)
          // The first call finds its actor: while it has none, a process counts alone.
          await Promise.all(gateways.names.map((of) => call(gateways, of, key)))
          return burst(gateways, key)
        },
        (counted) => counted.allowed.length <= limit - gateways.names.length + counted.more + 1
      )
      expect(allowed.length).toBeGreaterThanOrEqual(limit - gateways.names.length)
      await back()
      await answering(gateways, owner, 1)
      await countTogether(gateways, owner)
    }
  })
})
