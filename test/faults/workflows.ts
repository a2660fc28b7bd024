/**
 * Runs of workflows under kills: `npm run test:faults -- --workflows`, or `node test/faults/workflows.ts [runs] [requests a second]`.
 *
 * Two runners and an edge; one of them after the other is killed at random while requests begin runs of seven steps. What became of
 * them is read from SQL and from what the target of their steps received. Exits with 1 when a run is lost or ended twice, when a step
 * that had ended was repeated, or when a repetition did not say that it is one.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Exit, Scope } from "effect"
import { Gateways } from "../support/Gateways.ts"
import * as Seven from "../support/SevenSteps.ts"
import { readRuns, type StoredRun } from "../support/StoredRuns.ts"
import type { Received } from "../support/Target.ts"
import { now, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { standalone } from "./Postgres.ts"

const [runs = 1_000, rate = 15] = process.argv.slice(2).map(Number).filter(Number.isFinite)
/** On shards of both runners. */
const workflows = 8
const betweenKillsMs = { least: 3_000, most: 8_000 }
/** Whatever is killed, something of it is on its way. */
const answersWithinMs = 600
const patienceMs = 120_000
const longestSendingMs = 180_000
/** A step's request that comes so long after the step's end was stored was not under way then. It takes a new owner 4 s to begin anything. */
const lateMs = 2_500

/** A shard is with its new owner so long after a kill or a return, at the latest. */
const movedWithinMs = 8_000

type Name = "a" | "b" | "edge"

const scope = Scope.makeUnsafe()
const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
const postgres = await standalone(folder)
const target = await Seven.echoing(answersWithinMs)
const gateways = await Gateways.start<Name>(folder, postgres.url, { a: "runner", b: "runner", edge: "edge" })
const startedAt = now()
const progress = (line: string) => process.stderr.write(`${((now() - startedAt) / 1_000).toFixed(0)} s: ${line}\n`)

const state = { isSending: true }
const kills: Array<{ readonly name: Name; readonly at: number }> = []
/** When a runner had come back: what it has taken from the other one was interrupted there. */
const returns: Array<number> = []

const killing = async (): Promise<void> => {
  const { least, most } = betweenKillsMs
  while (state.isSending) {
    await sleep(least + Math.random() * (most - least))
    const name: Name = Math.random() < 0.2 ? "edge" : Math.random() < 0.5 ? "a" : "b"
    await gateways.process(name).end("SIGKILL")
    kills.push({ name, at: now() })
    progress(`${name} is killed`)
    await gateways.process(name).start()
    if (name !== "edge") returns.push(now())
  }
}

/** What is wrong with a run, by what is stored of it and what the target received of it. */
const faultsOf = (
  run: StoredRun,
  token: string,
  requests: ReadonlyArray<Received>,
  expected: unknown
): Array<string> => {
  const faults = [...run.faults]
  if (JSON.stringify(Seven.comeTo(run, token)) !== JSON.stringify(expected)) {
    faults.push(`came to ${JSON.stringify(Seven.comeTo(run, token))}`)
  }
  const begun = Math.min(...requests.map(({ at }) => at))
  const over = Math.max(...[...run.ended.values()].map(({ at }) => at))
  // A kill, and the return that follows it, each may have found the step under way: its shard moves within seconds.
  const moved = [...kills.flatMap(({ at, name }) => (name === "edge" ? [] : [at])), ...returns]
  const disturbances = moved.filter((at) => at > begun - movedWithinMs && at < over + 1_000).length
  for (const [step, times] of Object.entries(Seven.usual)) {
    const those = requests.filter((received) => Seven.stepOf(received) === step)
    if (those.length < times - disturbances || those.length === 0) faults.push(`${step} came ${those.length} times`)
    if (those.length > times + disturbances) {
      faults.push(`${step} came ${those.length} times, with ${disturbances} kills and returns meanwhile`)
    }
    if (new Set(those.map(Seven.keyOf)).size > 1) faults.push(`${step} came with several keys`)
    const end = run.ended.get(Seven.steps.indexOf(step as Seven.Step))!
    if (those.some(({ at }) => at > end.at + lateMs)) faults.push(`${step} came again after it had ended`)
  }
  return faults
}

