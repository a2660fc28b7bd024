import { Context, Effect, Layer } from "effect"
import { ClusterError, type Runner, type RunnerAddress, RunnerStorage } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { cpus } from "node:os"
import { type RunnerLoad, RunnerLoads } from "@tidegate/storage/RunnerLoads"

/**
 * Which processes of a host hold shards. Events that few processes handle share commits, messages and writes, and the same events
 * spread over many processes share none. So a host uses as few processes as its load needs: the first one holds all shards, and
 * the next one takes its share while all before it are busy. The others are on standby: they receive requests, and let the active
 * ones commit them (`commits/Forwarding.ts`).
 *
 * A standby is shown to the cluster as a runner that is not healthy, which gets no shards. All processes decide alike, from the same
 * rows. If they read them at different moments, shards wait for a second: the locks allow one owner only.
 */

/** The standing of this process. */
export interface Standing {
  readonly isStandby: () => boolean
  /** The host of this runner; null: the process is no runner. */
  readonly host: string | null
}

/** Without the layer, no process is on standby. */
export const Standing = Context.Reference<Standing>("@tidegate/entities/Standing", {
  defaultValue: () => ({ isStandby: () => false, host: null })
})

type Runners = ReadonlyArray<readonly [runner: Runner.Runner, healthy: boolean]>

const nameOf = ({ host, port }: RunnerAddress.RunnerAddress): string => `${host}:${port}`

/**
 * The addresses of the runners on standby. Beside a runner without a row, all are active: it runs an older version, which expects the others to take
 * their shards.
 */
export const standbys = (runners: Runners, loads: ReadonlyArray<RunnerLoad>): ReadonlySet<string> => {
  const found = new Set<string>()
  const byAddress = new Map(loads.map((load) => [load.address, load]))
  const candidates: Array<RunnerLoad & { readonly host: string }> = []
  for (const [{ address }, healthy] of runners) {
    const load = byAddress.get(nameOf(address))
    if (load === undefined) return found
    if (healthy && load.standby) candidates.push({ ...load, host: address.host })
  }
  candidates.sort((a, b) => a.joined - b.joined || (a.address < b.address ? -1 : 1))
  for (const ofHost of Map.groupBy(candidates, ({ host }) => host).values()) {
    const firstIdle = ofHost.findIndex(({ busy }) => !busy)
    if (firstIdle >= 0) for (const { address } of ofHost.slice(firstIdle + 1)) found.add(address)
  }
  return found
}

/** How busy a process is, each in cores: its event loop, and what the machine has left. */
export interface Usage {
  readonly used: number
  readonly free: number
}

const sampleEvery = "2 seconds"
/** Of how many samples the mean counts. */
const samples = 3
/** The share of a core from which a process is busy. Then a garbage collection or a large body already delays others. */
const busyFrom = 0.7
/** A busy process stays so until it uses less: two processes share the load of one, and must not become one again at once. */
const idleBelow = 0.3
/** Without this many free cores, another process would only take CPU from PostgreSQL and from the busy one. */
const minFree = 0.3

/** Whether a process is busy, by its last samples. */
export const isBusyBy = (wasBusy: boolean, last: ReadonlyArray<Usage>): boolean => {
  if (last.length < samples) return wasBusy
  const mean = (of: (usage: Usage) => number): number => last.reduce((sum, usage) => sum + of(usage), 0) / last.length
  const used = mean((usage) => usage.used)
  return wasBusy ? used >= idleBelow : used >= busyFrom && mean(({ free }) => free) >= minFree
}

const idleMs = (): number => cpus().reduce((sum, { times }) => sum + times.idle, 0)

/** Measures from one call to the next. */
const measuring = (): (() => Usage) => {
  let at = performance.now()
  let cpu = process.threadCpuUsage()
  let idle = idleMs()
  return () => {
    const now = performance.now()
    const { system, user } = process.threadCpuUsage(cpu)
    const idleNow = idleMs()
    const took = Math.max(1, now - at)
    const usage = { used: (user + system) / 1_000 / took, free: (idleNow - idle) / took }
    at = now
    cpu = process.threadCpuUsage()
    idle = idleNow
    return usage
  }
}

/** How often (samples) a busy process says so, and for how many seconds that counts. */
const saidEvery = 5
const busySeconds = 30

/** Measures this process, and records for the others when it is busy. */
const recordingLoad = (loads: RunnerLoads["Service"], address: string, isAlone: () => boolean): Effect.Effect<never> =>
  Effect.gen(function* () {
    const measure = measuring()
    let last: ReadonlyArray<Usage> = []
    let isBusy = false
    let since = 0
    const sample = Effect.suspend(() => {
      if (isAlone()) return Effect.void
      last = [...last, measure()].slice(-samples)
      const wasBusy = isBusy
      isBusy = isBusyBy(wasBusy, last)
      since = isBusy && wasBusy ? (since + 1) % saidEvery : 0
      return isBusy && since === 0 ? Effect.ignore(loads.busy(address, busySeconds)) : Effect.void
    })
    return yield* Effect.forever(Effect.andThen(Effect.sleep(sampleEvery), sample))
  })

export interface StandbyOptions {
  /** The address of this runner; null: the process is no runner. */
  readonly address: RunnerAddress.RunnerAddress | null
  /** Whether it may be on standby. */
  readonly isAllowed: boolean
}

/** Shows the runners to the cluster as above, and provides the standing of this process. */
export const layer = ({
  address,
  isAllowed
}: StandbyOptions): Layer.Layer<
  RunnerStorage.RunnerStorage,
  SqlError.SqlError,
  RunnerStorage.RunnerStorage | RunnerLoads
> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const storage = yield* RunnerStorage.RunnerStorage
      const loads = yield* RunnerLoads
      const own = address === null ? null : nameOf(address)
      let resting: ReadonlySet<string> = new Set()
      let isAlone = true
      const refail = <A>(effect: Effect.Effect<A, SqlError.SqlError>) => ClusterError.PersistenceError.refail(effect)

      if (own !== null) {
        yield* loads.join(own, isAllowed)
        yield* Effect.forkScoped(recordingLoad(loads, own, () => isAlone))
      }
      return Context.make(Standing, {
        isStandby: () => own !== null && resting.has(own),
        host: address?.host ?? null
      }).pipe(
        Context.add(RunnerStorage.RunnerStorage, {
          ...storage,
          getRunners: Effect.gen(function* () {
            const runners = yield* storage.getRunners
            isAlone = runners.length <= 1
            resting = isAlone ? new Set() : standbys(runners, yield* refail(loads.all))
            return runners.map(
              ([runner, healthy]) => [runner, healthy && !resting.has(nameOf(runner.address))] as const
            )
          }),
          register: (runner, healthy) =>
            Effect.andThen(refail(loads.rejoin(nameOf(runner.address), isAllowed)), storage.register(runner, healthy)),
          unregister: (runner) =>
            Effect.andThen(storage.unregister(runner), Effect.ignore(loads.leave(nameOf(runner)))),
          // The health check of the cluster finds that a standby answers, and would say so each second.
          setRunnerHealth: (runner, healthy) =>
            healthy && resting.has(nameOf(runner)) ? Effect.void : storage.setRunnerHealth(runner, healthy)
        })
      )
    })
  )
