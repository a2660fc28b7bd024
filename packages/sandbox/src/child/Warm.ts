import ivm from "isolated-vm"
import type { SyntaxProblem } from "../Call.ts"
import { callLimits } from "../CallLimits.ts"
import { guest } from "./Guest.ts"
import type { Outcome } from "./Guest.ts"
import { makeHost } from "./Host.ts"
import type { Host } from "./Host.ts"

const filename = "transformation.js"
const guestSource = `(${String(guest)})`
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

/** The one way in which code is compiled, so that what passes the check also runs. Throws. */
const compile = (isolate: ivm.Isolate, code: string): ivm.Script => {
  // A first line that names an interpreter is a comment, and at the very beginning only.
  const text = code.startsWith("#!") ? `//${code.slice(2)}` : code
  // Alone first: code that is a script of its own cannot step out of the function that it is wrapped in, and its lines
  // stay where they are.
  isolate.compileScriptSync(text, { filename })
  return isolate.compileScriptSync(`(function () {${text}\n})`, { filename })
}

/** Compiles and runs nothing. */
export const check = (code: string): SyntaxProblem | null => {
  const isolate = new ivm.Isolate({ memoryLimit: callLimits.memoryMib })
  try {
    compile(isolate, code)
    return null
  } catch (error) {
    return problemOf(error)
  } finally {
    if (!isolate.isDisposed) isolate.dispose()
  }
}

export type Ended =
  | { readonly type: "outcome"; readonly outcome: Outcome }
  | { readonly type: "timeout" }
  | { readonly type: "memory" }
  /** A promise that nobody handled was rejected. */
  | { readonly type: "rejection"; readonly name: string; readonly message: string }

export interface Warm {
  readonly run: (input: string, body: string, wallMs: number) => Ended
  readonly host: Host
  /**
   * Makes the next context. To be called between calls, off their path. False: it is gone or, with the contexts that have
   * been, larger than it may be, and a new isolate is cheaper than the collection of its garbage.
   */
  readonly renew: (maxBytes: number) => boolean
  /** Bytes that it takes from the system, and those of them in use, garbage included. Nothing once it is gone. */
  readonly heap: () => { readonly total: number; readonly used: number }
  /** Milliseconds of CPU so far; 0 once it is gone. */
  readonly cpuMs: () => number
  readonly dispose: () => void
}

interface Ready {
  readonly context: ivm.Context
  readonly run: ivm.Reference
}

/** An isolate with the code compiled and a fresh context waiting. One call at a time, and each gets a context of its own. */
export const warmUp = (code: string): Warm | SyntaxProblem => {
  const isolate = new ivm.Isolate({ memoryLimit: callLimits.memoryMib + ownMib })
  const host = makeHost()
  const ask = new ivm.Callback(host.ask)
  let script: ivm.Script
  let prelude: ivm.Script
  try {
    script = compile(isolate, code)
    prelude = isolate.compileScriptSync(guestSource, { filename: "guest.js" })
  } catch (error) {
    if (!isolate.isDisposed) isolate.dispose()
    return problemOf(error)
  }

  const prepare = (): Ready => {
    const context = isolate.createContextSync()
    const install = prelude.runSync(context, { reference: true })
    const run = install.applySync(undefined, [ask, guestLimits.copyInto()], { result: { reference: true } })
    install.release()
    return { context, run }
  }
  let ready: Ready | undefined = prepare()

  const heap = () => {
    if (isolate.isDisposed) return { total: 0, used: 0 }
    const { total_heap_size, used_heap_size, externally_allocated_size } = isolate.getHeapStatisticsSync()
    return { total: total_heap_size + externally_allocated_size, used: used_heap_size + externally_allocated_size }
  }

  return {
    host,
    run: (input, body, wallMs) => {
      const { context, run } = (ready ??= prepare())
      const start = performance.now()
      try {
        // Evaluates to a function and runs none of the code: errors of the code never cross over, for reading their
        // members here would run the code's getters without its time limit.
        const main = script.runSync(context, { reference: true })
        const outcome: unknown = run.applySync(undefined, [main.derefInto(), input, body], {
          timeout: wallMs,
          result: { copy: true }
        })
        main.release()
        return { type: "outcome", outcome: Array.isArray(outcome) ? outcome.map(String) : [] }
      } catch (error) {
        if (isolate.isDisposed) return { type: "memory" }
        if (performance.now() - start >= wallMs) {
          // V8 looks for too much memory when it has collected garbage; one call may take its whole time until then.
          const isFull = heap().used > callLimits.memoryMib * 1_048_576
          return { type: isFull ? "memory" : "timeout" }
        }
        const { name, message } = error instanceof Error ? error : new Error(String(error))
        return { type: "rejection", name, message }
      } finally {
        ready = undefined
        if (!isolate.isDisposed) {
          run.release()
          context.release()
        }
      }
    },
    renew: (maxBytes) => {
      if (isolate.isDisposed || heap().total > maxBytes) return false
      ready ??= prepare()
      return true
    },
    heap,
    cpuMs: () => (isolate.isDisposed ? 0 : Number(isolate.cpuTime) / 1e6),
    dispose: () => {
      if (!isolate.isDisposed) isolate.dispose()
    }
  }
}
