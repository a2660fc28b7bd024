import { Effect, Layer } from "effect"
import { type Call, type Execution, Sandbox, SandboxUnavailable } from "@tidegate/sandbox/Sandbox"

/**
 * A sandbox that runs nothing: code beginning with `syntax` does not compile, `throw` fails, `busy` finds no room; any
 * other gives the request back with what it was given, in headers and on its console.
 */
const run = (call: Call): Effect.Effect<Execution, SandboxUnavailable> => {
  const times = {
    startedAt: 1_700_000_000_000,
    finishedAt: 1_700_000_000_002,
    durationMs: 1.5,
    memoryBytes: 1024,
    written: null,
    pinned: null
  }
  if (call.isLoadedOnly === true && call.code.startsWith("syntax")) {
    const error = { code: "SYNTAX_ERROR" as const, name: "SyntaxError", message: "Unexpected token", line: 2 }
    return Effect.succeed({ ...times, request: null, error, logs: [], logLevel: "fatal", warnings: [] })
  }
  if (call.code.startsWith("busy")) return Effect.fail(new SandboxUnavailable({ message: "no room" }))
  if (call.code.startsWith("throw")) {
    const error = { code: "RUNTIME_ERROR" as const, name: "TypeError", message: "no such thing", line: 3 }
    return Effect.succeed({ ...times, request: null, error, logs: [], logLevel: "fatal", warnings: [] })
  }
  const headers = { ...call.request.headers, "x-env": JSON.stringify(call.env), "x-hash": call.codeHash }
  return Effect.succeed({
    ...times,
    request: { ...call.request, headers },
    error: null,
    logs: [
      { type: "log", message: JSON.stringify(call.context) },
      { type: "warn", message: call.teamId }
    ],
    logLevel: "warn",
    warnings: ["a warning"]
  })
}

export const layer = Layer.succeed(Sandbox, {
  run,
  start: (call, done, unavailable) => {
    Effect.runSync(Effect.match(run(call), { onSuccess: done, onFailure: ({ message }) => unavailable(message) }))
    return () => {}
  },
  pids: () => [],
  check: (code) =>
    code.startsWith("busy")
      ? Effect.fail(new SandboxUnavailable({ message: "no room" }))
      : Effect.succeed(code.startsWith("syntax") ? { line: 2, message: "Unexpected token" } : null)
})
