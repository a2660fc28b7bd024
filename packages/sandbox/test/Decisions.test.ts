import { describe, expect, it } from "@effect/vitest"
import type { ExecutionError } from "../src/Call.ts"
import { makeDecisions } from "../src/Decisions.ts"
import type { Ran, Verdict } from "../src/Messages.ts"

const error = (code: ExecutionError["code"]): ExecutionError => ({ code, name: "Error", message: "x", line: null })
const ran = (change: Partial<Ran>): Ran => ({
  error: null,
  request: null,
  isUnchanged: true,
  bodyUnchanged: true,
  logs: [],
  warnings: [],
  startedAt: 0,
  durationMs: 1,
  cpuMs: 1,
  memoryBytes: 0,
  isSealed: false,
  verdict: null,
  ...change
})
const judged = (verdict: Verdict): Ran => ran({ verdict })
const equal = judged({ kind: "equal" })
const noisy = judged({ kind: "noisy" })
const differs = judged({ kind: "differs", reason: "it differs" })
const times = <A>(n: number, make: () => A): ReadonlyArray<A> => Array.from({ length: n }, make)

describe("Choice of a code's isolation", () => {
  it("Code is compared until it is equal often enough, and then rarely", () => {
    let now = 0
    const decisions = makeDecisions(3, () => now)
    for (const verdict of [equal, equal, ran({}), equal]) {
      expect(decisions.path("a")).toBe("compared")
      expect(decisions.learn("a", verdict)).toBe(null)
    }
    const compared = (calls: number, ms: number): number =>
      times(calls, () => {
        now += ms
        return decisions.path("a")
      }).filter((path) => path === "compared").length
    expect(compared(1_000, 10), "one in 200").toBe(5)
    expect(compared(10_000, 1), "one a second").toBe(10)
    expect(decisions.path("b")).toBe("compared")
  })

  it("Code is pinned to fresh isolation when it differs once, and the reason is kept", () => {
    const decisions = makeDecisions(0)
    expect(decisions.path("a")).toBe("sealed")
    expect(decisions.learn("a", differs)).toBe("it differs")
    expect(times(300, () => decisions.path("a"))).toEqual(times(300, () => "fresh"))
    expect(decisions.learn("a", ran({}))).toBe("it differs")
    expect(decisions.learn("a", judged({ kind: "differs", reason: "otherwise" }))).toBe("it differs")
    expect(decisions.learn("b", equal)).toBe(null)
  })

  it("Code that gives another result each time is pinned to fresh isolation in the end", () => {
    const decisions = makeDecisions(16)
    const reasons = times(16, () => decisions.learn("a", noisy))
    expect(reasons.slice(0, 15)).toEqual(times(15, () => null))
    expect(reasons[15]).toContain("something else each time")
    expect(decisions.path("a")).toBe("fresh")
  })

  it("Failed sealed code runs again in comparison, and stopped code is judged anew", () => {
    const decisions = makeDecisions(1)
    decisions.learn("a", equal)
    expect(decisions.isDoubtful("a", ran({ isSealed: true }))).toBe(false)
    expect(decisions.isDoubtful("a", ran({ error: error("RUNTIME_ERROR") }))).toBe(false)
    expect(decisions.isDoubtful("a", ran({ error: error("RUNTIME_ERROR"), isSealed: true }))).toBe(true)
    expect(decisions.path("a")).toBe("sealed")
    expect(decisions.isDoubtful("a", ran({ error: error("TIMEOUT"), isSealed: true }))).toBe(true)
    expect(decisions.path("a")).toBe("compared")
  })

  it("Code is forgotten after very many other codes were called", () => {
    const decisions = makeDecisions(0)
    decisions.learn("a", differs)
    for (let i = 0; i < 9_999; i++) decisions.path(`b${i}`)
    expect(decisions.path("a")).toBe("fresh")
    for (let i = 0; i < 10_000; i++) decisions.path(`c${i}`)
    expect(decisions.path("a")).toBe("sealed")
  })
})
