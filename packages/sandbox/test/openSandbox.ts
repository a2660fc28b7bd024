import { Effect, Layer, ManagedRuntime } from "effect"
import type { Call, Execution, SyntaxProblem } from "../src/Call.ts"
import { Sandbox } from "../src/Sandbox.ts"
import type { SandboxOptions } from "../src/Sandbox.ts"

export interface OpenSandbox extends AsyncDisposable {
  readonly run: (call: Call, signal?: AbortSignal) => Promise<Execution>
  readonly check: (code: string) => Promise<SyntaxProblem | null>
  readonly pids: () => ReadonlyArray<number>
}

/** Beside other work, children that give way get next to nothing of the machine. Most tests are about something else. */
const unhurried: SandboxOptions = { niceness: 0, maxWaitMs: 600_000 }

/** A sandbox with real children; disposing ends them. */
export const openSandbox = async (options: SandboxOptions = {}, usual = unhurried): Promise<OpenSandbox> => {
  const runtime = ManagedRuntime.make(Layer.fresh(Sandbox.layer({ ...usual, ...options })))
  const sandbox = await runtime.runPromise(Effect.map(Sandbox, (sandbox) => sandbox))
  return {
    run: (call, signal) => runtime.runPromise(sandbox.run(call), signal === undefined ? {} : { signal }),
    check: (code) => runtime.runPromise(sandbox.check(code)),
    pids: sandbox.pids,
    [Symbol.asyncDispose]: () => runtime.dispose()
  }
}

/** A call of `code` by team `tm_a`; its hash is the code, which is as good. */
export const callOf = (
  code: string,
  change: {
    readonly request?: Partial<Call["request"]>
    readonly teamId?: string
    readonly env?: Call["env"]
    readonly isolation?: Call["isolation"]
    readonly isLoadedOnly?: boolean
  } = {}
): Call => ({
  teamId: change.teamId ?? "tm_a",
  code,
  codeHash: code,
  isolation: change.isolation ?? "sealed",
  ...(change.isLoadedOnly === true ? { isLoadedOnly: true } : {}),
  env: change.env ?? {},
  request: {
    headers: { "content-type": "application/json", "x-many": ["a", "b"] },
    body: { a: 1 },
    query: "q=1&r=2",
    parsed_query: { q: "1", r: "2" },
    path: "/orders",
    method: "POST",
    ...change.request
  },
  context: {
    connection_id: "web_1",
    source_id: "src_1",
    destination_id: "des_1",
    request_id: "req_1",
    team_id: "tm_a",
    timestamp: "2026-01-01T00:00:00.000Z"
  }
})

/** Code whose handler has this body. */
export const handler = (body: string): string => `addHandler("transform", (request, context) => {${body}})`
