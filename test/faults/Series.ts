import { Effect, Exit, Scope } from "effect"
import { randomUUID } from "node:crypto"
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { temporaryFolder } from "../temporaryFolder.ts"
import { Cluster, type Topology } from "./Cluster.ts"
import type { Fault } from "./Fault.ts"
import { Findings } from "./Findings.ts"
import { Load } from "./Load.ts"
import { Operations } from "./Operations.ts"
import { hold, type Outcome, type World } from "./Round.ts"
import type { RoundLogs } from "./RoundLogs.ts"
import { createRoutes, type Route } from "./Routes.ts"
import { Target } from "./Target.ts"
import { now } from "../support/Waiting.ts"

/** A running gateway with its load and target. */
export interface OpenWorld {
  readonly world: World
  readonly folder: string
  /** Returns the processes that did not end. */
  readonly close: () => Promise<ReadonlyArray<string>>
}

export interface WorldOptions {
  /** Called with the folder of a gateway that could not be started, before the folder is removed. */
  readonly onFailure?: (folder: string) => void
  /** Requests a second. */
  readonly perSecond: number
  /** Whether every connection keeps an order, not just some. */
  readonly allOrdered?: boolean
  /** Whether operators read and retry during the rounds. */
  readonly operations?: boolean
  /** The program that the processes run at first, if it is not this version. */
  readonly program?: string
}

/** Starts everything in an empty folder, with routes but no load yet. */
export const openWorld = async (
  topology: Topology,
  { allOrdered = false, onFailure, operations = false, perSecond, program }: WorldOptions,
  slack = 1
): Promise<OpenWorld> => {
  const scope = Scope.makeUnsafe()
  const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
  // The folder may be in memory, so it must be removed when the harness is interrupted.
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  process.once("exit", remove)
  const target = await Target.start()
  const removeAll = async (): Promise<void> => {
    await target.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    process.off("exit", remove)
  }
  let cluster: Cluster | undefined
  let routes: ReadonlyArray<Route>
  try {
    cluster = await Cluster.start(topology, folder, program)
    routes = await createRoutes(cluster, target.origin, allOrdered)
  } catch (cause) {
    onFailure?.(folder)
    await cluster?.close()
    await removeAll()
    throw cause
  }
  // If every retry delays the later events of its key, more keys are needed.
  const load = new Load(cluster.origin, routes, { perSecond, lines: allOrdered ? 64 : 8 })
  return {
    world: { cluster, target, load, routes, operations: operations ? new Operations(cluster, routes) : null, slack },
    folder,
    close: async () => {
      await load.close()
      const stuck = await cluster.close()
      await removeAll()
      return stuck
    }
  }
}

export interface SeriesOptions extends WorldOptions {
  /** `round`: its number in `roundLogs`. */
  readonly onOutcome: (outcome: Outcome, round: number | undefined) => void
  /** No round begins when this says so. */
  readonly isOver?: () => boolean
  /** How many times longer than promised things may take. */
  readonly slack?: number
  /** The folder for the logs of all rounds. By default, only logs of rounds with broken promises are kept. */
  readonly roundLogs?: RoundLogs | undefined
}

/**
 * Runs these rounds one after the other. It uses the same processes and database while the topology stays the same and nothing is stuck. Returns the
 * folders with the logs of rounds with broken promises.
 */
export const holdAll = async (faults: ReadonlyArray<Fault>, options: SeriesOptions): Promise<ReadonlyArray<string>> => {
  const { isOver = () => false, onOutcome, roundLogs } = options
  const logs: Array<string> = []
  const remaining = [...faults]
  while (remaining.length > 0 && !isOver()) {
    const { topology } = remaining[0]!
    let round: number | undefined
    let opened: OpenWorld
    const began = now()
    try {
      const onFailure = (folder: string): void => {
        round = roundLogs?.cut(folder)
      }
      opened = await openWorld(topology, { ...options, onFailure }, options.slack)
    } catch (cause) {
      const findings = new Findings()
      findings.broke(harness, traceOf(cause))
      onOutcome({ fault: remaining.shift()!, findings, figures: null, history: null, worldIsSound: false }, round)
      continue
    }
    const { close, folder, world } = opened
    let openedMs: number | null = now() - began
    // A round is reported when the next one begins, because work that it left may keep a process from ending, and this belongs to its outcome.
    let last: Outcome | undefined
    let isClean = true
    while (remaining[0]?.topology === topology && last?.worldIsSound !== false && !isOver()) {
      if (last !== undefined) onOutcome(last, round)
      const { history, ...outcome } = await hold(world, remaining.shift()!)
      round = roundLogs?.cut(folder, history)
      // The history is in the logs. A thousand of them are too many for the memory.
      last = { ...outcome, history: null }
      if (openedMs !== null) last = withPart(last, "open", openedMs)
      openedMs = null
      isClean &&= last.findings.isClean
    }
    const kept = roundLogs === undefined ? keepLogs(folder) : null
    const ending = now()
    try {
      for (const name of await close()) last?.findings.broke("a process ends by SIGTERM", `${name}: not within 30 s`)
    } catch (cause) {
      last?.findings.broke(harness, traceOf(cause))
    }
    if (last !== undefined) onOutcome(withPart(last, "close", now() - ending), round)
    if (kept === null) continue
    if (isClean && last?.findings.isClean !== false) rmSync(kept, { recursive: true })
    else logs.push(kept)
  }
  return logs
}

/** The outcome with one more part: how long it took to start or to stop the gateway (ms). */
const withPart = (outcome: Outcome, name: "open" | "close", tookMs: number): Outcome =>
  outcome.figures === null
    ? outcome
    : {
        ...outcome,
        figures: { ...outcome.figures, parts: { ...outcome.figures.parts, [name]: Math.round(tookMs) } }
      }

const harness = "the harness could do its part"

const traceOf = (cause: unknown): string => (cause instanceof Error ? (cause.stack ?? cause.message) : String(cause))

const keepLogs = (folder: string): string => {
  const kept = join(tmpdir(), `tidegate-faults-${randomUUID()}`)
  mkdirSync(kept, { recursive: true })
  for (const name of readdirSync(folder)) if (name.endsWith(".log")) cpSync(join(folder, name), join(kept, name))
  return kept
}
