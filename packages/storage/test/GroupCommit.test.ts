import { Effect, Latch } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { GroupCommit, type GroupCommitOptions } from "../src/journal/GroupCommit.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] }))
afterEach(() => void vi.useRealTimers())

/** So many milliseconds, and the turn after them. */
const pass = async (ms: number): Promise<void> => {
  await vi.advanceTimersByTimeAsync(ms)
  await vi.advanceTimersByTimeAsync(0)
}

/** Commits that end when the test ends them. */
const held = (options: Partial<GroupCommitOptions<string>> = {}) => {
  const batches: Array<ReadonlyArray<string>> = []
  const ends: Array<Latch.Latch> = []
  const group = new GroupCommit<string>({
    commit: (items) => {
      const end = Latch.makeUnsafe()
      batches.push(items)
      ends.push(end)
      return end.await
    },
    concurrency: 2,
    maxRows: 100,
    maxBytes: 100,
    sizeOf: () => 1,
    committed: () => {},
    run: (commit) => void Effect.runFork(commit),
    parallelFrom: 6,
    ...options
  })
  /** The one that began last ends, so long (ms) after it began. */
  const end = async (after: number): Promise<void> => {
    await pass(after)
    ends.at(-1)!.openUnsafe()
    await pass(0)
  }
  const add = async (...items: ReadonlyArray<string>): Promise<void> => {
    for (const item of items) group.add(item)
    await pass(0)
  }
  return { batches, add, end, group }
}

/** One that has taken a millisecond, and then some that took ten: the database is busy. */
const busy = async () => {
  const world = held()
  for (const ms of [1, 10, 10, 10, 10]) {
    await world.add("1", "2", "3", "4")
    await world.end(ms)
  }
  world.batches.length = 0
  return world
}

describe("Group commit", () => {
  it("A group commit starts at once, even beside another one, while commits are fast", async () => {
    const { add, batches, end } = held()
    await add("a")
    await end(1)
    await add("b")
    await add("c")
    expect(batches).toEqual([["a"], ["b"], ["c"]])
  })

  it("A group commit gathers for as long as a commit takes once commits are slow", async () => {
    const { add, batches } = await busy()
    await add("a")
    await pass(9)
    await add("b")
    expect(batches).toEqual([])
    await pass(2)
    expect(batches).toEqual([["a", "b"]])
  })

  it("Slow commits gather during a running commit, and again from its end", async () => {
    const { add, batches, end } = await busy()
    await add("a", "b", "c", "d")
    await pass(11)
    await add("e")
    await end(10)
    await add("f")
    expect(batches).toEqual([["a", "b", "c", "d"]])
    await pass(11)
    expect(batches).toEqual([
      ["a", "b", "c", "d"],
      ["e", "f"]
    ])
  })

  it("A group commit does not wait longer once enough items are gathered", async () => {
    const { add, batches } = await busy()
    await add("a")
    await add("b", "c", "d", "e", "f")
    expect(batches).toEqual([["a", "b", "c", "d", "e", "f"]])
    await add("g", "h", "i", "j", "k")
    expect(batches.length).toBe(1)
    await add("l")
    expect(batches[1]).toEqual(["g", "h", "i", "j", "k", "l"])
  })

  it("A group commit does not wait if few items arrive, however slow commits are", async () => {
    const { add, batches, end } = await busy()
    await add("a")
    await pass(11)
    await end(10)
    await add("b")
    await add("c")
    expect(batches).toEqual([["a"], ["b"], ["c"]])
  })

  it("A group commit starts at once again when commits have become fast", async () => {
    const { add, batches, end, group } = await busy()
    await add("a", "b", "c", "d")
    await pass(11)
    await end(1)
    await add("e")
    expect(batches).toEqual([["a", "b", "c", "d"], ["e"]])
    await end(1)
    expect([group.pendingItems, group.pendingBytes, group.commits, group.items]).toEqual([0, 0, 7, 25])
  })

  it("Items that nobody waits for gather for a fixed time, and an awaited one ends it at once", async () => {
    const { batches, end, group } = held({ patienceMs: 20 })
    const add = async (item: string, isAwaited: boolean) => {
      group.add(item, isAwaited)
      await pass(0)
    }
    await add("a", false)
    await pass(15)
    await add("b", false)
    expect(batches).toEqual([])
    await pass(6)
    expect(batches).toEqual([["a", "b"]])
    await end(1)
    await add("c", false)
    await add("d", true)
    expect(batches[1]).toEqual(["c", "d"])
    await add("e", false)
    await end(1)
    expect(batches.length).toBe(2)
    await pass(21)
    expect(batches[2]).toEqual(["e"])
  })

  it("Items that nobody waits for do not gather longer once enough of them wait", async () => {
    const { add, batches, group } = held({ patienceMs: 20 })
    for (const item of ["a", "b", "c", "d", "e"]) group.add(item, false)
    await pass(0)
    expect(batches).toEqual([])
    group.add("f", false)
    await pass(0)
    expect(batches).toEqual([["a", "b", "c", "d", "e", "f"]])
    await add("awaited")
    expect(batches[1]).toEqual(["awaited"])
  })

  it("Items of a quiet key are in the next commit, however many of another key wait", async () => {
    const { add, batches, end, group } = held({ keyOf: (item) => item.slice(0, 1), maxRows: 3, concurrency: 1 })
    await add("a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7")
    await add("b0")
    expect(group.loadOf("a")).toEqual({ items: 8, bytes: 8 })
    expect(group.loadOf("b")).toEqual({ items: 1, bytes: 1 })
    await end(1)
    expect(batches).toEqual([
      ["a0", "a1", "a2"],
      ["a3", "b0", "a4"]
    ])
    await end(1)
    expect(group.loadOf("b")).toEqual({ items: 0, bytes: 0 })
    await end(1)
    expect(group.pendingItems).toBe(0)
  })
})
