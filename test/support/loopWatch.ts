import { createServer } from "node:http"

/**
 * Loaded into a gateway's process before its program (`--import`): tells over a socket how long its event loop was held. Two
 * figures, because a machine may be busy with others: by the clock, and by the processor time that the loop's own thread
 * has used meanwhile, which others do not lengthen.
 */
const path = process.env["LOOP_WATCH"]
const everyMs = 2

/** The longest time between two looks, in ms, since it was asked last. */
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
  createServer((_request, response) => {
    response.end(JSON.stringify(held))
    held = { clockMs: 0, processorMs: 0 }
  })
    .listen(path)
    .unref()
}
