import { Argument, Command, Flag } from "effect/cli"
import { lazily } from "../Lazily.ts"

/** A day (s). */
const longestWait = 86_400

const flags = {
  destination: Argument.String("destination").pipe(
    Argument.withDescription("Name or id of a destination of type PULL")
  ),
  ack: Flag.Boolean("ack").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Acknowledges each message as soon as it is printed")
  ),
  exec: Flag.String("exec").pipe(
    Flag.optional,
    Flag.withMetavar("command"),
    Flag.withDescription(
      "Runs this in a shell for each message, which it reads from standard input as a JSON line. Exit code 0 acknowledges the message, any other refuses it"
    )
  ),
  max: Flag.Int("max").pipe(
    Flag.filter(
      (count) => count >= 1,
      () => "must be at least 1"
    ),
    Flag.optional,
    Flag.withDescription("Ends after so many messages (default: none, until Ctrl-C)")
  ),
  wait: Flag.Int("wait").pipe(
    Flag.filter(
      (seconds) => seconds >= 0 && seconds <= longestWait,
      () => `must be from 0 to ${longestWait}`
    ),
    Flag.optional,
    Flag.withMetavar("seconds"),
    Flag.withDescription("Ends when there was no message for so long (default: waits until Ctrl-C)")
  )
}

export const pull = Command.make(
  "pull",
  flags,
  lazily(async () => (await import("../pull/Pulling.ts")).pulling)
).pipe(
  Command.withDescription(
    "Fetches the messages of a PULL destination, prints or processes them, and acknowledges them"
  ),
  Command.withExamples([
    { command: "tidegate pull warehouse --ack", description: "Prints each message as a line of JSON, until Ctrl-C" },
    {
      command: "tidegate pull warehouse --exec ./load.sh --wait 5",
      description: "Runs a program for each message, and ends when there was none for five seconds"
    }
  ])
)
