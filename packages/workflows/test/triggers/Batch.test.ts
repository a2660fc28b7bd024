import { describe, expect, it } from "vitest"
import { batch, type BatchableRun, batchBytes, type BatchLimits, type OpenBatch } from "../../src/triggers/Batch.ts"

let seed = 17
const roll = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below

/** The same, said in another way, for the runs of one key: the batches, each from its first run on. */
const batchesOf = (runs: ReadonlyArray<BatchableRun>, { max_count, window_ms }: BatchLimits) => {
  const batches: Array<Array<BatchableRun>> = []
  for (const run of runs) {
    const last = batches.at(-1) ?? []
    const bytes = last.reduce((sum, one) => sum + one.bytes, run.bytes)
    const fits = last.length > 0 && last.length < max_count && bytes <= batchBytes
    if (fits && run.createdAt - last[0]!.createdAt < window_ms) last.push(run)
    else batches.push([run])
  }
  return batches.map((runs) => runs.map(({ id }) => id))
}

const run = (id: string, createdAt: number, more: Partial<BatchableRun> = {}): BatchableRun => ({
  id,
  key: "a",
  createdAt,
  bytes: 10,
  isFirst: false,
  ...more
})

describe("Batch", () => {
  it("Each run is in one batch, however often and however late somebody looks, and whoever died meanwhile", () => {
    for (let round = 0; round < 300; round++) {
      const limits = { max_count: 2 + roll(5), window_ms: 20 + roll(60) }
      let at = 1_000
      const runs = Array.from({ length: 1 + roll(30) }, (_, i) => {
        at += roll(25)
        const bytes = roll(8) === 0 ? batchBytes / 2 + roll(batchBytes) : roll(1_000)
        return run(`run_${i}`, at, { key: `key_${roll(3)}`, bytes })
      })
      let stored: ReadonlyMap<string, OpenBatch> = new Map()
      const firstOf = new Map<string, string>()
      const begun = new Set<string>()
      const take = (asking: ReadonlyArray<BatchableRun>, now: number): void => {
        const answer = batch(asking, stored, limits, now)
        const after = new Map([...stored, ...answer.windows])
        stored = new Map([...after].flatMap(([key, open]) => (open === null ? [] : [[key, open] as const])))
        for (const id of answer.begin) begun.add(id)
        for (const [id, first] of answer.added) {
          expect(firstOf.has(id)).toBe(false)
          firstOf.set(id, first)
        }
      }
      /** First runs that are due, and now and then one that has begun, as if the process had died before it began. */
      const dueAt = (now: number) => {
        const due = new Set([...stored.values()].flatMap(({ dueAt, runId }) => (dueAt <= now ? [runId] : [])))
        for (const id of begun) if (roll(4) === 0) due.add(id)
        return runs.filter(({ id }) => due.has(id)).map((one) => Object.assign({}, one, { isFirst: true }))
      }
      for (let from = 0; from < runs.length;) {
        const to = Math.min(runs.length, from + 1 + roll(6))
        const [last, next] = [runs[to - 1]!.createdAt, runs[to]?.createdAt ?? at + 500]
        const now = last + roll(next - last + 1)
        take([...dueAt(now), ...runs.slice(from, to)], now)
        from = to
      }
      take(dueAt(at + 10_000), at + 10_000)
      const expected = ["key_0", "key_1", "key_2"].flatMap((key) =>
        batchesOf(
          runs.filter((run) => run.key === key),
          limits
        )
      )
      const made = Map.groupBy(
        runs.map(({ id }) => id),
        (id) => firstOf.get(id)
      )
      const texts = (batches: Iterable<ReadonlyArray<string>>) => Array.from(batches, (ids) => ids.join()).toSorted()
      expect(texts(made.values())).toEqual(texts(expected))
      expect([...begun].toSorted()).toEqual(expected.map(([first]) => first!).toSorted())
      expect(stored.size).toBe(0)
    }
  })

  it("A run without a key is alone, a large one too, and one that is read late is in the open batch", () => {
    const limits = { max_count: 10, window_ms: 100 }
    const first = batch(
      [
        run("alone", 1_000, { key: null }),
        run("open", 1_005),
        run("large", 1_006, { key: "b", bytes: batchBytes + 1 })
      ],
      new Map(),
      limits,
      1_006
    )
    expect([...first.begin]).toEqual(["alone", "large"])
    const stored = new Map([["a", first.windows.get("a")!]])
    const late = batch([run("late", 1_003)], stored, limits, 1_007)
    expect([...late.added]).toEqual([["late", "open"]])
    expect(late.windows.get("a")).toMatchObject({ runId: "open", dueAt: 1_105, members: 2, bytes: 20 })
    // A further one does not fit: the batch closes, and it opens the next.
    const over = batch([run("over", 1_050, { bytes: batchBytes - 15 })], late.windows as never, limits, 1_050)
    expect([...over.begin]).toEqual(["open"])
    expect(over.windows.get("a")).toMatchObject({ runId: "over", members: 1 })
  })
})
