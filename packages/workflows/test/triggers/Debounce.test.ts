import { describe, expect, it } from "vitest"
import { debounce, type DebounceTimes, type KeyedRun, type Window } from "../../src/triggers/Debounce.ts"

let seed = 11
const roll = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below

/** The same, said in another way, for the runs of one key: those that are close form a group, and its last one is carried out. */
const lastOfGroups = (
  runs: ReadonlyArray<KeyedRun>,
  { max_wait_ms, wait_ms }: DebounceTimes
): ReadonlyArray<string> => {
  const groups: Array<Array<KeyedRun>> = []
  for (const run of runs) {
    const group = groups.at(-1)
    const [first, last] = [group?.at(0), group?.at(-1)]
    const isClose =
      first !== undefined && run.createdAt - last!.createdAt < wait_ms && run.createdAt - first.createdAt < max_wait_ms
    if (isClose) group!.push(run)
    else groups.push([run])
  }
  return groups.map((group) => group.at(-1)!.id)
}

describe("Debounce", () => {
  it("The last run of each key is carried out once, however often and however late somebody looks", () => {
    for (let round = 0; round < 1_000; round++) {
      const times = { wait_ms: 10 + roll(20), max_wait_ms: 30 + roll(60) }
      let at = 1_000
      const runs = Array.from({ length: 1 + roll(30) }, (_, i) => {
        at += roll(25)
        return { id: `run_${i}`, key: `key_${roll(3)}`, createdAt: at }
      })
      let stored: ReadonlyMap<string, Window> = new Map()
      const begun: Array<string> = []
      const superseded = new Map<string, string>()
      const take = (batch: ReadonlyArray<KeyedRun>, now: number): void => {
        const answer = debounce(batch, stored, times, now)
        const after = new Map([...stored, ...answer.windows])
        stored = new Map([...after].flatMap(([key, window]) => (window === null ? [] : [[key, window] as const])))
        begun.push(...answer.begin)
        for (const [run, by] of answer.superseded) {
          expect(superseded.has(run)).toBe(false)
          superseded.set(run, by)
        }
      }
      /** Waiting runs that are due are read again, before the new ones: they are due for longer. */
      const dueAt = (now: number): ReadonlyArray<KeyedRun> =>
        [...stored].flatMap(([key, { dueAt, runAt, runId }]) =>
          dueAt <= now ? [{ id: runId, key, createdAt: runAt }] : []
        )
      for (let from = 0; from < runs.length;) {
        const to = Math.min(runs.length, from + 1 + roll(6))
        const [last, next] = [runs[to - 1]!.createdAt, runs[to]?.createdAt ?? at + 500]
        const now = last + roll(next - last + 1)
        take([...dueAt(now), ...runs.slice(from, to)], now)
        from = to
      }
      take(dueAt(at + 10_000), at + 10_000)
      const expected = ["key_0", "key_1", "key_2"].flatMap((key) =>
        lastOfGroups(
          runs.filter((run) => run.key === key),
          times
        )
      )
      expect(begun.toSorted()).toEqual(expected.toSorted())
      expect([...begun, ...superseded.keys()].toSorted()).toEqual(runs.map(({ id }) => id).toSorted())
      expect(stored.size).toBe(0)
    }
  })

  it("A run that is read after a later one of its key is superseded by it", () => {
    const times = { wait_ms: 10, max_wait_ms: 100 }
    const window = { runId: "later", runAt: 1_005, openedAt: 1_000, dueAt: 1_015 }
    const answer = debounce([{ id: "early", key: "a", createdAt: 1_003 }], new Map([["a", window]]), times, 1_006)
    expect([...answer.superseded]).toEqual([["early", "later"]])
    expect(answer.windows.get("a")).toEqual(window)
    expect(answer.begin.size).toBe(0)
  })
})
