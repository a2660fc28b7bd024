import { describe, expect, it } from "@effect/vitest"
import { makeTurns } from "../src/Turns.ts"

const make = (change: Partial<Parameters<typeof makeTurns>[0]> = {}) =>
  makeTurns<string>({ perTeam: 2, forSlow: 1, forUnproven: 3, maxWaiting: 100, maxWaitingPerTeam: 50, ...change })

type Turns = ReturnType<typeof make>

/** Runs all that may run, one after the other, each for `ms`. */
const runAll = (turns: Turns, ms: number): ReadonlyArray<string> => {
  const ran: Array<string> = []
  for (let turn = turns.take(); turn !== undefined; turn = turns.take()) {
    ran.push(turn.item)
    turn.done(ms)
  }
  return ran
}

/** Makes a team known for calls of `ms`. */
const prove = (turns: Turns, teamId: string, ms: number): void => {
  turns.add(teamId, "code", "proof")
  runAll(turns, ms)
}

const takeAll = (turns: Turns) => {
  const taken = []
  for (let turn = turns.take(); turn !== undefined; turn = turns.take()) taken.push(turn)
  return taken
}

describe("Fair order of calls", () => {
  it("Teams are served in turn, however many calls each has waiting", () => {
    const turns = make()
    for (const item of ["a1", "a2", "a3", "a4"]) turns.add("a", "code", item)
    for (const item of ["b1", "b2"]) turns.add("b", "code", item)
    turns.add("c", "code", "c1")
    expect(runAll(turns, 1)).toEqual(["a1", "b1", "c1", "a2", "b2", "a3", "a4"])
    expect(turns.waiting()).toBe(0)
  })

  it("A team gets its share of processes and no more", () => {
    const turns = make({ forUnproven: 9 })
    prove(turns, "a", 1)
    for (const item of ["a1", "a2", "a3"]) turns.add("a", "code", item)
    turns.add("b", "code", "b1")
    expect(takeAll(turns).map(({ item }) => item)).toEqual(["a1", "b1", "a2"])
    expect(turns.waiting()).toBe(1)
  })

  it("Calls of fast code share one turn while they fit into it", () => {
    const turns = make({ perTeam: 9, forUnproven: 9 })
    const all = () => true
    const items = Array.from({ length: 30 }, (_, i) => `a${i}`)
    for (const item of ["u1", "u2"]) turns.add("unknown", "code", item)
    expect(turns.take()?.more(all)).toBe(undefined)
    runAll(turns, 1)
    prove(turns, "a", 1)
    for (const item of items) turns.add("a", "code", item)
    turns.add("a", "other", "o1")
    const turn = turns.take()
    expect([turn?.item, turn?.more(all), turn?.more(() => false), turn?.more(all)]).toEqual([
      "a0",
      "a1",
      undefined,
      "a2"
    ])
    expect([turn?.more(all), turn?.more(all), turn?.more(all)]).toEqual(["a3", "a4", undefined])
    expect(turns.waiting()).toBe(26)
    // The team has had its turn: its other code is next.
    expect(turns.take()?.item).toBe("o1")
    turn?.done(0)
    expect(turns.take()?.item).toBe("a5")
  })

  it("A turn that took the last call of a code leaves nothing behind", () => {
    const turns = make()
    prove(turns, "a", 0)
    for (const item of ["a1", "a2"]) turns.add("a", "code", item)
    const turn = turns.take()
    expect(turn?.more(() => true)).toBe("a2")
    expect(turn?.more(() => true)).toBe(undefined)
    turn?.done(0)
    expect(turns.waiting()).toBe(0)
    expect(turns.take()).toBe(undefined)
    expect(turns.remove("a", "code", "a2")).toBe(false)
  })

  it("A finished call gives its team's share back", () => {
    const turns = make()
    prove(turns, "a", 1)
    for (const item of ["a1", "a2", "a3"]) turns.add("a", "code", item)
    const [first] = takeAll(turns)
    expect(turns.take()).toBe(undefined)
    first?.done(1)
    expect(turns.take()?.item).toBe("a3")
  })

  it("Slow teams share one process and do not delay fast teams", () => {
    const turns = make({ forUnproven: 9 })
    for (const slow of ["s1", "s2", "s3"]) prove(turns, slow, 1_000)
    prove(turns, "q", 1)
    for (const team of ["s1", "s2", "s3", "q"]) turns.add(team, "code", team)
    const taken = takeAll(turns)
    expect(taken.map(({ item }) => item)).toEqual(["s1", "q"])
    taken[0]?.done(1_000)
    expect(takeAll(turns).map(({ item }) => item)).toEqual(["s2"])
  })

  it("One process stays free of unknown teams", () => {
    const turns = make({ forUnproven: 2 })
    prove(turns, "q", 1)
    for (const team of ["n1", "n2", "n3", "q"]) turns.add(team, "code", team)
    expect(takeAll(turns).map(({ item }) => item)).toEqual(["n1", "n2", "q"])
  })

  it("A slow team that has become fast counts as fast", () => {
    const turns = make()
    prove(turns, "s", 1_000)
    for (let i = 0; i < 12; i++) prove(turns, "s", 1)
    turns.add("s", "code", "x")
    turns.add("s", "code", "y")
    expect(takeAll(turns).map(({ item }) => item)).toEqual(["x", "y"])
  })

  it("The number of waiting calls is limited in total and for each team", () => {
    const turns = make({ maxWaiting: 4, maxWaitingPerTeam: 3 })
    expect(["1", "2", "3", "4"].map((item) => turns.add("a", "code", item))).toEqual([true, true, true, false])
    expect(["1", "2"].map((item) => turns.add("b", "code", item))).toEqual([true, false])
    expect(turns.add("a", "code", "again", true)).toBe(true)
    expect(runAll(turns, 1)[0]).toBe("again")
  })

  it("A waiting call can be removed", () => {
    const turns = make()
    turns.add("a", "code", "a1")
    turns.add("a", "code", "a2")
    expect(turns.remove("a", "code", "a1")).toBe(true)
    expect(turns.remove("a", "code", "a1")).toBe(false)
    expect(turns.remove("b", "code", "a1")).toBe(false)
    expect(runAll(turns, 1)).toEqual(["a2"])
    turns.add("a", "code", "a3")
    expect(turns.drain()).toEqual(["a3"])
    expect(turns.take()).toBe(undefined)
    expect(turns.waiting()).toBe(0)
  })

  it("The number of remembered teams is limited, and calls still run in order", () => {
    const turns = make({ maxWaiting: 1e6 })
    for (let i = 0; i < 12_000; i++) prove(turns, `t${i}`, 1)
    turns.add("t0", "code", "x")
    turns.add("t11999", "code", "y")
    expect(runAll(turns, 1)).toEqual(["x", "y"])
  })

  it("The codes of a team are served in turn as well", () => {
    const turns = make()
    for (const item of ["a1", "a2", "a3"]) turns.add("team", "a", item)
    turns.add("team", "b", "b1")
    turns.add("other", "c", "c1")
    expect(runAll(turns, 1)).toEqual(["a1", "c1", "b1", "a2", "a3"])
  })

  it("Fast code of a team runs beside its slow and its new code", () => {
    const turns = make({ forUnproven: 9, forSlow: 9 })
    for (const [code, ms] of [
      ["slow", 1_000],
      ["quick", 1]
    ] as const) {
      turns.add("team", code, "proof")
      runAll(turns, ms)
    }
    for (const code of ["slow", "new", "quick"]) for (const n of [1, 2, 3]) turns.add("team", code, `${code}${n}`)
    const [first, second, ...more] = takeAll(turns)
    expect([first?.item, second?.item, more]).toEqual(["slow1", "quick1", []])
    second?.done(1)
    expect(takeAll(turns).map(({ item }) => item)).toEqual(["quick2"])
  })
})
