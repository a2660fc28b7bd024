import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Runner, RunnerAddress, RunnerStorage } from "effect/cluster"
import { type RunnerLoad, RunnerLoads } from "@tidegate/storage/RunnerLoads"
import { isBusyBy, layer, Standing, standbys, type Usage } from "../src/Standby.ts"

const runner = (host: string, port: number) =>
  Runner.make({ address: RunnerAddress.make(host, port), groups: ["default"], weight: 1 })

const load = (address: string, joined: number, more: Partial<RunnerLoad> = {}): RunnerLoad => ({
  address,
  joined,
  standby: true,
  busy: false,
  ...more
})

/** The standbys among healthy runners with these loads. */
const among = (loads: ReadonlyArray<RunnerLoad>): ReadonlyArray<string> => {
  const runners = loads.map(({ address }) => {
    const [host = "", port] = address.split(":")
    return [runner(host, Number(port)), true] as const
  })
  return [...standbys(runners, loads)].toSorted()
}

describe("Which runners are on standby", () => {
  it("Of the runners of a host, the one that joined first is active", () => {
    expect(among([load("a:2", 20), load("a:1", 30), load("a:3", 10)])).toEqual(["a:1", "a:2"])
    expect(among([load("a:2", 10), load("a:1", 10)])).toEqual(["a:2"])
    expect(among([load("a:1", 10)])).toEqual([])
  })

  it("The next runner takes part while all before it are busy", () => {
    const busy = { busy: true }
    expect(among([load("a:1", 1, busy), load("a:2", 2), load("a:3", 3)])).toEqual(["a:3"])
    expect(among([load("a:1", 1, busy), load("a:2", 2, busy), load("a:3", 3)])).toEqual([])
    expect(among([load("a:1", 1, busy), load("a:2", 2, busy), load("a:3", 3, busy)])).toEqual([])
    expect(among([load("a:1", 1), load("a:2", 2, busy), load("a:3", 3)])).toEqual(["a:2", "a:3"])
  })

  it("Each host has an active runner", () => {
    expect(among([load("a:1", 1), load("b:1", 2), load("a:2", 3), load("b:2", 4)])).toEqual(["a:2", "b:2"])
  })

  it("A runner that may not be on standby is active, and counts for nobody", () => {
    expect(among([load("a:1", 1, { standby: false }), load("a:2", 2), load("a:3", 3)])).toEqual(["a:3"])
  })

  it("A runner that is not healthy is no reason for another one to be on standby", () => {
    const runners = [
      [runner("a", 1), false],
      [runner("a", 2), true]
    ] as const
    expect(standbys(runners, [load("a:1", 1), load("a:2", 2)]).size).toBe(0)
  })

  it("Beside a runner of an older version, which has no row, all are active", () => {
    const runners = [1, 2, 3].map((port) => [runner("a", port), true] as const)
    expect(standbys(runners, [load("a:1", 1), load("a:2", 2)]).size).toBe(0)
  })

  it("Rows of runners that the cluster does not know change nothing", () => {
    expect([...standbys([[runner("a", 2), true]], [load("a:1", 1), load("a:2", 2)])]).toEqual([])
  })
})

describe("When a process is busy", () => {
  const usages = (...used: ReadonlyArray<readonly [used: number, free: number]>): ReadonlyArray<Usage> =>
    used.map(([used, free]) => ({ used, free }))

  it("It is busy when it has used most of a core for a while, and the machine has cores that are free", () => {
    expect(isBusyBy(false, usages([0.9, 2], [0.8, 2]))).toBe(false)
    expect(isBusyBy(false, usages([0.9, 2], [0.8, 2], [0.9, 2]))).toBe(true)
    expect(isBusyBy(false, usages([0.9, 2], [0.2, 2], [0.2, 2]))).toBe(false)
  })

  it("On a machine without free cores it is not: another process would only take them from it", () => {
    expect(isBusyBy(false, usages([0.9, 0.1], [0.9, 0], [0.9, 0.1]))).toBe(false)
  })

  it("It stays busy until its load has fallen far below", () => {
    expect(isBusyBy(true, usages([0.4, 0], [0.4, 0], [0.4, 0]))).toBe(true)
    expect(isBusyBy(true, usages([0.2, 2], [0.2, 2], [0.2, 2]))).toBe(false)
  })
})

describe("What the cluster sees", () => {
  /** Two runners of one host on a storage in memory. */
  const world = Effect.gen(function* () {
    const storage = yield* RunnerStorage.makeMemory
    const rows = new Map<string, RunnerLoad>()
    const healths: Array<string> = []
    const put = (address: string, standby: boolean): Effect.Effect<void> =>
      Effect.sync(() => void rows.set(address, load(address, rows.size, { standby })))
    const loads = RunnerLoads.of({
      join: put,
      rejoin: (address, standby) => (rows.has(address) ? Effect.void : put(address, standby)),
      leave: (address) => Effect.sync(() => void rows.delete(address)),
      busy: (address) => Effect.sync(() => void rows.set(address, { ...rows.get(address)!, busy: true })),
      all: Effect.sync(() => [...rows.values()])
    })
    const shared = RunnerStorage.RunnerStorage.of({
      ...storage,
      setRunnerHealth: (address, healthy) =>
        Effect.andThen(
          Effect.sync(() => healths.push(`${address.port} ${healthy}`)),
          storage.setRunnerHealth(address, healthy)
        )
    })
    const open = Effect.fnUntraced(function* (port: number | null) {
      const address = port === null ? null : RunnerAddress.make("a", port)
      const context = yield* Layer.build(
        layer({ address, isAllowed: true }).pipe(
          Layer.provide([Layer.succeed(RunnerStorage.RunnerStorage, shared), Layer.succeed(RunnerLoads, loads)])
        )
      )
      const runners = Context.get(context, RunnerStorage.RunnerStorage)
      if (port !== null) yield* runners.register(runner("a", port), true)
      return {
        ...runners,
        isStandby: () => Context.get(context, Standing).isStandby(),
        seen: Effect.map(runners.getRunners, (all) => all.map(([{ address }, healthy]) => `${address.port} ${healthy}`))
      }
    })
    return { first: yield* open(1), second: yield* open(2), client: yield* open(null), loads, healths }
  })

  it.effect("All processes see a standby as a runner that is not healthy, and it knows that it is one", () =>
    Effect.gen(function* () {
      const { client, first, loads, second } = yield* world
      for (const { seen } of [first, second, client]) expect(yield* seen).toEqual(["1 true", "2 false"])
      expect([first, second, client].map(({ isStandby }) => isStandby())).toEqual([false, true, false])
      yield* loads.busy("a:1", 1)
      expect(yield* second.seen).toEqual(["1 true", "2 true"])
      expect(second.isStandby()).toBe(false)
    })
  )

  it.effect("When the active runner leaves, the standby is active", () =>
    Effect.gen(function* () {
      const { first, second } = yield* world
      yield* second.seen
      yield* first.unregister(RunnerAddress.make("a", 1))
      expect(yield* second.seen).toEqual(["2 true"])
      expect(second.isStandby()).toBe(false)
    })
  )

  it.effect("A standby that answers stays on standby, and one that does not is recorded as not healthy", () =>
    Effect.gen(function* () {
      const { first, healths } = yield* world
      yield* first.seen
      yield* first.setRunnerHealth(RunnerAddress.make("a", 2), true)
      expect(healths).toEqual([])
      yield* first.setRunnerHealth(RunnerAddress.make("a", 2), false)
      expect(healths).toEqual(["2 false"])
    })
  )
})
