import ivm from "isolated-vm"
import type { SyntaxProblem } from "../Call.ts"
import { callLimits } from "../CallLimits.ts"
import { guest } from "./Guest.ts"
import type { Outcome } from "./Guest.ts"
import { makeHost } from "./Host.ts"
import type { Host, Inputs } from "./Host.ts"
import { seal } from "./Seal.ts"
import { sources } from "./Sources.ts"

const filename = "transformation.js"
const preludeSource = `(ask, limits, isTaped, isSealed) =>
  (${String(guest)})(ask, limits, isTaped ? ${String(sources)} : null, isSealed ? ${String(seal)} : null)`
const { logLines, logLineBytes, membersLength, outputBytes } = callLimits
const guestLimits = new ivm.ExternalCopy({ logLines, logLineBytes, membersLength, outputBytes })

/**
 * An isolate's limit counts what it holds beside the team's own: the built-ins, the spare context and the text of the
 * request. A body of 10 MiB passes through it twice, as it comes and as it goes.
 */
const ownMib = 8
/** Where V8 puts the place of a syntax error that crosses over: ` [transformation.js:3:14]`. */
const place = /\s*\[transformation\.js:(\d+):\d+\]$/

const problemOf = (error: unknown): SyntaxProblem => {
  const text = error instanceof Error ? error.message : String(error)
  const line = place.exec(text)?.[1]
  return { message: text.replace(place, "").slice(0, 2_000), line: line === undefined ? null : Number(line) }
}

/** As wide as the other, so that stacks name the same columns. */
const sealedOpening = `(function (console, process, addHandler) {"use strict"; return function () {`
const freshOpening = "(function () {".padEnd(sealedOpening.length)

/** The one way in which code is compiled, so that what passes the check also runs. Throws. */
const compile = (isolate: ivm.Isolate, code: string, kind: Kind): ivm.Script => {
  // A first line that names an interpreter is a comment, and at the very beginning only.
  const text = code.startsWith("#!") ? `//${code.slice(2)}` : code
  // Alone first: code that is a script of its own cannot step out of the function that it is wrapped in, and its lines
  // stay where they are.
  if (kind === "fresh") {
    isolate.compileScriptSync(text, { filename })
    return isolate.compileScriptSync(`${freshOpening}${text}\n})`, { filename })
  }
  // Strict: code that writes to what is frozen then fails, and does not go on as if it had written.
  isolate.compileScriptSync(`"use strict";${text}`, { filename })
  return isolate.compileScriptSync(`${sealedOpening}${text}\n}})`, { filename })
}

/** Compiles and runs nothing. */
export const check = (code: string): SyntaxProblem | null => {
  const isolate = new ivm.Isolate({ memoryLimit: callLimits.memoryMib })
  try {
    compile(isolate, code, "fresh")
    return null
  } catch (error) {
    return problemOf(error)
  } finally {
    if (!isolate.isDisposed) isolate.dispose()
  }
}

/** `fresh`: each call has a context of its own. `sealed`: all have the same, in which none can leave anything (Seal.ts). */
export type Kind = "fresh" | "sealed"

export type Ended =
  | { readonly type: "outcome"; readonly outcome: Outcome }
  | { readonly type: "timeout" }
  | { readonly type: "memory" }
  /** A promise that nobody handled was rejected. */
  | { readonly type: "rejection"; readonly name: string; readonly message: string }

/** How a call ended, with what it logged and what its clock said if that was recorded. */
export interface Run extends ReturnType<Host["end"]> {
  readonly ended: Ended
}

/**
 * An isolate with the code compiled. One call at a time. After anything but an outcome it is not used again: what was stopped may
 * have left work that runs in the next call.
 */
export interface Warm {
  readonly run: (input: string, body: string, wallMs: number, inputs: Inputs) => Run
  /**
   * Makes what the next call needs. To be called between calls, off their path. False: it is gone or, with what has
   * been, larger than it may be, and a new isolate is cheaper than the collection of its garbage.
   */
  readonly renew: (maxBytes: number) => boolean
  /** Bytes that it takes from the system, and those of them in use, garbage included. Nothing once it is gone. */
  readonly heap: () => { readonly total: number; readonly used: number }
  /** Milliseconds of CPU so far; 0 once it is gone. */
  readonly cpuMs: () => number
  readonly dispose: () => void
}

