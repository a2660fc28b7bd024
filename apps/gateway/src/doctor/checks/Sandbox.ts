import { Effect } from "effect"
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import { fine, type MachineCheck, notice, wrong } from "../Check.ts"

const code = 'addHandler("transform", (request) => ({ ...request, path: `/${request.body.question * 2}` }))'

const call = {
  teamId: "tm_doctor",
  code,
  codeHash: "doctor",
  isolation: "fresh",
  env: {},
  request: { method: "POST", path: "/", query: "", headers: {}, body: { question: 21 }, parsed_query: {} },
  context: {
    connection_id: null,
    source_id: null,
    destination_id: null,
    request_id: null,
    team_id: null,
    timestamp: null
  }
} as const

/** Runs a transformation as the gateway does: in a child process without rights. */
export const sandbox: MachineCheck = {
  of: "machine",
  name: "sandbox",
  about: "whether transformations run",
  look: Effect.gen(function* () {
    const { run } = yield* Sandbox
    const { error, request } = yield* run(call)
    if (request?.path !== "/42") {
      return wrong(
        `a transformation gives a wrong result${error === null ? "" : ` (${error.code}: ${error.message})`}`,
        "install the dependencies again for this platform: isolated-vm has a binary for each"
      )
    }
    if (process.platform !== "linux") {
      return notice(
        "transformations run; the memory of their processes is watched on Linux only",
        "run production on Linux"
      )
    }
    return fine("transformations run")
  }).pipe(
    Effect.provide(Sandbox.layer({ children: 1, spares: 0, maxWaitMs: 8_000 })),
    Effect.catchTag("SandboxUnavailable", ({ message }) =>
      Effect.succeed(
        wrong(
          `transformations cannot run: ${message}`,
          "let this user start processes (ulimit -u), with memory for them; a read-only or noexec disk below node_modules also prevents it"
        )
      )
    )
  )
}
