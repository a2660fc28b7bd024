#!/usr/bin/env node
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Effect, Exit, Layer, Logger } from "effect"
import { CliConfig, Command, GlobalFlag } from "effect/cli"
import { tidegate } from "./Cli.ts"
import { exitCodes, failureOf } from "./Failure.ts"
import { jsonLine, plain, Screen } from "./Output.ts"
import { interruptedCode } from "./Stopping.ts"

declare const TIDEGATE_VERSION: string | undefined

const version = typeof TIDEGATE_VERSION === "string" ? TIDEGATE_VERSION : "0.0.0"

/** Who reads along: nobody's output has colours that it was not asked for. */
const screen = Layer.succeed(Screen, {
  isTerminal: process.stdout.isTTY,
  canColor: process.stdout.isTTY && (process.env["NO_COLOR"] ?? "") === "" && process.env["TERM"] !== "dumb",
  showsProgress: process.stderr.isTTY
})

/** What went wrong, for people on standard error, and as JSON for programs. */
const complain = (error: unknown): number => {
  const failure = failureOf(error)
  const { code, data, message, reason } = failure
  const isJson = process.argv.includes("--json")
  process.stderr.write(
    isJson
      ? `${jsonLine({ error: code, message, reason: reason ?? null, data: data ?? null })}\n`
      : `tidegate: ${message.split("\n").map(plain).join("\n")}\n`
  )
  return exitCodes[code]
}

// Who reads us may leave (`tidegate events | head`): that is no fault of anybody. A full disk is: what was asked for is not there.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0)
  process.exit(complain(new Error(`standard output cannot be written: ${error.code ?? error.message}`)))
})

const program = Command.run(tidegate, { version }).pipe(
  Effect.matchCauseEffect({
    onSuccess: () => Effect.succeed(0),
    onFailure: (cause) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(interruptedCode())
      const error = Cause.squash(cause)
      // What was wrong with the command line has been shown with its help.
      if ((error as { _tag?: string })._tag === "ShowHelp") {
        return Effect.succeed((error as { errors: ReadonlyArray<unknown> }).errors.length === 0 ? 0 : exitCodes.usage)
      }
      return Effect.sync(() => complain(error))
    }
  }),
  Effect.provide([
    NodeServices.layer,
    screen,
    CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
    Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])
  ])
)

// A terminal that is closed, or a line that hangs up, ends what runs in it: as cleanly as being told to.
process.on("SIGHUP", () => void process.emit("SIGTERM", "SIGTERM"))

NodeRuntime.runMain(program, {
  disableErrorReporting: true,
  teardown: (exit, onExit) => {
    const leave = (): void => onExit(Exit.isSuccess(exit) ? (exit.value as number) : interruptedCode())
    // What a slow reader has not taken yet would be lost. Who does not want to wait for one interrupts once more.
    process.once("SIGINT", leave)
    process.stdout.write("", () => process.stderr.write("", leave))
  }
})
