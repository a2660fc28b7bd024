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
 * An isolate's limit also covers memory that is not the team's: the built-ins, the spare context and the text of the request. A body
 * of 10 MiB is in it twice, as input and as output.
 */
const ownMib = 8
/** Where V8 puts the position of a syntax error that crosses the boundary: ` [transformation.js:3:14]`. */
const place = /\s*\[transformation\.js:(\d+):\d+\]$/

const problemOf = (error: unknown): SyntaxProblem => {
  const text = error instanceof Error ? error.message : String(error)
  const line = place.exec(text)?.[1]
  return { message: text.replace(place, "").slice(0, 2_000), line: line === undefined ? null : Number(line) }
}

/** As wide as the other opening, so that stacks show the same columns. */
const sealedOpening = `(function (console, process, addHandler) {"use strict"; return function () {`
const freshOpening = "(function () {".padEnd(sealedOpening.length)

/** The only way to compile code, so that code which passes the check also runs. Throws. */
const compile = (isolate: ivm.Isolate, code: string, kind: Kind): ivm.Script => {
  // A first line that names an interpreter (`#!`) is a comment only at the very beginning.
  const text = code.startsWith("#!") ? `//${code.slice(2)}` : code
  // Compiled alone first: code that is a valid script by itself cannot break out of the function that wraps it, and its line
  // numbers stay the same.
  if (kind === "fresh") {
    isolate.compileScriptSync(text, { filename })
    return isolate.compileScriptSync(`${freshOpening}${text}\n})`, { filename })
  }
  // Strict mode: a write to a frozen object fails instead of being ignored.
  isolate.compileScriptSync(`"use strict";${text}`, { filename })
  return isolate.compileScriptSync(`${sealedOpening}${text}\n}})`, { filename })
}

/** Compiles the code without running it. */
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

/** `fresh`: each call has its own context. `sealed`: all calls share one, in which none can leave anything (Seal.ts). */
export type Kind = "fresh" | "sealed"

export type Ended =
  | { readonly type: "outcome"; readonly outcome: Outcome }
  | { readonly type: "timeout" }
  | { readonly type: "memory" }
  /** A promise was rejected and nothing handled it. */
  | { readonly type: "rejection"; readonly name: string; readonly message: string }

/** How a call ended, with its log, and its clock readings if they were recorded. */
export interface Run extends ReturnType<Host["end"]> {
  readonly ended: Ended
}

/**
 * An isolate with the compiled code. One call at a time. After any end but an outcome it is not used again: stopped work could
 * continue in the next call.
 */
export interface Warm {
  readonly run: (input: string, body: string, wallMs: number, inputs: Inputs) => Run
  /**
   * Prepares the next call. Call it between calls, so that no call waits for it. Returns false if the isolate is gone, or is too
   * large with its garbage: a new isolate is then cheaper than collecting it.
   */
  readonly renew: (maxBytes: number) => boolean
  /** Bytes taken from the system, and how many of them are in use, including garbage. Zero once the isolate is gone. */
  readonly heap: () => { readonly total: number; readonly used: number }
  /** Milliseconds of CPU so far; 0 once it is gone. */
  readonly cpuMs: () => number
  readonly dispose: () => void
}

/** A context, and the function that runs the code in it. */
interface World {
  readonly call: (call: string, input: string, body: string, wallMs: number) => unknown
  readonly release: () => void
}

/** The compiled parts from which contexts of one kind are built. */
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
  // Evaluates to a function without running the code. So no error of the code crosses the boundary here: reading its
  // members would run the code's getters without a time limit.
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

/** Runs one call in a context and returns how it ended. */
const runIn = (isolate: ivm.Isolate, used: () => number, call: () => unknown, wallMs: number): Ended => {
  const start = performance.now()
  try {
    const outcome = call()
    return { type: "outcome", outcome: Array.isArray(outcome) ? outcome.map(String) : [] }
  } catch (error) {
    if (isolate.isDisposed) return { type: "memory" }
    if (performance.now() - start >= wallMs) {
      // V8 checks the memory limit only after a garbage collection; one call may use up its whole time before that.
      return { type: used() > callLimits.memoryMib * 1_048_576 ? "memory" : "timeout" }
    }
    const { name, message } = error instanceof Error ? error : new Error(String(error))
    return { type: "rejection", name, message }
  }
}

/** Creates an isolate with the compiled code, ready for its first call; or returns why the code does not compile. */
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
  /** Same as in the last call, because the next one is usually of the same kind. */
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
      // The clock is replaced only on request: a fresh context that is not compared keeps its own.
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
