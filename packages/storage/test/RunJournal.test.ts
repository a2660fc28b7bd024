import { Context, Effect, Layer, Scope } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { newId, prefixes } from "@tidegate/model/Ids"
import { JournalSql } from "../src/Database.ts"
import { type Moved, RunJournal, type RunTransition } from "../src/workflows/RunJournal.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] }))
afterEach(() => void vi.useRealTimers())

/** So many milliseconds, and the turn after them. */
const pass = async (ms: number): Promise<void> => {
  await vi.advanceTimersByTimeAsync(ms)
  await vi.advanceTimersByTimeAsync(0)
}

const at = Date.parse("2026-03-01T10:20:30.400Z")

const transition = (): RunTransition => ({
  id: newId(prefixes.workflowRun, at),
  teamId: "tm",
  part: 1,
  partId: newId(prefixes.workflowPart, at),
  at,
  status: "succeeded",
  outcome: "completed",
  attempts: 1,
  succeeded: 1,
  failed: 0,
  skipped: 0,
  running: 0,
  kept: 0,
  error: null,
  startedAt: at,
  finishedAt: at,
  dueAt: null,
  moves: false,
  carried: null,
  steps: "{}",
  resources: null,
  outputs: null,
  previews: null
})

/** A journal whose database has none of the runs, with the number of its commits and the results of the transitions. */
const journalOf = () => {
  const seen = { commits: 0, results: [] as Array<Moved> }
  const sql = {
    unsafe: (statement: string) =>
      Effect.sync(() => {
        if (statement.includes("update workflow_runs")) seen.commits++
        return []
      })
  }
  const built = Layer.buildWithScope(RunJournal.layer, Scope.makeUnsafe())
  const journal = Context.get(Effect.runSync(Effect.provideService(built, JournalSql, sql as never)), RunJournal)
  const move = (count: number): void => {
    for (let i = 0; i < count; i++) {
      Effect.runFork(Effect.map(journal.move(transition()), (moved) => void seen.results.push(moved)))
    }
  }
  return { move, seen }
}

describe("Journal of runs", () => {
  it("A transition is committed at once while commits are small", async () => {
    const { move, seen } = journalOf()
    for (const commits of [1, 2, 3]) {
      move(7)
      await pass(0)
      expect(seen).toEqual({ commits, results: Array(commits * 7).fill("superseded") })
    }
  })

  it("After a commit of several transitions the next ones gather for a few milliseconds, and then a single one waits no more", async () => {
    const { move, seen } = journalOf()
    move(8)
    await pass(0)
    expect(seen.commits).toBe(1)
    move(1)
    await pass(2)
    move(1)
    await pass(0)
    expect(seen.commits).toBe(1)
    await pass(2)
    expect(seen).toEqual({ commits: 2, results: Array(10).fill("superseded") })
    move(1)
    await pass(0)
    expect(seen.commits).toBe(3)
  })
})
