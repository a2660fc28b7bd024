import { Effect } from "effect"
import { Flag, Prompt } from "effect/cli"
import { CliFailure, usage } from "../Failure.ts"

export const unasked = Flag.Boolean("yes").pipe(
  Flag.withAlias("y"),
  Flag.withDefault(false),
  Flag.withDescription("Does not ask for confirmation")
)

/** Asks the user to confirm: what changes or deletes many records never runs without it. */
export const agreed = (what: string, yes: boolean) => {
  if (yes) return Effect.void
  if (!process.stdin.isTTY) return Effect.fail(usage(`${what}: add --yes`))
  return Effect.flatMap(Prompt.run(Prompt.Confirm({ message: `${what}. Continue?` })), (isAgreed) =>
    isAgreed ? Effect.void : Effect.fail(new CliFailure({ code: "failed", message: "nothing was changed" }))
  )
}
