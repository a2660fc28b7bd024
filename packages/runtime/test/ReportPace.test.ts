import { afterEach, beforeEach, describe, expect, it, vi } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { inReportSteps, requestArrived, restingAsLong } from "@tidegate/runtime/ReportPace"
import { mapped } from "@tidegate/runtime/Resumable"

/** The time (ms) of the clock that the tests move, and the pauses that were made. */
let now = 0
let pauses: Array<number> = []

beforeEach(() => {
  // Later than what the test before has left.
  now += 10_000
  pauses = []
  vi.spyOn(performance, "now").mockImplementation(() => now)
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((
    go: (...of: Array<unknown>) => void,
    ms: number,
    ...of: []
  ) => {
    pauses.push(ms)
    return Object.assign(
      setImmediate(() => {
        now += ms
        go(...of)
      }),
      { unref: () => undefined }
    )
  }) as unknown as typeof setTimeout)
})
afterEach(() => void vi.restoreAllMocks())

/** Work in parts, each of that many milliseconds. */
function* working(name: string, parts: number, ms: number, done: Array<string>) {
  for (let n = 0; n < parts; n++) {
    now += ms
    done.push(name)
    yield
  }
  return name
}

describe("Pace of reports", () => {
  it("Short work of a report is done at once", () => {
    const work = mapped([1, 2, 3], (n) => 2 * n)
    expect(Effect.runSync(inReportSteps(work))).toEqual([2, 4, 6])
    expect(pauses).toEqual([])
  })

  it("Without requests, the steps of long reports take turns without a pause", async () => {
    const done: Array<string> = []
    const reports = ["a", "b"].map((name) => inReportSteps(working(name, 3, 5, done)))
    expect(await Effect.runPromise(Effect.all(reports, { concurrency: "unbounded" }))).toEqual(["a", "b"])
    expect(done).toEqual(["a", "b", "a", "b", "a", "b"])
    expect(pauses).toEqual([])
  })

  it("While requests arrive, all reports together pause for as long as a step took, and at most for 8 ms", async () => {
    const done: Array<string> = []
    requestArrived()
    now += 10
    const reports = [inReportSteps(working("a", 3, 5, done)), inReportSteps(working("b", 2, 40, done))]
    await Effect.runPromise(Effect.all(reports, { concurrency: "unbounded" }))
    expect(done).toEqual(["a", "b", "a", "b", "a"])
    // The first pause is that of a step whose time is not measured. No pause follows 100 ms after the request.
    expect(pauses).toEqual([0.5, 5])
    requestArrived()
    await Effect.runPromise(inReportSteps(working("a", 2, 40, done)))
    expect(pauses.slice(2)).toEqual([0.5, 8])
  })

  it("A step waits until a request that has just arrived may be answered, but not for a series of requests without end", async () => {
    const done: Array<string> = []
    const timeouts = vi.mocked(setTimeout).getMockImplementation()!
    // Another request arrives in each pause.
    vi.mocked(setTimeout).mockImplementation((...of: Parameters<typeof setTimeout>) => {
      queueMicrotask(() => setImmediate(requestArrived))
      return timeouts(...of)
    })
    requestArrived()
    await Effect.runPromise(inReportSteps(working("a", 2, 2, done)))
    expect(done).toEqual(["a", "a"])
    // Each of two pauses is as long as it may be.
    expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBe(2 * 8)
    expect(pauses.length).toBeGreaterThan(2)
  })

  it("A report whose work throws fails with that defect, and others continue", async () => {
    const done: Array<string> = []
    function* failing(): Generator<void, void, void> {
      now += 5
      yield
      throw new Error("it cannot be shown")
    }
    const [failed, other] = await Effect.runPromise(
      Effect.all([Effect.exit(inReportSteps(failing())), inReportSteps(working("b", 3, 5, done))], {
        concurrency: "unbounded"
      })
    )
    expect(Exit.hasDies(failed)).toBe(true)
    expect(other).toBe("b")
  })

  it.effect("An interrupted report takes no further step", () =>
    Effect.gen(function* () {
      const done: Array<string> = []
      const fiber = yield* Effect.forkChild(inReportSteps(working("a", 3, 5, done)), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      yield* inReportSteps(working("b", 3, 5, done))
      expect(done).toEqual(["a", "b", "b", "b"])
    })
  )

  it("A permit rests for as long as it was used while requests arrive, up to a bound, and otherwise not at all", async () => {
    const use = async (ms: number) => {
      const end = restingAsLong(1_000)()
      now += ms
      await new Promise<void>(end)
    }
    await use(50)
    expect(pauses).toEqual([])
    for (const ms of [50, 7_000]) {
      const end = restingAsLong(1_000)()
      now += ms
      requestArrived()
      await new Promise<void>(end)
    }
    expect(pauses).toEqual([50, 1_000])
  })
})
