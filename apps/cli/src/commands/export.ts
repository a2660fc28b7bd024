import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { CliFailure } from "../Failure.ts"
import { call } from "../Gateway.ts"
import { writeOwnFile } from "../OwnFile.ts"
import { document, Json, say } from "../Output.ts"

export const exporting = Command.make(
  "export",
  {
    file: Argument.String("file").pipe(
      Argument.withDefault("-"),
      Argument.withDescription("File to write, readable by its owner only; - or no file writes to standard output")
    )
  },
  Effect.fn(function* ({ file }) {
    const { exported } = yield* Effect.promise(() => import("../transfer/Export.ts"))
    const { printYaml } = yield* Effect.promise(() => import("../transfer/Yaml.ts"))
    const { document: made, variables } = yield* call(exported)
    if (yield* Json) return yield* document(made)
    const text = printYaml(made)
    if (file === "-") yield* Console.log(text.trimEnd())
    else {
      yield* Effect.tryPromise({
        try: () => writeOwnFile(file, text),
        catch: (error) =>
          new CliFailure({ code: "failed", message: `${file} cannot be written: ${(error as Error).message}` })
      })
    }
    return yield* variables === 0
      ? Effect.void
      : say(`${variables} secrets are not in it: it names the variable of each, for the import`)
  })
).pipe(
  Command.withDescription(
    "Writes sources, destinations, connections, filters, transformations, actions and workflows to one YAML file, without secrets"
  )
)
