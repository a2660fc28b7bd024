import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Client } from "@tidegate/client/source"
import { CliFailure, failureOf, usage } from "../Failure.ts"
import { access, call, find, idsOf, type Schemas } from "../Gateway.ts"
import { keepLooking, type Print } from "../Looker.ts"
import { colored, Json, jsonLine, plain, say } from "../Output.ts"
import { untilStopped } from "../Stopping.ts"
import { type Difference, differenceOf } from "../workflows/Difference.ts"
import { resourceOfStep, type StepResource } from "../workflows/StepResources.ts"
import { isFile, type Members, readJsonc, workflowsIn, type Written } from "../workflows/Files.ts"

/* Workflows that are kept in files: pushes them, tests them, and follows their runs. */

/** What a workflow refers to by id may be written by name: a file then serves several gateways. */
const named = {
  source: { path: "/sources", prefix: "src_" },
  destination: { path: "/destinations", prefix: "des_" },
  transformation: { path: "/transformations", prefix: "trs_" },
  filter: { path: "/filters", prefix: "flt_" },
  action: { path: "/actions", prefix: "act_" },
  workflow: { path: "/workflows", prefix: "wfl_" }
} as const satisfies { readonly [kind in StepResource]: object }
type Named = keyof typeof named

const idOf = Effect.fnUntraced(function* (kind: Named, nameOrId: string) {
  const { path, prefix } = named[kind]
  if (nameOrId.startsWith(prefix)) return nameOrId
  const { models } = yield* call((client, signal) =>
    client.get(path, { params: { query: { name: nameOrId } }, signal })
  )
  const [found] = models as ReadonlyArray<{ readonly id: string }>
  if (found !== undefined) return found.id
  return yield* new CliFailure({ code: "missing", message: plain(`there is no ${kind} ${nameOrId}`) })
})

/** The workflow with ids instead of names. */
const resolved = Effect.fnUntraced(function* (written: Written) {
  const { source_id, steps } = written
  return {
    ...written,
    ...(typeof source_id === "string" ? { source_id: yield* idOf("source", source_id) } : {}),
    ...(Array.isArray(steps)
      ? {
          steps: yield* Effect.forEach(steps as ReadonlyArray<Members>, (step) => {
            const { kind, resource_id } = step
            const resource = resourceOfStep(kind)
            return resource !== null && typeof resource_id === "string"
              ? Effect.map(idOf(resource, resource_id), (id) => ({ ...step, resource_id: id }))
              : Effect.succeed(step)
          })
        }
      : {})
  }
})

/** The stored workflow of that name; null if there is none. */
const storedOf = (name: string) =>
  call(async (client, signal) => {
    const { models } = await client.get("/workflows", { params: { query: { name } }, signal })
    const id = models[0]?.id
    return id === undefined ? null : await client.get("/workflows/{id}", { params: { path: { id } }, signal })
  })

const marks = { added: ["green", "+"], removed: ["red", "-"], changed: ["yellow", "~"] } as const

const line = ({ change, members, what }: Difference, indent = "  ") => {
  const [color, mark] = marks[change]
  const which = members.length === 0 ? "" : ` (${members.join(", ")})`
  return colored(color, `${indent}${mark} ${plain(what)}${plain(which)}`)
}

const sayWarnings = (warnings: ReadonlyArray<{ readonly message: string; readonly path: string }> | undefined) =>
  Effect.forEach(warnings ?? [], ({ message, path }) => say(plain(`warning: ${path}: ${message}`)), { discard: true })

const files = Argument.String("file").pipe(
  Argument.variadic({ min: 1, max: 100 }),
  Argument.withDescription(
    "Files with workflows: .json, .jsonc, or a .ts, .js or .mjs module that exports them by default"
  )
)

