import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Exit, Scope } from "effect"
import { Gateways } from "../support/Gateways.ts"
import { readRuns, type StoredRun } from "../support/StoredRuns.ts"
import type { Received, Target } from "../support/Target.ts"
import { now, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { standalone } from "./Postgres.ts"

/**
 * Runs of one graph under kills. Two runners and an edge: one of them after the other is killed at random while requests begin runs.
 * What became of them is read from SQL and from what the target of their steps received.
 */

const betweenKillsMs = { least: 3_000, most: 8_000 }
const patienceMs = 120_000
const longestSendingMs = 180_000
/**
 * If a step's request comes this long after the end of the step was stored, it was not under way then. A new owner needs 4 s before it begins
 * anything.
 */
const lateMs = 2_500
/** How long after a kill or a return a shard has its new owner, at the latest. */
const movedWithinMs = 8_000

/** So slow that some work is always under way when a process is killed. */
export const answersWithinMs = 600

type Name = "a" | "b" | "edge"

export interface Rig {
  readonly gateways: Gateways<Name>
  /** Creates a resource of a list. */
  readonly create: (list: string, body: object) => Promise<{ readonly id: string }>
}

/** How often a step was called, compared with the usual number and with the number that the kills explain. */
export interface Calls {
  readonly what: string
  readonly requests: ReadonlyArray<Received>
  readonly usual: number
  /** When the end of the step was stored (Unix ms). */
  readonly endedAt: number
}

export interface Seen {
  /** By the ids of the requests that were acknowledged. */
  readonly tokens: ReadonlyMap<string, string>
  /** All runs of the graph's workflows, also those whose request was not acknowledged. */
  readonly stored: ReadonlyArray<StoredRun>
  /** The run that nobody disturbed. */
  readonly undisturbed: StoredRun
  /** The faults in the calls of a run. `all`: all its requests. */
  readonly faultsOfCalls: (run: StoredRun, all: ReadonlyArray<Received>, calls: ReadonlyArray<Calls>) => Array<string>
}

export interface Verdict {
  /** What was broken, in words. */
  readonly faults: ReadonlyArray<string>
  readonly figures: Readonly<Record<string, unknown>>
}

export interface Begun {
  readonly target: Target
  /** So many that they are on shards of both runners. */
  readonly workflows: ReadonlyArray<{ readonly source: string; readonly workflow: string }>
  readonly judge: (seen: Seen) => Promise<Verdict>
}

/** A graph whose runs are killed. */
export interface KilledGraph {
  readonly name: string
  /** Requests a second. */
  readonly rate: number
  readonly bodyOf: (token: string) => string
  readonly begin: (rig: Rig) => Promise<Begun>
}

/** The token of the run that nobody disturbs. Those of the others are `token-<n>`. */
const calm = "undisturbed"

export const keyOf = ({ headers }: Received): string => String(headers["idempotency-key"])

/** Keys that came from more than one `call` (of a run, a step, an element). */
export const sharedKeys = (received: ReadonlyArray<Received>, callOf: (one: Received) => string): Array<string> =>
  [...Map.groupBy(received, keyOf)].flatMap(([key, those]) => {
    const calls = new Set(those.map(callOf))
    return calls.size > 1 ? [`key ${key} is of ${[...calls].join(" and ")}`] : []
  })

/** Carries it out and returns what was seen, and whether all is right. */
export const underKills = async (
  graph: KilledGraph,
  { rate, runs }: { readonly rate: number; readonly runs: number }
): Promise<{ readonly isRight: boolean; readonly report: object }> => {
  const scope = Scope.makeUnsafe()
  const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
  const postgres = await standalone(folder)
  const gateways = await Gateways.start<Name>(folder, postgres.url, { a: "runner", b: "runner", edge: "edge" })
  const startedAt = now()
  const progress = (line: string) =>
    process.stderr.write(`${graph.name}, ${((now() - startedAt) / 1_000).toFixed(0)} s: ${line}\n`)

  const state = { isSending: true, target: null as Target | null }
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

  const faultsOfCalls: Seen["faultsOfCalls"] = (run, all, calls) => {
    const begun = Math.min(...all.map(({ at }) => at))
    const over = Math.max(...[...run.ended.values()].map(({ at }) => at))
    // A kill, and the return that follows it, each may have found the step under way: its shard moves within seconds.
    const moved = [...kills.flatMap(({ at, name }) => (name === "edge" ? [] : [at])), ...returns]
    const disturbances = moved.filter((at) => at > begun - movedWithinMs && at < over + 1_000).length
    return calls.flatMap(({ endedAt, requests, usual, what }) => {
      const faults: Array<string> = []
      const times = requests.length
      if (times < usual - disturbances || times === 0) faults.push(`${what} came ${times} times`)
      if (times > usual + disturbances) {
        faults.push(`${what} came ${times} times, with ${disturbances} kills and returns meanwhile`)
      }
      if (new Set(requests.map(keyOf)).size > 1) faults.push(`${what} came with several keys`)
      if (requests.some(({ at }) => at > endedAt + lateMs)) faults.push(`${what} came again after it had ended`)
      return faults
    })
  }

  try {
    await waitUntil("both runners hold shards", async () => (await gateways.readiness("b")).shards > 0)
    const { judge, target, workflows } = await graph.begin({
      gateways,
      create: (list, body) => gateways.api("edge", "POST", list, body) as Promise<{ id: string }>
    })
    state.target = target
    const send = async (n: number, token: string): Promise<string | null> => {
      try {
        const { body, status } = await gateways.call("edge", "POST", `/e/${workflows[n % workflows.length]!.source}`, {
          headers: { "content-type": "application/json" },
          body: graph.bodyOf(token)
        })
        return status === 200 ? (JSON.parse(body) as { request_id: string }).request_id : null
      } catch {
        return null
      }
    }
    const read = async () =>
      (
        await Promise.all(
          workflows.map(({ workflow }) => readRuns((statement, values) => gateways.query(statement, values), workflow))
        )
      ).flat()
    const areOver = async () =>
      Number((await gateways.query("select count(*)::int as n from workflow_queue"))[0]!["n"]) === 0

    // A run without kills shows the result that all others must have.
    await send(0, calm)
    await waitUntil("a run is over", async () => (await read()).length === 1 && (await areOver()), { patienceMs })
    const undisturbed = (await read())[0]!

    const killer = killing()
    const tokens = new Map<string, string>()
    const began = now()
    const sending: Array<Promise<void>> = []
    // Requests that a killed edge process did not acknowledge do not count.
    for (let n = 0; tokens.size < runs && now() - began < longestSendingMs; n++) {
      const wait = began + (n * 1_000) / rate - now()
      if (wait > 0) await sleep(wait)
      const token = `token-${n}`
      sending.push(send(n, token).then((id) => void (id !== null && tokens.set(id, token))))
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
    const known = new Map(stored.map((run) => [run.requestId, run]))
    const lost = [...tokens.keys()].filter((id) => known.get(id)?.outcome == null)
    const { faults, figures } = await judge({ tokens, stored, undisturbed, faultsOfCalls })
    return {
      isRight: isOver && lost.length === 0 && faults.length === 0,
      report: {
        graph: graph.name,
        sent: sending.length,
        acknowledged: tokens.size,
        storedRuns: stored.length - 1,
        kills: Object.fromEntries(
          [...Map.groupBy(kills, ({ name }) => name)].map(([name, those]) => [name, those.length])
        ),
        isOver,
        lost: lost.length,
        requestsOfSteps: target.received.length,
        ...figures,
        faults: faults.slice(0, 20),
        faultsInAll: faults.length,
        seconds: Math.round((now() - startedAt) / 1_000)
      }
    }
  } finally {
    state.isSending = false
    await gateways.close()
    await state.target?.close()
    await postgres.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
