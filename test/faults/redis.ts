/**
 * Stops, freezes and restarts Redis while live traffic runs and the control API is called:
 * `node test/faults/redis.ts [live requests a second] [seconds of each phase]`
 *
 * Prints for each phase what the event path took, and what the limit of an API key let in.
 */
import { randomBytes } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Exit, Scope } from "effect"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { Gateways } from "../support/Gateways.ts"
import { Redis } from "../support/Redis.ts"
import { Target } from "../support/Target.ts"
import { now, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { standalone } from "./Postgres.ts"

const [rate = 100, phaseSeconds = 15] = process.argv.slice(2).map(Number)
/** Calls a minute of one key, over both processes. */
const limit = 60

const scope = Scope.makeUnsafe()
const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
const postgres = await standalone(folder)
const target = await Target.start()
const redis = await Redis.start()
const gateways = await Gateways.start(
  folder,
  postgres.url,
  { a: "all", b: "all" },
  { TIDEGATE_REDIS_URL: redis.url, TIDEGATE_API_RATE_LIMIT: String(limit) }
)

const state = { isOver: false, sent: 0, accepted: 0, errors: 0 }
/** When what was accepted, and delivered, was sent, and what it took. */
const answers: Array<{ readonly at: number; readonly ms: number }> = []
const deliveries: Array<{ readonly at: number; readonly ms: number }> = []
target.reply = (response, { at, body }) => {
  const sentAt = Number(body.toString())
  deliveries.push({ at: sentAt, ms: at - sentAt })
  response.end()
}

/** Posts at an even rate to both processes, each with the time of its own. */
const sending = async (source: string): Promise<void> => {
  const began = now()
  while (!state.isOver) {
    const wait = began + (state.sent * 1_000) / rate - now()
    if (wait > 0) await sleep(wait)
    const at = now()
    gateways.call(state.sent++ % 2 === 0 ? "a" : "b", "POST", `/e/${source}`, { body: String(at) }).then(
      ({ status }) => {
        if (status === 200) state.accepted++
        else state.errors++
        answers.push({ at, ms: now() - at })
      },
      () => state.errors++
    )
  }
}

const freshKey = async (): Promise<string> => {
  const [team, key] = [`tm_${randomBytes(8).toString("hex")}`, `gwk_${randomBytes(16).toString("hex")}`]
  await gateways.query("insert into teams (id, name) values ($1, $1)", [team])
  await gateways.query(
    `insert into project_secrets (team_id, api_key_hash, api_key_masked, signing_secret, signing_secret_masked)
      values ($1, $2, '****', 'unused', '****')`,
    [team, hashToken(key)]
  )
  return key
}

/** Calls of one key, one after the other at both processes: what they were answered, and what they took. */
const calling = async () => {
  const headers = { authorization: `Bearer ${await freshKey()}` }
  const answered: Record<string, number> = {}
  const took: Array<number> = []
  const began = now()
  for (let n = 0; n < 3 * limit; n++) {
    const at = now()
    const { status } = await gateways.call(n % 2 === 0 ? "a" : "b", "GET", "/v1/sources", { headers })
    took.push(now() - at)
    answered[status] = (answered[status] ?? 0) + 1
  }
  const back = Math.floor((limit * (now() - began)) / 60_000)
  return { answered, given_back_meanwhile: back, ...percentiles(took) }
}

const percentiles = (values: ReadonlyArray<number>) => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => Number((sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(1))
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), most: at(1 - 1 / Math.max(1, 2 * sorted.length)) }
}

const redisAnswers = async (name: "a" | "b"): Promise<boolean> =>
  (JSON.parse((await gateways.call(name, "GET", "/readyz")).body) as { redis: boolean }).redis

/** What happens to Redis, and what the event path and the API do from then on. */
const phase = async (name: string, isToAnswer: boolean, change: () => Promise<void> | void) => {
  const [from, errors] = [now(), state.errors]
  await change()
  const changed = now()
  if (isToAnswer)
    await waitUntil("Redis answers both again", async () => (await redisAnswers("a")) && redisAnswers("b"))
  const back = Math.round(now() - changed)
  const calls = await calling()
  await sleep(Math.max(0, from + phaseSeconds * 1_000 - now()))
  const to = now()
  // What was sent at the end is on its way.
  await sleep(500)
  const within = (all: typeof answers) => percentiles(all.flatMap(({ at, ms }) => (at >= from && at < to ? [ms] : [])))
  process.stdout.write(
    `${JSON.stringify({
      phase: name,
      errors: state.errors - errors,
      accepted: within(answers),
      delivered: within(deliveries),
      api_calls: calls,
      redis_answers: await redisAnswers("a"),
      ...(isToAnswer ? { redis_answered_after_ms: back } : {})
    })}\n`
  )
}

try {
  await waitUntil("both hold shards", async () => (await gateways.readiness("b")).shards > 0)
  const source = await gateways.api("a", "POST", "/sources", { name: "live" })
  const destination = await gateways.api("a", "POST", "/destinations", { name: "live", config: { url: target.origin } })
  await gateways.api("a", "POST", "/connections", {
    name: "live",
    source_id: source.id,
    destination_id: destination.id
  })
  const traffic = sending(source.id)
  await sleep(5_000)
  await phase("answering", true, () => {})
  await phase("stopped", false, () => redis.stop())
  await phase("started again", true, () => redis.start())
  await phase("frozen", false, () => redis.freeze())
  await phase("going on", true, () => redis.thaw())
  await phase("restarted", true, async () => {
    await redis.stop()
    await redis.start()
  })
  state.isOver = true
  await traffic
  await waitUntil("all is answered", () => state.accepted + state.errors === state.sent)
  await waitUntil("all has been delivered", () => deliveries.length >= state.accepted)
  const { accepted, errors, sent } = state
  process.stdout.write(`${JSON.stringify({ sent, accepted, errors, delivered: deliveries.length })}\n`)
} finally {
  state.isOver = true
  await gateways.close()
  await target.close()
  await redis.stop()
  await postgres.close()
  await Effect.runPromise(Scope.close(scope, Exit.void))
}
