import { randomBytes } from "node:crypto"
import { afterAll, describe, expect } from "vitest"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { parseExposition, sampleValue } from "../support/Exposition.ts"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"
import { meanwhile } from "../support/Meanwhile.ts"
import { noOwnRedis, Redis } from "../support/Redis.ts"
import { eventually, now, waitUntil } from "../support/Waiting.ts"

/** Calls a minute of one key. */
const limit = 20
const redis = noOwnRedis ? null : await Redis.start()
const settings = { TIDEGATE_REDIS_URL: redis?.url ?? "", TIDEGATE_API_RATE_LIMIT: String(limit) }
afterAll(() => redis?.stop())

type Pair = Gateways<"a" | "b">

/** A team with a key that has called nothing yet. */
const freshKey = async (gateways: Pair): Promise<string> => {
  const [team, key] = [`tm_${randomBytes(8).toString("hex")}`, `gwk_${randomBytes(16).toString("hex")}`]
  await gateways.query("insert into teams (id, name) values ($1, $1)", [team])
  await gateways.query(
    `insert into project_secrets (team_id, api_key_hash, api_key_masked, signing_secret, signing_secret_masked)
      values ($1, $2, '****', 'unused', '****')`,
    [team, hashToken(key)]
  )
  return key
}

/** How many of three times the limit's calls were let in, of which process, and how many there may have been at most. */
const burst = async (gateways: Pair, by: ReadonlyArray<"a" | "b">) => {
  const key = await freshKey(gateways)
  const began = now()
  const statuses = await Promise.all(
    Array.from({ length: 3 * limit }, async (_, index) => {
      const headers = { authorization: `Bearer ${key}` }
      return (await gateways.call(by[index % by.length]!, "GET", "/v1/sources", { headers })).status
    })
  )
  for (const status of statuses) expect([200, 429]).toContain(status)
  const minutes = (now() - began) / 60_000
  return { allowed: statuses.filter((status) => status === 200).length, most: limit + Math.floor(limit * minutes) }
}

const metric = async (gateways: Pair, of: "a" | "b", name: string, labels: Record<string, string> = {}) => {
  const headers = { authorization: "Bearer gwk_cluster_test_key" }
  return sampleValue(parseExposition((await gateways.call(of, "GET", "/metrics", { headers })).body), name, labels) ?? 0
}

const unanswered = async (gateways: Pair): Promise<number> => {
  let sum = 0
  for (const name of ["a", "b"] as const) {
    for (const reason of ["away", "deadline", "lost", "refused", "busy"]) {
      sum += await metric(gateways, name, "tidegate_redis_unanswered_total", { reason })
    }
  }
  return sum
}

const answering = (gateways: Pair, is: 0 | 1) =>
  waitUntil(`Redis answers both: ${is}`, async () => {
    // A process without calls to count finds out by its heartbeat.
    await burst(gateways, ["a", "b"])
    const [a, b] = [await metric(gateways, "a", "tidegate_redis_up"), await metric(gateways, "b", "tidegate_redis_up")]
    return a === is && b === is
  })

/** On a busy machine Redis may be late once: then a burst proves nothing, and is repeated. */
const countTogether = async (gateways: Pair): Promise<void> => {
  const { allowed, most } = await eventually("a burst was counted with all answers", async () => {
    const before = await unanswered(gateways)
    const counted = await burst(gateways, ["a", "b"])
    return (await unanswered(gateways)) > before ? null : counted
  })
  expect(allowed).toBeGreaterThanOrEqual(limit)
  expect(allowed).toBeLessThanOrEqual(most)
}

describe.skipIf(redis === null)("Two processes with one Redis", () => {
  it("Two processes share a limit in Redis, and both accept every event while Redis is stopped or frozen", async ({
    running
  }) => {
    const gateways: Pair = await running({ a: "all", b: "all" }, settings)
    const source = await gateways.api("a", "POST", "/sources", { name: "events" })
    const accepted = { all: 0, refused: [] as Array<number> }
    await meanwhile(
      async () => {
        const { status } = await gateways.call(accepted.all % 2 === 0 ? "a" : "b", "POST", `/e/${source.id}`, {
          headers: { "content-type": "application/json" },
          body: "{}"
        })
        accepted.all++
        if (status !== 200) accepted.refused.push(status)
      },
      async () => {
        await answering(gateways, 1)
        await countTogether(gateways)
        for (const [away, back] of [
          [() => redis!.stop(), () => redis!.start()],
          [async () => redis!.freeze(), async () => redis!.thaw()]
        ] as const) {
          const before = accepted.all
          await away()
          await answering(gateways, 0)
          // Each has the limit once: what neither knows of is allowed by both.
          for (const by of ["a", "b"] as const) {
            const { allowed, most } = await burst(gateways, [by])
            expect(allowed).toBeGreaterThanOrEqual(limit)
            expect(allowed).toBeLessThanOrEqual(most)
          }
          expect(await gateways.readiness("a")).toMatchObject({ ok: true, redis: false })
          await waitUntil("events were accepted without Redis", () => accepted.all > before + 20)
          await back()
          await answering(gateways, 1)
          await countTogether(gateways)
          expect(await gateways.readiness("a")).toMatchObject({ ok: true, redis: true })
        }
      }
    )
    expect(accepted.refused).toEqual([])
  })
})
