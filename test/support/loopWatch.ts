import { rmSync } from "node:fs"
import { createServer } from "node:http"

/**
 * Loaded into a gateway's process before its program (`--import`). Reports over a socket how long its event loop was blocked.
 * There are two figures, because other processes may keep the machine busy: by the clock, and by the processor time of the event
 * loop's thread, which other processes do not increase.
 */
const path = process.env["LOOP_WATCH"]
const everyMs = 2

/** The longest times (ms) between two checks since the last report. */
let held = { clockMs: 0, processorMs: 0 }

const processorMs = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}

if (path !== undefined) {
  let clock = performance.now()
  let processor = processorMs()
  setInterval(() => {
    const now = performance.now()
    const used = processorMs()
    held = {
      clockMs: Math.max(held.clockMs, now - clock - everyMs),
      processorMs: Math.max(held.processorMs, used - processor - everyMs)
    }
    clock = now
    processor = used
  }, everyMs).unref()
  // The suites of a worker use one path, one after the other, and a process that has ended leaves its socket there.
  rmSync(path, { force: true })
  createServer((_request, response) => {
    response.end(JSON.stringify(held))
    held = { clockMs: 0, processorMs: 0 }
  })
    .listen(path)
    .unref()
}
