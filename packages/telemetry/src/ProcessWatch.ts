import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect, Layer } from "effect"
import { metrics } from "./Metrics.ts"

/** Resolution of the timer (ms): it detects longer delays. Its own waiting time is subtracted. */
const resolutionMs = 20
const windowMs = 10_000

const seconds = (nanos: number): number => Math.max(0, nanos / 1e9 - resolutionMs / 1_000)

/** Measures the process itself: the delay of its event loop, and its use of the machine. */
export const layer: Layer.Layer<never> = Layer.effectDiscard(
  Effect.acquireRelease(
    Effect.sync(() => {
      metrics.cpuSeconds.readBy(() => {
        const { system, user } = process.cpuUsage()
        return (system + user) / 1e6
      })
      metrics.residentBytes.readBy(() => process.memoryUsage.rss())
      metrics.heapBytes.readBy(() => process.memoryUsage().heapUsed)
      metrics.externalBytes.readBy(() => process.memoryUsage().external)
      metrics.startSeconds.set(Math.round((Date.now() - performance.now()) / 1_000))
      const delay = monitorEventLoopDelay({ resolution: resolutionMs })
      delay.enable()
      const timer = setInterval(() => {
        if (delay.count === 0) return
        metrics.loopDelay.at("p50").set(seconds(delay.percentile(50)))
        metrics.loopDelay.at("p99").set(seconds(delay.percentile(99)))
        metrics.loopDelay.at("max").set(seconds(delay.max))
        delay.reset()
      }, windowMs).unref()
      return { delay, timer }
    }),
    ({ delay, timer }) =>
      Effect.sync(() => {
        clearInterval(timer)
        delay.disable()
      })
  )
)
