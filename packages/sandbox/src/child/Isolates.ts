import type { SyntaxProblem } from "../Call.ts"
import type { Inputs } from "./Host.ts"
import { type Kind, type Run, type Warm, warmUp } from "./Warm.ts"

/** A finished call with its resource use. */
export interface Measured extends Run {
  readonly startedAt: number
  readonly durationMs: number
  readonly cpuMs: number
  readonly memoryBytes: number
}

interface Slot {
  isolate: Warm
  usedAt: number
  /** Heap after the last call, which is the baseline of the next one. */
  heap: ReturnType<Warm["heap"]>
  cpuMs: number
}

interface Code {
  readonly text: string
  /** Why the code does not compile in a sealed context, once that is known. */
  unsealable: SyntaxProblem | null
}

/** Heap of one isolate; less if there are many, so that more of them stay warm. A fresh one starts with 1.2 MiB, and each call adds 0.2. */
const isolateBytes = { fresh: 12 * 1_048_576, sealed: 24 * 1_048_576 }
/** Minimum heap of a sealed isolate. */
const sealedBytes = 3 * 1_048_576
const idleMs = 120_000
/** A sealed context takes five times as long to set up as a fresh one: code called within this interval keeps its own. */
const oftenMs = 10_000

/** The warm isolates, by code and kind. `warmBytes`: heap of all of them; above it, those that were not called for longest are dropped. */
export const makeIsolates = (warmBytes: number) => {
  const codes = new Map<string, Code>()
  /** The least recently used first. */
  const slots = new Map<string, Slot>()

  const nameOf = (kind: Kind, key: string): string => `${kind} ${key}`
  const drop = (name: string): void => {
    slots.get(name)?.isolate.dispose()
    slots.delete(name)
  }
  const slotOf = (isolate: Warm): Slot => ({
    isolate,
    usedAt: Date.now(),
    heap: isolate.heap(),
    cpuMs: isolate.cpuMs()
  })

  /** Keeps an isolate and prepares it for its next call, if that is worth it. Drops those that were not called for longest. */
  const keep = (name: string, kind: Kind, code: Code, slot: Slot): void => {
    slots.delete(name)
    const share = warmBytes / (slots.size + 1)
    const maxBytes = Math.min(isolateBytes[kind], kind === "sealed" ? Math.max(share, 2 * sealedBytes) : share)
    if (kind === "fresh" ? !slot.isolate.renew(maxBytes) : slot.heap.total > maxBytes) {
      slot.isolate.dispose()
      if (kind === "sealed") return
      const fresh = warmUp(code.text, kind)
      if (!("run" in fresh)) return
      slot.isolate = fresh
    }
    if (kind === "fresh") Object.assign(slot, { heap: slot.isolate.heap(), cpuMs: slot.isolate.cpuMs() })
    slots.set(name, slot)
    let total = 0
    for (const { heap } of slots.values()) total += heap.total
    for (const [oldest, { heap }] of slots) {
      if (total <= warmBytes || oldest === name) break
      total -= heap.total
      drop(oldest)
    }
  }

  /** Whether one more fits without replacing those that are called as often. */
  const isRoom = (now: number): boolean => {
    let total = sealedBytes
    for (const { heap, usedAt } of slots.values()) if (now - usedAt < oftenMs) total += heap.total
    return total <= warmBytes
  }

  return {
    know: (key: string, text: string): void => {
      codes.set(key, { text, unsealable: null })
    },
    forget: (key: string): void => {
      codes.delete(key)
      for (const kind of ["fresh", "sealed"] as const) drop(nameOf(kind, key))
    },
    codeOf: (key: string): string | undefined => codes.get(key)?.text,
    /** Whether a call of this code may use a sealed context: it has one, or one more fits. */
    isSealing: (key: string): boolean => slots.has(nameOf("sealed", key)) || isRoom(Date.now()),
    /** Runs one call of known code. Returns a syntax problem if the code does not compile. */
    run: (
      kind: Kind,
      key: string,
      input: string,
      body: string,
      wallMs: number,
      inputs: Inputs
    ): Measured | SyntaxProblem => {
      const code = codes.get(key)
      // The pool tracks which code it has sent. A child without it is broken, and reports that by ending.
      if (code === undefined) throw new Error("no code")
      if (kind === "sealed" && code.unsealable !== null) return code.unsealable
      const name = nameOf(kind, key)
      let slot = slots.get(name)
      if (slot === undefined) {
        const isolate = warmUp(code.text, kind)
        if (!("run" in isolate)) {
          if (kind === "sealed") code.unsealable = isolate
          return isolate
        }
        slot = slotOf(isolate)
      }
      const { isolate } = slot
      const startedAt = Date.now()
      const start = performance.now()
      const run = isolate.run(input, body, wallMs, inputs)
      const durationMs = performance.now() - start
      const heap = isolate.heap()
      const cpuMs = isolate.cpuMs()
      const measured: Measured = {
        ...run,
        startedAt,
        durationMs,
        cpuMs: Math.max(0, cpuMs - slot.cpuMs),
        memoryBytes: Math.max(0, heap.used - slot.heap.used)
      }
      // A stopped isolate may have work left over, so it is not used again.
      if (run.ended.type !== "outcome") {
        isolate.dispose()
        slots.delete(name)
      } else keep(name, kind, code, Object.assign(slot, { usedAt: startedAt, heap, cpuMs }))
      return measured
    },
    /** Drops isolates without recent calls. The fresh isolate of code that runs sealed is dropped early: it only serves comparisons. */
    sweep: (): void => {
      const now = Date.now()
      for (const [name, { usedAt }] of slots) {
        const isSpare = name.startsWith("fresh ") && slots.has(name.replace("fresh", "sealed"))
        if (now - usedAt > (isSpare ? oftenMs : idleMs)) drop(name)
      }
    }
  }
}

export type Isolates = ReturnType<typeof makeIsolates>
