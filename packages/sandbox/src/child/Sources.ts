/**
 * Replaces the clock and the randomness of a context, so that a call can run a second time with the same inputs. **Its source text
 * is evaluated inside the isolate**, as the guest's is.
 *
 * The host selects the clock of a call when it is first read: `live`, `recorded`, or the tape of an earlier call. A tape lists
 * the readings and how often each was read: `ms,times,ms,times,…`. `Math.random` is derived from the seed of the call, because V8's own
 * generator continues from one call to the next. Not replaced: the current time that `Intl` uses by default, and `Temporal.Now`.
 */
export const sources = (
  ask: (...texts: [operation: string, ...ReadonlyArray<string>]) => string
): { readonly begin: () => void; readonly end: () => void } => {
  "use strict"
  const { apply, construct, defineProperty } = Reflect
  const { create, assign, freeze } = Object
  const EngineDate = Date
  const engineNow = Date.now
  /* oxlint-disable typescript/unbound-method -- they are applied */
  const { toString: dateText } = EngineDate.prototype
  const { split, slice } = String.prototype
  const { join } = Array.prototype
  /* oxlint-enable typescript/unbound-method */
  const integer = parseInt

  /** Alternates milliseconds and how often they were read; null if the clock is neither recorded nor replayed. */
  let tape: Array<number> | null
  let clock: "unread" | "live" | "recorded" | "replayed" = "unread"
  let at = 0

  const start = (): void => {
    const answer = ask("clock")
    at = 0
    if (answer === "live" || answer === "recorded") {
      clock = answer
      tape = answer === "live" ? null : []
      return
    }
    clock = "replayed"
    tape = []
    const parts: Array<string> = apply(split, answer, [","])
    for (let i = 0; i < parts.length; i++) defineProperty(tape, i, { value: integer(parts[i]!, 10), writable: true })
  }

  const now = (): number => {
    if (clock === "unread") start()
    if (tape === null || clock === "live") return engineNow()
    if (clock === "replayed") {
      if (at < tape.length) {
        const ms = tape[at]!
        if (--tape[at + 1]! <= 0) at += 2
        return ms
      }
      // This run reads the clock more often than the first one, so the two already differ.
      return engineNow()
    }
    const ms = engineNow()
    const { length } = tape
    if (length > 0 && tape[length - 2] === ms) tape[length - 1]!++
    else {
      defineProperty(tape, length, { value: ms, writable: true })
      defineProperty(tape, length + 1, { value: 1, writable: true })
    }
    return ms
  }

  const own = <T extends object>(members: T): T => assign(create(null), members)
  const ClockDate = new Proxy(
    EngineDate,
    freeze(
      own<ProxyHandler<DateConstructor>>({
        apply: () => apply(dateText, new EngineDate(now()), []),
        construct: (target, given, newTarget) =>
          construct(target, given.length === 0 ? [now()] : given, newTarget) as object
      })
    )
  )
  const expose = (holder: object, name: string, value: unknown): void => {
    defineProperty(holder, name, { value, writable: true, enumerable: false, configurable: true })
  }
  expose(EngineDate, "now", { now: () => now() }.now)
  expose(EngineDate.prototype, "constructor", ClockDate)
  expose(globalThis, "Date", ClockDate)

  // sfc32: small, fast, and as good as V8's own generator.
  let isSeeded = false
  let a = 0
  let b = 0
  let c = 0
  let counter = 0
  const next = (): number => {
    const t = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return t >>> 0
  }
  const random = (): number => {
    if (!isSeeded) {
      const seed = ask("seed")
      a = integer(apply(slice, seed, [0, 8]), 16) | 0
      b = integer(apply(slice, seed, [8, 16]), 16) | 0
      c = integer(apply(slice, seed, [16, 24]), 16) | 0
      counter = 1
      isSeeded = true
      for (let i = 0; i < 12; i++) next()
    }
    return ((next() >>> 5) * 67_108_864 + (next() >>> 6)) / 9_007_199_254_740_992
  }
  expose(Math, "random", { random: () => random() }.random)

  return {
    begin: () => {
      clock = "unread"
      tape = null
      isSeeded = false
    },
    end: () => {
      if (clock === "recorded") ask("tape", apply(join, tape, [","]))
    }
  }
}