const push = Command.make(
  "push",
  {
    files,
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Prints what would change and changes nothing; exit code 6 if there is anything")
    )
  },
  Effect.fn(function* ({ dryRun, files }) {
    const isJson = yield* Json
    // All files are read, and all names are found, before anything is written.
    const read = (yield* Effect.forEach(files, workflowsIn)).flat()
    const written = yield* Effect.forEach(read, resolved)
    let differs = false
    for (const workflow of written) {
      const stored = yield* storedOf(workflow.name)
      const changes = differenceOf(stored, workflow)
      const isNew = stored === null
      differs ||= isNew || changes.length > 0
      if (!isJson && (isNew || changes.length > 0)) {
        const change = isNew ? "added" : "changed"
        yield* Console.log(yield* line({ change, what: `workflow ${workflow.name}`, members: [] }, ""))
        for (const one of changes) yield* Console.log(yield* line(one))
      }
      const action = isNew ? "create" : changes.length > 0 ? "update" : "unchanged"
      if (dryRun) {
        if (isJson) yield* Console.log(jsonLine({ name: workflow.name, action, applied: false, changes }))
        continue
      }
      const saved = yield* call((client, signal) => client.put("/workflows", { body: workflow as never, signal }))
      if (isJson) {
        const { id, version, warnings = [] } = saved
        yield* Console.log(jsonLine({ name: workflow.name, action, applied: true, changes, id, version, warnings }))
        continue
      }
      yield* sayWarnings(saved.warnings)
      const isSame = stored?.version === saved.version
      yield* Console.log(plain(`${saved.id} ${saved.name}: version ${saved.version}${isSame ? ", as it was" : ""}`))
    }
    if (dryRun && differs) {
      yield* new CliFailure({ code: "differs", message: "the gateway differs from the files" })
    }
  })
).pipe(
  Command.withDescription("Creates or updates the workflows in files, found by their names, and shows what changes")
)

const stepLine = (step: Schemas["WorkflowTest"]["steps"][number]): string => {
  const { error_code, error_message, output_preview, simulated, status, step_id } = step
  const preview = output_preview?.available === true ? ` ${jsonLine(output_preview.preview)}` : ""
  const error = error_code === null ? "" : ` ${error_code}: ${error_message ?? ""}`
  return `${step_id} ${status}${simulated ? " (simulated)" : ""}${error}${preview}`
}

const longest = 2_000
const cut = (text: string): string => (text.length > longest ? `${text.slice(0, longest)}…` : text)

const test = Command.make(
  "test",
  {
    workflow: Argument.String("workflow").pipe(
      Argument.withDescription("Name or id of a workflow, or a file with one workflow, which need not be pushed")
    ),
    trigger: Flag.String("trigger").pipe(
      Flag.optional,
      Flag.withDescription('File with the request: {"body": …, "headers": …, "query": …}; - reads standard input')
    ),
    body: Flag.String("body").pipe(
      Flag.optional,
      Flag.withDescription("File with only the body of the request, as JSON; - reads standard input")
    ),
    request: Flag.String("request").pipe(
      Flag.optional,
      Flag.withDescription("Id of a received request, req_… (default: the last request of the source)")
    ),
    draft: Flag.Boolean("draft").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Tests the draft of the workflow instead of its live version")
    )
  },
  Effect.fn(function* ({ body, draft, request, trigger, workflow }) {
    if ([body, request, trigger].filter(Option.isSome).length > 1) {
      yield* usage("only one of --trigger, --body and --request can be given")
    }
    const given = {
      ...(Option.isSome(trigger) ? { trigger: yield* readJsonc(trigger.value) } : {}),
      ...(Option.isSome(body) ? { trigger: { body: yield* readJsonc(body.value) } } : {}),
      ...(Option.isSome(request) ? { request_id: request.value } : {})
    }
    const answer = yield* Effect.gen(function* () {
      if (!isFile(workflow)) {
        const { id } = yield* find("workflow", workflow)
        const asked = { ...given, ...(draft ? { draft } : {}) }
        return yield* call((client, signal) =>
          client.post("/workflows/{id}/test", { params: { path: { id } }, body: asked as never, signal })
        )
      }
      if (draft) return yield* usage("--draft needs the name or id of a workflow")
      const [first, ...others] = yield* workflowsIn(workflow)
      if (first === undefined || others.length > 0) return yield* usage(`${workflow} must have exactly one workflow`)
      const { edges, source_id, steps }: Members = yield* resolved(first)
      const asked = { ...given, steps, edges, source_id }
      return yield* call((client, signal) => client.post("/workflows/test", { body: asked as never, signal }))
    })
    if (yield* Json) yield* Console.log(jsonLine(answer))
    else {
      for (const step of answer.steps) yield* Console.log(plain(cut(stepLine(step))))
      yield* sayWarnings(answer.warnings)
      yield* Console.log(plain(`${answer.status} ${answer.outcome ?? ""}`.trimEnd()))
    }
    if (answer.status !== "succeeded") {
      const { error_code, error_message } = answer
      yield* new CliFailure({
        code: "failed",
        message: plain(`${error_code ?? answer.status}: ${error_message ?? ""}`)
      })
    }
  })
).pipe(
  Command.withDescription(
    "Runs a workflow with a request as a dry run, and prints its steps; nothing is sent or stored"
  )
)

