import { Effect } from "effect"
import { get } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Held {
  readonly clockMs: number
  readonly processorMs: number
}

const socket = join(tmpdir(), `loop-${process.pid}-${Math.random().toString(36).slice(2)}.sock`)

/** Environment variables of a gateway whose event loop is watched (`loopWatch.ts`). */
export const watchedLoop: Readonly<Record<string, string>> = {
  NODE_OPTIONS: `--import=${new URL("loopWatch.ts", import.meta.url).href}`,
  LOOP_WATCH: socket
}

/** The processor time (ms) that an idle machine with two cores needs to parse the yardstick. */
const yardstickMs = 12

/**
 * How many times slower this machine is at the moment, at most three: the bounds of processor time in tests are for an idle
 * machine. Processor time does not grow while a thread waits for the processor, but it does grow when other work uses the same
 * caches and hardware threads.
 */
export const timesSlower = (): number => {
  const yardstick = `[${"[0],".repeat(49_000)}"${"x".repeat(8e6)}"]`
  const took = Math.min(
    ...[1, 2, 3].map(() => {
      const before = process.threadCpuUsage()
      JSON.parse(yardstick)
      const { system, user } = process.threadCpuUsage(before)
      return (system + user) / 1_000
    })
  )
  return Math.min(3, Math.max(1, took / yardstickMs))
}

/** The longest time for which that gateway's event loop was blocked since the last call. */
export const heldMs = (): Promise<Held> =>
  new Promise((resolve, reject) => {
    get({ socketPath: socket, path: "/" }, (response) => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => (text += chunk))
      response.on("end", () => resolve(JSON.parse(text) as Held))
    }).once("error", reject)
  })

/**
 * The minimum of up to four measurements (ms). It stops at the first one below the bound. Code that blocks the event loop blocks it each time;
 * garbage collection, compilation and other work on the machine come and go.
 */
export const leastMs = Effect.fnUntraced(function* <E, R>(
  boundMs: () => number,
  measure: Effect.Effect<number, E, R>
): Effect.fn.Return<number, E, R> {
  let least = Infinity
  for (let tries = 0; tries < 4 && least >= boundMs(); tries++) least = Math.min(least, yield* measure)
  return least
})

/** The same of a measurement that is a promise. */
export const leastMsOf = (boundMs: () => number, measure: () => Promise<number>): Promise<number> =>
  Effect.runPromise(leastMs(boundMs, Effect.promise(measure)))

/**
 * Watches the event loop of this process until the returned function is called, which tells the longest that its thread has worked on
 * end (ms). Other work of the machine does not lengthen it.
 */
export const watchLoop = (): (() => number) => {
  const used = (): number => {
    const { system, user } = process.threadCpuUsage()
    return (system + user) / 1_000
  }
  let longest = 0
  let before = used()
  const look = (): void => {
    const now = used()
    longest = Math.max(longest, now - before)
    before = now
  }
  const timer = setInterval(look, 1)
  return () => {
    clearInterval(timer)
    // What the thread works on now may have held the timer up.
    look()
    return longest
  }
}
