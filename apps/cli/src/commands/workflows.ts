import { Argument, Command, Flag } from "effect/cli"
import { lazily } from "../Lazily.ts"

/* Workflows that are kept in files: pushes them, tests them, and follows their runs. */

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
  lazily(async () => (await import("../workflows/Push.ts")).push)
).pipe(
  Command.withDescription("Creates or updates the workflows in files, found by their names, and shows what changes")
)

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
  lazily(async () => (await import("../workflows/Test.ts")).test)
).pipe(
  Command.withDescription(
    "Runs a workflow with a request as a dry run, and prints its steps; nothing is sent or stored"
  )
)

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
  lazily(async () => (await import("../workflows/Logs.ts")).logs)
).pipe(Command.withDescription("Shows runs of workflows as they begin and end, until Ctrl-C"))

export const workflows = Command.make("workflows").pipe(
  Command.withDescription("Pushes workflows from files, tests them, and follows their runs"),
  Command.withSubcommands([push, test, logs])
)
