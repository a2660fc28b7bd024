#!/usr/bin/env node
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer, Logger } from "effect"
import { CliConfig, Command, GlobalFlag } from "effect/cli"
import { tidegate } from "./Cli.ts"
import { exitCodes, failureOf } from "./Failure.ts"
import { jsonLine, plain, Screen } from "./Output.ts"
import { interruptedCode } from "./Stopping.ts"

declare const TIDEGATE_VERSION: string | undefined

const version = typeof TIDEGATE_VERSION === "string" ? TIDEGATE_VERSION : "0.0.0"

/** Whether people read the output: colours are used only then. */
const screen = Layer.succeed(Screen, {
  isTerminal: process.stdout.isTTY,
  canColor: process.stdout.isTTY && (process.env["NO_COLOR"] ?? "") === "" && process.env["TERM"] !== "dumb",
  showsProgress: process.stderr.isTTY
})

/** Prints the error: for people on standard error, and as JSON for programs. */
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

// A closed pipe (`tidegate events | head`) is no error, and a terminal that was closed ends the program as its SIGHUP does. Any other
// failure, such as a full disk, is an error, because output is lost.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0)
  if (error.code === "EIO" && process.stdout.isTTY) process.emit("SIGTERM", "SIGTERM")
  else process.exit(complain(new Error(`standard output cannot be written: ${error.code ?? error.message}`)))
})

// Where nobody can read messages, the exit code still says how it ended.
process.stderr.on("error", () => undefined)

const program = Command.run(tidegate, { version }).pipe(
  Effect.matchCauseEffect({
    onSuccess: () => Effect.succeed(0),
    onFailure: (cause) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(interruptedCode())
      const error = Cause.squash(cause)
      // The error in the command line was shown with its help.
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

// The terminal was closed, or its connection was lost: ends as cleanly as after SIGTERM.
process.on("SIGHUP", () => void process.emit("SIGTERM", "SIGTERM"))

NodeRuntime.runMain(program, {
  disableErrorReporting: true,
  teardown: (exit, onExit) => {
    const leave = (): void => onExit(Exit.isSuccess(exit) ? (exit.value as number) : interruptedCode())
    // Waits until a slow reader has taken all output, because the rest would be lost. A second interrupt ends the program at once.
    process.once("SIGINT", leave)
    process.stdout.write("", () => process.stderr.write("", leave))
  }
})
