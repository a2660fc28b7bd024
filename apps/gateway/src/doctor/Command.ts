import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { loadKeys } from "../Bootstrap.ts"
import { isInstalled, whereOf } from "../OwnInstallation.ts"
import { settings } from "../Settings.ts"
import { checks } from "./Checks.ts"
import { examine, isWell, jsonOf, linesOf } from "./Doctor.ts"

const asJson = Flag.Boolean("json").pipe(
  Flag.withDefault(false),
  Flag.withDescription("Print one JSON document: ok, and findings with check, verdict, says and way_out")
)

export const doctor = Command.make(
  "doctor",
  { asJson },
  Effect.fn(function* (asked) {
    const given = yield* settings
    yield* isInstalled(given)
    yield* Console.error(`doctor: looks at ${whereOf(given)}`)
    const results = yield* examine(checks, given, yield* loadKeys(given))
    if (asked.asJson) yield* Console.log(JSON.stringify(jsonOf(results), null, 2))
    else for (const line of linesOf(results)) yield* Console.log(line)
    process.exitCode = isWell(results) ? 0 : 1
  })
).pipe(
  Command.withDescription(
    `Looks at the installation, and says what is wrong and what to do: ${checks.map(({ name }) => name).join(", ")}. Changes nothing. Exit code 1: something is wrong`
  )
)
