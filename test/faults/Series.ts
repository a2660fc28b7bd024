import { Effect, Exit, Scope } from "effect"
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
import { createRoutes } from "./Routes.ts"
import { Target } from "./Target.ts"

/** A running gateway with its load and target. */
export interface OpenWorld {
  readonly world: World
  readonly folder: string
  /** Answers the processes that would not end. */
  readonly close: () => Promise<ReadonlyArray<string>>
}

export interface WorldOptions {
  /** Requests a second. */
  readonly perSecond: number
  /** Whether every connection keeps an order, not just some. */
  readonly allOrdered?: boolean
  /** Whether operators read and retry meanwhile. */
  readonly operations?: boolean
  /** What the processes run at first, where it is not this version. */
  readonly program?: string
}

/** Starts everything in an empty folder, with routes but no load yet. */
export const openWorld = async (
  topology: Topology,
  { allOrdered = false, operations = false, perSecond, program }: WorldOptions,
  slack = 1
): Promise<OpenWorld> => {
  const scope = Scope.makeUnsafe()
  const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
  // It may be in memory, so it must not stay when the harness is interrupted.
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  process.once("exit", remove)
  const target = await Target.start()
  const cluster = await Cluster.start(topology, folder, program)
  const routes = await createRoutes(cluster, target.origin, allOrdered)
  // Where every retry holds up its line there have to be more of them.
  const load = new Load(cluster.origin, routes, { perSecond, lines: allOrdered ? 64 : 8 })
  return {
    world: { cluster, target, load, routes, operations: operations ? new Operations(cluster, routes) : null, slack },
    folder,
    close: async () => {
      await load.close()
      const stuck = await cluster.close()
      await target.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
      process.off("exit", remove)
      return stuck
    }
  }
}

export interface SeriesOptions extends WorldOptions {
  readonly onOutcome: (outcome: Outcome) => void
  /** No round begins when this says so. */
  readonly isOver?: () => boolean
  /** How many times longer than promised things may take. */
  readonly slack?: number
  /** Where each round's logs are kept; by default only those of worlds with broken promises are. */
  readonly roundLogs?: RoundLogs | undefined
}

/**
 * Holds these rounds one after the other, in the same world for as long as the topology is the same and nothing in it is
 * stuck. Answers where the logs of worlds with broken promises are.
 */
export const holdAll = async (faults: ReadonlyArray<Fault>, options: SeriesOptions): Promise<ReadonlyArray<string>> => {
  const logs: Array<string> = []
  const remaining = [...faults]
  while (remaining.length > 0 && options.isOver?.() !== true) {
    const { topology } = remaining[0]!
    let opened: OpenWorld
    try {
      opened = await openWorld(topology, options, options.slack)
    } catch (cause) {
      const findings = new Findings()
      findings.broke(
        "the harness could do its part",
        cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
      )
      options.onOutcome({ fault: remaining.shift()!, findings, figures: null, history: null, worldIsSound: false })
      continue
    }
    const { close, folder, world } = opened
    const outcomes: Array<Outcome> = []
    // Each is told when the next begins: what the last one left behind may keep a process from ending, and belongs to it.
    let last: Outcome | undefined
    try {
      while (remaining[0]?.topology === topology && last?.worldIsSound !== false && options.isOver?.() !== true) {
        if (last !== undefined) options.onOutcome(last)
        last = await hold(world, remaining.shift()!)
        outcomes.push(last)
        options.roundLogs?.cut(folder, last)
      }
    } finally {
      const kept = options.roundLogs === undefined ? keepLogs(folder) : null
      for (const name of await close()) last?.findings.broke("a process ends by SIGTERM", `${name}: not within 30 s`)
      if (last !== undefined) options.onOutcome(last)
      if (kept !== null && outcomes.every(({ findings }) => findings.isClean)) rmSync(kept, { recursive: true })
      else if (kept !== null) logs.push(kept)
    }
  }
  return logs
}

const keepLogs = (folder: string): string => {
  const kept = join(tmpdir(), `tidegate-faults-${Date.now()}`)
  mkdirSync(kept, { recursive: true })
  for (const name of readdirSync(folder)) if (name.endsWith(".log")) cpSync(join(folder, name), join(kept, name))
  return kept
}
