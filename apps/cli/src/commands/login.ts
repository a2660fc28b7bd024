import { Console, Effect, Option, Redacted } from "effect"
import { Command, Prompt } from "effect/cli"
import { Client } from "@tidegate/client/source"
import { removeCredentials, writeCredentials } from "../Credentials.ts"
import { failureOf, usage } from "../Failure.ts"
import { gatewayUrl, usualUrl, wanted, warned } from "../Gateway.ts"
import { tell } from "../Output.ts"
import { readInput } from "../Input.ts"

const longestKey = 4_096

/** Asks for the key without echo, or reads it from a pipe. The key is never an argument, because all users of a machine can see arguments. */
const askedKey = Effect.gen(function* () {
  const fromEnvironment = process.env["TIDEGATE_API_KEY"]?.trim()
  if (fromEnvironment !== undefined && fromEnvironment !== "") return fromEnvironment
  const typed = process.stdin.isTTY
    ? Redacted.value(yield* Prompt.run(Prompt.Password({ message: "API key" })))
    : (yield* readInput(longestKey)).toString("utf8")
  const key = typed.trim()
  return key === "" ? yield* usage("no API key was given: type it, pipe it in, or set TIDEGATE_API_KEY") : key
})

export const login = Command.make("login", {}, () =>
  Effect.gen(function* () {
    const asked = yield* wanted
    const baseUrl = yield* gatewayUrl(Option.getOrElse(asked.url, () => usualUrl))
    const team = Option.getOrUndefined(asked.team)
    yield* warned(baseUrl)
    const key = yield* askedKey
    const who = { baseUrl, key, ...(team === undefined ? {} : { team }) }
    yield* Effect.tryPromise({
      try: (signal) => new Client(who).get("/sources", { params: { query: { limit: 1 } }, signal }),
      catch: failureOf
    })
    const file = yield* writeCredentials({ url: baseUrl, key, ...(team === undefined ? {} : { team }) })
    yield* tell({ url: baseUrl, file }, `signed in to ${baseUrl}; the key is kept in ${file}`)
  })
).pipe(Command.withDescription("Checks an API key (typed, piped in, or TIDEGATE_API_KEY) and stores it for this user"))

export const logout = Command.make("logout", {}, () =>
  Effect.andThen(removeCredentials, Console.error("the key is forgotten here; the gateway still takes it"))
).pipe(Command.withDescription("Deletes the key that login has stored"))