/** A world in a context of its own, and how the code is run in it. */
interface World {
  readonly call: (call: string, input: string, body: string, wallMs: number) => unknown
  readonly release: () => void
}

/** What worlds of a kind are made of. */
interface Material {
  readonly isolate: ivm.Isolate
  readonly script: ivm.Script
  readonly prelude: ivm.Script
  readonly ask: ivm.Callback<Host["ask"]>
}

const makeWorld = ({ ask, isolate, prelude, script }: Material, isTaped: boolean, isSealed: boolean): World => {
  const context = isolate.createContextSync()
  const install = prelude.runSync(context, { reference: true })
  const run = install.applySync(undefined, [ask, guestLimits.copyInto(), isTaped, isSealed], {
    result: { reference: true }
  })
  install.release()
  // Evaluates to a function and runs none of the code: errors of the code never cross over, for reading their
  // members here would run the code's getters without its time limit.
  const main = script.runSync(context, { reference: true })
  return {
    call: (call, input, body, wallMs) =>
      run.applySync(undefined, [main.derefInto(), call, input, body], { timeout: wallMs, result: { copy: true } }),
    release: () => {
      if (isolate.isDisposed) return
      main.release()
      run.release()
      context.release()
    }
  }
}

/** How a call went in a world. */
const runIn = (isolate: ivm.Isolate, used: () => number, call: () => unknown, wallMs: number): Ended => {
  const start = performance.now()
  try {
    const outcome = call()
    return { type: "outcome", outcome: Array.isArray(outcome) ? outcome.map(String) : [] }
  } catch (error) {
    if (isolate.isDisposed) return { type: "memory" }
    if (performance.now() - start >= wallMs) {
      // V8 looks for too much memory when it has collected garbage; one call may take its whole time until then.
      return { type: used() > callLimits.memoryMib * 1_048_576 ? "memory" : "timeout" }
    }
    const { name, message } = error instanceof Error ? error : new Error(String(error))
    return { type: "rejection", name, message }
  }
}

/** An isolate with the code compiled, ready for its first call; or why it does not compile. */
export const warmUp = (code: string, kind: Kind): Warm | SyntaxProblem => {
  const isolate = new ivm.Isolate({ memoryLimit: callLimits.memoryMib + ownMib })
  const host = makeHost()
  let material: Material
  try {
    const script = compile(isolate, code, kind)
    const prelude = isolate.compileScriptSync(preludeSource, { filename: "guest.js" })
    material = { isolate, script, prelude, ask: new ivm.Callback(host.ask) }
  } catch (error) {
    if (!isolate.isDisposed) isolate.dispose()
    return problemOf(error)
  }
  const isSealed = kind === "sealed"
  let ready: { readonly world: World; readonly isTaped: boolean } | undefined
  /** As the last call had it: the next one is of the same kind mostly. */
  let isTaped = isSealed
  const prepare = () => (ready = { world: makeWorld(material, isTaped, isSealed), isTaped })
  prepare()

  const heap = () => {
    if (isolate.isDisposed) return { total: 0, used: 0 }
    const { total_heap_size, used_heap_size, externally_allocated_size } = isolate.getHeapStatisticsSync()
    return { total: total_heap_size + externally_allocated_size, used: used_heap_size + externally_allocated_size }
  }
  const drop = (): void => {
    ready?.world.release()
    ready = undefined
  }

  return {
    run: (input, body, wallMs, inputs) => {
      // A clock is taken over where that is asked for: in a fresh world that nobody compares, nothing is.
      isTaped = isSealed || inputs.clock !== "live"
      if (ready?.isTaped !== isTaped) drop()
      const { world } = ready ?? prepare()
      const call = host.begin(inputs)
      const ended = runIn(
        isolate,
        () => heap().used,
        () => world.call(call, input, body, wallMs),
        wallMs
      )
      if (!isSealed) drop()
      return { ended, ...host.end() }
    },
    renew: (maxBytes) => {
      if (isolate.isDisposed || heap().total > maxBytes) return false
      if (ready === undefined) prepare()
      return true
    },
    heap,
    cpuMs: () => (isolate.isDisposed ? 0 : Number(isolate.cpuTime) / 1e6),
    dispose: () => {
      if (!isolate.isDisposed) isolate.dispose()
    }
  }
}
