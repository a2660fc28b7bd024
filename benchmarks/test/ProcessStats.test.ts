import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { busySeconds, parseStat, parseStatus, processStats } from "../src/ProcessStats.ts"

it("a stat line is read after its command name, whatever that holds", () => {
  const line = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 1 0 12345 1000 200"
  assert.deepStrictEqual(parseStat(line), { pid: 42, parent: 7, ticks: 110 })
})

it("a status field is read in bytes", () => {
  const text = "Name:\tx\nVmHWM:\t    2048 kB\nRssAnon:\t     100 kB\n"
  assert.strictEqual(parseStatus(text, "VmHWM"), 2048 * 1024)
  assert.strictEqual(parseStatus(text, "RssShmem"), 0)
})

it("busy time leaves idle and waiting out", () => {
  assert.strictEqual(busySeconds("cpu  100 200 300 9999 9999 40 60 100 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"), 8)
})

describe.runIf(process.platform === "linux")("this process", () => {
  it("counts the time of a child that has ended", () => {
    const before = processStats(process.pid)
    spawnSync(process.execPath, ["-e", "while (process.cpuUsage().user < 200_000);"])
    const after = processStats(process.pid)
    assert.isAtLeast(after.cpuSeconds - before.cpuSeconds, 0.1)
    assert.isAtLeast(after.peakBytes, 10_000_000)
    assert.isAtLeast(after.residentBytes, 10_000_000)
  })
})
