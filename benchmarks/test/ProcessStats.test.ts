import { describe, expect, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { busySeconds, parseStat, parseStatus, processStats, proportionalMemory } from "../src/ProcessStats.ts"

it("Process stat line is parsed correctly when the command name contains parentheses", () => {
  const line = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 1 0 12345 1000 200"
  expect(parseStat(line)).toStrictEqual({ pid: 42, parent: 7, ticks: 110, waitedTicks: 77 })
})

it("Memory field of a process status is read in bytes", () => {
  const text = "Name:\tx\nVmHWM:\t    2048 kB\nRssAnon:\t     100 kB\n"
  expect(parseStatus(text, "VmHWM")).toBe(2048 * 1024)
  expect(parseStatus(text, "RssShmem")).toBe(0)
})

it("Busy processor time excludes idle time and waiting", () => {
  expect(busySeconds("cpu  100 200 300 9999 9999 40 60 100 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")).toBe(8)
})

describe.runIf(process.platform === "linux")("Process statistics", () => {
  it("Process statistics include the processor time of children that have ended", () => {
    const before = processStats(process.pid)
    spawnSync(process.execPath, ["-e", "while (process.cpuUsage().user < 200_000);"])
    const after = processStats(process.pid)
    expect(after.cpuSeconds - before.cpuSeconds).toBeGreaterThanOrEqual(0.1)
    expect(after.childSeconds - before.childSeconds).toBeGreaterThanOrEqual(0.1)
    expect(after.peakBytes).toBeGreaterThanOrEqual(10_000_000)
    expect(after.residentBytes).toBeGreaterThanOrEqual(10_000_000)
    expect(proportionalMemory([process.pid]).root).toBeGreaterThanOrEqual(10_000_000)
  })
})