const pageLength = 100
/** How many runs' last states are remembered. */
const maxSeen = 10_000

interface Run {
  readonly id: string
  readonly workflow_id: string
  readonly workflow_name?: string | null
  readonly label: string | null
  readonly status: string
  readonly outcome: string | null
  readonly error_code: string | null
  readonly error_message: string | null
  readonly error_step_id: string | null
  readonly attempt_count: number
  readonly updated_at: string
}

const runLine = (run: Run): string => {
  const { error_code, error_message, error_step_id, id, label, outcome, status, updated_at, workflow_id } = run
  const name = run.workflow_name ?? workflow_id
  const error = error_code === null ? "" : ` ${error_step_id ?? ""} ${error_code}: ${error_message ?? ""}`
  return `${updated_at} ${id} ${status}${outcome === null || outcome === status ? "" : ` ${outcome}`} ${name}${
    label === null ? "" : ` (${label})`
  }${error}`
}

/** Prints each run again when its state has changed. Runs that the first look finds are not printed. */
const follower = (print: (run: Run) => void) => {
  const seen = new Map<string, string>()
  let isFirst = true
  return (runs: ReadonlyArray<Run>): void => {
    for (const run of runs.toReversed()) {
      const state = `${run.status} ${run.attempt_count}`
      if (seen.get(run.id) === state) continue
      seen.delete(run.id)
      seen.set(run.id, state)
      if (!isFirst) print(run)
    }
    for (const oldest of seen.keys()) {
      if (seen.size <= maxSeen) break
      seen.delete(oldest)
    }
    isFirst = false
  }
}

const logs = Command.make(
  "logs",
  {
    workflow: Flag.String("workflow").pipe(
      Flag.atMost(32),
      Flag.withMetavar("name|id"),
      Flag.withDescription("Only runs of this workflow; separated by commas, or repeated")
    ),
    status: Flag.Literals("status", ["queued", "running", "succeeded", "failed"]).pipe(
      Flag.atMost(4),
      Flag.withDescription("Only runs in this state; can be repeated")
    ),
    errorCode: Flag.String("error-code").pipe(
      Flag.atMost(20),
      Flag.withDescription("Only runs that failed with this code; can be repeated")
    ),
    label: Flag.String("label").pipe(Flag.optional, Flag.withDescription("Only runs with exactly this label"))
  },
  Effect.fn(function* ({ errorCode, label, status, workflow }) {
    const ids = yield* idsOf("workflow", workflow)
    const who = yield* access
    const isJson = yield* Json
    const query = {
      limit: pageLength,
      ...(status.length > 0 ? { status: [...status] } : {}),
      ...(errorCode.length > 0 ? { error_code: [...errorCode] } : {}),
      ...(Option.isSome(label) ? { label: label.value } : {})
    }
    return yield* untilStopped(
      Effect.tryPromise({
        try: async (signal) => {
          const client = new Client(who)
          const print: Print = (json, words) => void process.stdout.write(`${isJson ? jsonLine(json) : plain(words)}\n`)
          const follow = follower((run) => print({ type: "run", run }, runLine(run)))
          const look = async (): Promise<void> => {
            const pages =
              ids.length === 0
                ? [await client.get("/workflow-activity", { params: { query }, signal })]
                : await Promise.all(
                    ids.map((id) => client.get("/workflows/{id}/runs", { params: { path: { id }, query }, signal }))
                  )
            follow(pages.flatMap(({ models }) => models as ReadonlyArray<Run>))
          }
          await look()
          print({ type: "watching" }, "watching runs (Ctrl-C to stop)")
          await keepLooking(look, print, signal)
        },
        catch: failureOf
      })
    )
  })
).pipe(Command.withDescription("Shows runs of workflows as they begin and end, until Ctrl-C"))

export const workflows = Command.make("workflows").pipe(
  Command.withDescription("Pushes workflows from files, tests them, and follows their runs"),
  Command.withSubcommands([push, test, logs])
)
