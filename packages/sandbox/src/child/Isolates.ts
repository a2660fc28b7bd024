import type { SyntaxProblem } from "../Call.ts"
import type { Inputs } from "./Host.ts"
import { type Kind, type Run, type Warm, warmUp } from "./Warm.ts"

/** A call that was run, and what it used. */
export interface Measured extends Run {
  readonly startedAt: number
  readonly durationMs: number
  readonly cpuMs: number
  readonly memoryBytes: number
}

interface Slot {
  isolate: Warm
  usedAt: number
  /** After its last call: what the next one begins with. */
  heap: ReturnType<Warm["heap"]>
  cpuMs: number
}

interface Code {
  readonly text: string
  /** What keeps it from being compiled in a sealed realm, once that is known. */
  unsealable: SyntaxProblem | null
}

/** Heap of one; less when there are many, so that more of them stay warm. A fresh one has 1.2 MiB, each call leaves 0.2. */
const isolateBytes = { fresh: 12 * 1_048_576, sealed: 24 * 1_048_576 }
/** What a sealed one takes at least. */
const sealedBytes = 3 * 1_048_576
const idleMs = 120_000
/** A sealed realm takes five times as long to set up as a fresh one: those that are called as often as this keep theirs. */
const oftenMs = 10_000

/** The isolates that are kept warm, by code and kind; `warmBytes`: heap of all of them, beyond which those that waited longest for a call go. */
export const makeIsolates = (warmBytes: number) => {
  const codes = new Map<string, Code>()
  /** In the order of their last use. */
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

  /** Keeps it and gets it ready for its next call, if that is worth it, and lets those go that had to wait longest. */
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

  /** Whether there is room for one more without taking that of others which are called as often. */
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
    /** Whether a call of this code may take a sealed realm: it has one, or there is room for it. */
    isSealing: (key: string): boolean => slots.has(nameOf("sealed", key)) || isRoom(Date.now()),
    /** Runs one call of known code. What is returned instead is why it does not compile. */
    run: (
      kind: Kind,
      key: string,
      input: string,
      body: string,
      wallMs: number,
      inputs: Inputs
    ): Measured | SyntaxProblem => {
      const code = codes.get(key)
      // The pool knows what it has sent: a child without the code is broken, and says so by ending.
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
      // An isolate that was stopped may have work left over: it is not used again.
      if (run.ended.type !== "outcome") {
        isolate.dispose()
        slots.delete(name)
      } else keep(name, kind, code, Object.assign(slot, { usedAt: startedAt, heap, cpuMs }))
      return measured
    },
    /** Lets those go that nobody has called for long. The fresh one of code that runs sealed goes soon: it is for comparing. */
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
