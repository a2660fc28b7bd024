import { describe, expect, it } from "@effect/vitest"
import { afterEach, beforeEach, vi } from "vitest"
import { makeGuard } from "../src/Guard.ts"
import { makeOrigins } from "../src/Origins.ts"

const open = (maxIdleOrigins: number, connectionsPerOrigin = 2) =>
  makeOrigins({
    guard: makeGuard({ allow: [] }),
    connectionsPerOrigin,
    connectionsPerPool: 2,
    maxIdleOrigins,
    maxConnections: 100
  })

describe("Open origins", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }))
  afterEach(() => void vi.useRealTimers())

  it("Unused origin is closed after the time that an idle connection can stay open", async () => {
    const origins = open(100)
    const used = origins.acquire("http://used.example")
    const idle = origins.acquire("http://idle.example")
    origins.release(idle)
    vi.advanceTimersByTime(29_000)
    expect(origins.size()).toBe(2)
    vi.advanceTimersByTime(3_000)
    expect(origins.size()).toBe(1)
    expect(idle.pool.destroyed).toBe(true)
    expect(origins.acquire("http://used.example")).toBe(used)
    await origins.destroy()
    expect(used.pool.destroyed).toBe(true)
  })

  it("Origin becomes idle only after its last exchange", async () => {
    const origins = open(100)
    const origin = origins.acquire("http://busy.example")
    origins.acquire("http://busy.example")
    origins.release(origin)
    vi.advanceTimersByTime(60_000)
    expect(origins.size()).toBe(1)
    origins.release(origin)
    vi.advanceTimersByTime(60_000)
    expect(origins.size()).toBe(0)
    await origins.destroy()
  })

  it("Idle origins are closed for new ones, the longest idle first", async () => {
    const origins = open(2)
    for (const name of ["a", "b", "c"]) origins.release(origins.acquire(`http://${name}.example`))
    origins.release(origins.acquire("http://a.example"))
    const opened = ["a", "b", "c"].map((name) => origins.acquire(`http://${name}.example`))
    expect(origins.size()).toBe(3)
    expect(opened.map((origin) => origin.inFlight)).toEqual([1, 1, 1])
    for (const origin of opened) origins.release(origin)
    const next = origins.acquire("http://d.example")
    expect(opened.map((origin) => origin.pool.destroyed)).toEqual([true, false, false])
    expect(next.inFlight).toBe(1)
    await origins.destroy()
  })

  it("Origin has pools of limited size and uses its first connections first", async () => {
    const origins = open(2, 5)
    const acquire = () => origins.acquire("http://slow.example")
    const held = Array.from({ length: 5 }, acquire)
    const pools = [...new Set(held)]
    expect(pools.map(({ most }) => most)).toEqual([2, 2, 1])
    expect(pools.map(({ inFlight }) => inFlight)).toEqual([2, 2, 1])
    // Those that wait spread over what there is.
    const waiting = Array.from({ length: 3 }, acquire)
    expect(new Set([...held, ...waiting]).size).toBe(3)
    expect(pools.map(({ inFlight }) => inFlight)).toEqual([3, 3, 2])
    for (const one of [...held, ...waiting]) origins.release(one)
    expect(acquire()).toBe(pools[0])
    await origins.destroy()
    expect(pools.map(({ pool }) => pool.destroyed)).toEqual([true, true, true])
  })
})