try {
  await waitUntil("both runners hold shards", async () => (await gateways.readiness("b")).shards > 0)
  const made: Array<{ readonly source: string; readonly workflow: string }> = []
  for (let n = 0; n < workflows; n++) {
    made.push(
      await Seven.create(
        (list, body) => gateways.api("edge", "POST", list, body) as Promise<{ id: string }>,
        `orders-${n}`,
        target.origin
      )
    )
  }
  const send = async (n: number, token: string): Promise<string | null> => {
    try {
      const { body, status } = await gateways.call("edge", "POST", `/e/${made[n % workflows]!.source}`, {
        headers: { "content-type": "application/json" },
        body: Seven.bodyOf(token)
      })
      return status === 200 ? (JSON.parse(body) as { request_id: string }).request_id : null
    } catch {
      return null
    }
  }
  const read = async () =>
    (
      await Promise.all(
        made.map(({ workflow }) => readRuns((statement, values) => gateways.query(statement, values), workflow))
      )
    ).flat()
  const areOver = async () =>
    Number((await gateways.query("select count(*)::int as n from workflow_queue"))[0]!["n"]) === 0

  // One that nobody disturbs says what the others have to come to.
  await send(0, "undisturbed")
  await waitUntil("a run is over", async () => (await read()).length === 1 && (await areOver()), { patienceMs })
  const expected = Seven.comeTo((await read())[0]!, "undisturbed")

  const killer = killing()
  const acknowledged = new Map<string, string>()
  const began = now()
  const sending: Array<Promise<void>> = []
  // What a killed edge process has not acknowledged does not count.
  for (let n = 0; acknowledged.size < runs && now() - began < longestSendingMs; n++) {
    const wait = began + (n * 1_000) / rate - now()
    if (wait > 0) await sleep(wait)
    const token = `token-${n}`
    sending.push(send(n, token).then((id) => void (id !== null && acknowledged.set(id, token))))
  }
  await Promise.all(sending)
  state.isSending = false
  await killer
  progress("all are sent")
  const isOver = await waitUntil("all are over", areOver, { patienceMs, everyMs: 250 }).then(
    () => true,
    () => false
  )
  const stored = await read()
  const requests = Map.groupBy(target.received, Seven.tokenOf)
  const known = new Map(stored.map((run) => [run.requestId, run]))
  const lost = [...acknowledged.keys()].filter((id) => known.get(id)?.outcome == null)
  const found = [...acknowledged].flatMap(([id, token]) => {
    const run = known.get(id)
    if (run === undefined || run.outcome === null) return []
    return faultsOf(run, token, requests.get(token) ?? [], expected).map((fault) => `${run.id}: ${fault}`)
  })
  const keys = Map.groupBy(target.received, Seven.keyOf)
  const shared = [...keys.values()].filter(
    (those) => new Set(those.map((one) => `${Seven.tokenOf(one)} ${Seven.stepOf(one)}`)).size > 1
  )
  const usual = Object.values(Seven.usual).reduce((sum, times) => sum + times, 0)
  process.stdout.write(
    `${JSON.stringify(
      {
        sent: sending.length,
        acknowledged: acknowledged.size,
        storedRuns: stored.length - 1,
        kills: Object.fromEntries(
          [...Map.groupBy(kills, ({ name }) => name)].map(([name, those]) => [name, those.length])
        ),
        isOver,
        lost: lost.length,
        requestsOfSteps: target.received.length,
        usualRequests: stored.length * usual,
        sharedKeys: shared.length,
        faults: found.slice(0, 20),
        faultsInAll: found.length
      },
      null,
      2
    )}\n`
  )
  process.exitCode = isOver && lost.length === 0 && found.length === 0 && shared.length === 0 ? 0 : 1
} finally {
  state.isSending = false
  await gateways.close()
  await target.close()
  await postgres.close()
  await Effect.runPromise(Scope.close(scope, Exit.void))
}
