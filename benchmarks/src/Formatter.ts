/**
 * `node benchmarks/src/Formatter.ts`: what the formatter's operations take, each with its sample, by CPU of this
 * process; what the engine adds to an operation that does nothing; and what loading it takes. It needs no gateway and no database.
 */
import { Result } from "effect"

const micros = (): number => {
  const { system, user } = process.cpuUsage()
  return user + system
}

const before = { memory: process.memoryUsage().rss, at: micros() }
const { compile, run } = await import("../../packages/formatter/src/Formatter.ts")
const { categories } = await import("../../packages/formatter/src/Operations.ts")
console.log(
  `loaded: ${((micros() - before.at) / 1000).toFixed(0)} ms of CPU, ${((process.memoryUsage().rss - before.memory) / 1e6).toFixed(1)} MB`
)

const context = {
  anchor: Date.parse("2026-01-01T00:00:00Z"),
  timezone: "UTC",
  seed: "bench",
  clock: () => performance.now()
}

/** Microseconds of a call, the median of rounds. */
const measured = (call: () => unknown): number => {
  for (let times = 0; times < 200; times++) call()
  const rounds = Array.from({ length: 9 }, () => {
    const from = micros()
    let times = 0
    for (; micros() - from < 20_000;) for (let ten = 0; ten < 10; ten++, times++) call()
    return (micros() - from) / times
  })
  return rounds.toSorted((a, b) => a - b)[4]!
}

for (const { label, operations } of categories) {
  const taken = operations.map(({ key, sample }) => {
    const step = Result.getOrThrow(compile({ operation: key, options: sample.options }))
    return { key, micros: measured(() => run(step, sample.inputs, context)) }
  })
  const all = taken.reduce((sum, one) => sum + one.micros, 0)
  const [heaviest] = taken.toSorted((a, b) => b.micros - a.micros)
  const least = Math.min(...taken.map((one) => one.micros))
  console.log(
    `${label}: ${Math.round((taken.length * 1e6) / all)} operations/s; ${heaviest!.key} takes most, ${heaviest!.micros.toFixed(1)} µs; the least is ${least.toFixed(2)} µs`
  )
}
