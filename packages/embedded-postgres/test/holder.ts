/**
 * A process that holds an embedded server for the suite: starts or joins the one of the home folder given, prints what it got
 * as one line of JSON, and keeps it until it is told to end.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect, Logger, Redacted } from "effect"
import { start } from "../src/EmbeddedPostgres.ts"

const [, , home = ""] = process.argv

start({ home }).pipe(
  Effect.flatMap(({ attached, pid, port, url }) =>
    Console.log(JSON.stringify({ attached, pid, port, url: Redacted.value(url) }))
  ),
  Effect.andThen(Effect.never),
  Effect.scoped,
  Effect.provide(Logger.layer([])),
  NodeRuntime.runMain
)
