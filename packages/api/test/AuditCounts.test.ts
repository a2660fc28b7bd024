import { describe, expect, it } from "vitest"
import { Random } from "../../entities/test/Random.ts"
import { AuditCounts, type Decision } from "../src/AuditCounts.ts"

const decision = (route: string, more: Partial<Decision> = {}): Decision => ({
  key: { id: "pak_1", team: "tm_1" },
  route,
  permission: "read",
  decision: "allowed",
  reason: null,
  isUse: true,
  ...more
})

const start = Date.UTC(2026, 0, 1)

describe("Audit counts of a process", () => {
  it("Audit decisions of one kind are counted per five minutes, with their first and last time", () => {
    const counts = new AuditCounts(10)
    for (const at of [0, 7_000, 299_999, 300_000]) counts.note(decision("GET:/v1/sources"), start + at)
    expect(counts.due()).toMatchObject([
      { count: 3, beganAt: start, firstAt: start, lastAt: start + 299_999, key_id: "pak_1", team_id: "tm_1" },
      { count: 1, beganAt: start + 300_000, firstAt: start + 300_000 }
    ])
  })

  it("Audit decisions differ by key, route, permission, decision and reason", () => {
    const counts = new AuditCounts(10)
    for (const one of [
      decision("a"),
      decision("b"),
      decision("a", { key: { id: "pak_2", team: "tm_1" } }),
      decision("a", { permission: "edit" }),
      decision("a", { decision: "denied", reason: "scope_missing" }),
      decision("a", { decision: "denied", reason: "grant_missing" })
    ]) {
      counts.note(one, start)
    }
    expect(counts.size).toBe(6)
  })

  it("Audit counts add up exactly after repeated writes, failed writes and dropped counts", () => {
    const random = new Random(3)
    const counts = new AuditCounts(8)
    const stored = new Map<string, number>()
    const noted = new Map<string, number>()
    let now = start
    const note = () => {
      const route = `r${Math.floor(random.next() * 6)}`
      const before = counts.lost
      counts.note(decision(route), now)
      if (counts.lost === before) noted.set(route, (noted.get(route) ?? 0) + 1)
    }
    // The statement: a count replaces what stands under its id.
    const write = (some: ReturnType<AuditCounts["due"]>) => {
      for (const { count, entry, route_key } of some) stored.set(`${route_key} ${entry}`, count)
    }
    for (let step = 0; step < 5_000; step++) {
      now += Math.floor(random.next() * 2_000)
      note()
      if (random.next() < 0.3) {
        const some = counts.due().slice(0, 1 + Math.floor(random.next() * 4))
        // Committed, though nobody hears of it.
        if (random.next() < 0.8) write(some)
        note()
        if (random.next() < 0.5) {
          write(some)
          counts.written(some, now)
        }
      }
    }
    expect(noted.size).toBe(6)
    write(counts.due())
    const sums = new Map<string, number>()
    for (const [kind, count] of stored) {
      const route = kind.split(" ")[0]!
      sums.set(route, (sums.get(route) ?? 0) + count)
    }
    expect(Object.fromEntries(sums)).toEqual(Object.fromEntries(noted))
  })

  it("Audit counts are limited in number, and counts over the limit are dropped and reported", () => {
    const counts = new AuditCounts(3)
    for (let i = 0; i < 10; i++) counts.note(decision(`r${i}`), start)
    expect([counts.size, counts.lost]).toEqual([3, 7])
    const some = counts.due()
    counts.written(some, start)
    expect(counts.size).toBeLessThan(3)
    counts.note(decision("later"), start)
    expect(counts.due()).toMatchObject([{ route_key: "later" }])
  })

  it("Audit counts are removed after their window has ended and they are written", () => {
    const counts = new AuditCounts(100)
    counts.note(decision("a"), start)
    const some = counts.due()
    counts.note(decision("a"), start + 1)
    counts.written(some, start + 300_000)
    expect(counts.due()).toMatchObject([{ count: 2, entry: some[0]!.entry }])
    counts.written(counts.due(), start + 300_000)
    expect(counts.size).toBe(0)
  })
})
