import { Console, Effect } from "effect"
import { Argument, Command, Flag, Prompt } from "effect/cli"
import { CliFailure, failureOf, usage } from "../Failure.ts"
import { call } from "../Gateway.ts"
import { readFileAt } from "../Input.ts"
import { colored, Json, jsonLine, plain, progress, progressOver, say, Screen } from "../Output.ts"
import type { Step } from "../transfer/Plan.ts"
import { isObject } from "../transfer/Json.ts"

const flags = {
  file: Argument.String("file").pipe(
    Argument.withDescription("A file that export has written; - reads standard input")
  ),
  plan: Flag.Boolean("plan").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Prints the planned changes and makes none; exit code 6 if there are any")
  ),
  prune: Flag.Boolean("prune").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Deletes what is not in the file, of the kinds of resources that the file has")
  ),
  yes: Flag.Boolean("yes").pipe(
    Flag.withAlias("y"),
    Flag.withDefault(false),
    Flag.withDescription("Does not ask for confirmation")
  )
}

const marks = {
  create: ["green", "+"],
  update: ["yellow", "~"],
  unchanged: ["dim", " "],
  delete: ["red", "-"]
} as const

const line = ({ action, changed, kind, wanted }: Step) => {
  const [color, mark] = marks[action]
  const what = changed.length === 0 ? "" : ` (${changed.join(", ")})`
  return colored(color, `${mark} ${kind.slice(0, -1)} ${plain(wanted.name)}${what}`)
}

/** What is written for a value that was not there, or is no more. */
const none = "(none)"

const valueLines = ({ changes }: Step): ReadonlyArray<string> => [
  ...changes.slice(0, maxChanges).map(({ from, path, to }) => plain(`    ${path}: ${from ?? none} -> ${to ?? none}`)),
  ...(changes.length > maxChanges ? [`    and ${changes.length - maxChanges} more`] : [])
]

const maxChanges = 50

/** The workflows in a file, by name. The steps of others need not be read. */
const workflowsIn = (value: unknown): ReadonlySet<unknown> => {
  const list = isObject(value) ? value["workflows"] : undefined
  return new Set(Array.isArray(list) ? list.map((one) => (isObject(one) ? one["name"] : undefined)) : [])
}

/** The host to which a destination's secrets are sent. Only the host is shown, because the URL itself may be a secret. */
const leadsTo = ({ config }: Step["wanted"]): string => {
  const url = isObject(config) && typeof config["url"] === "string" ? URL.parse(config["url"]) : null
  return url === null ? "" : ` (${url.host})`
}

export const importing = Command.make(
  "import",
  flags,
  Effect.fn(function* (asked) {
    const { largestFile, parseYaml } = yield* Effect.promise(() => import("../transfer/Yaml.ts"))
    const { planOf } = yield* Effect.promise(() => import("../transfer/Plan.ts"))
    const { takeInventory } = yield* Effect.promise(() => import("../transfer/Inventory.ts"))
    const { apply } = yield* Effect.promise(() => import("../transfer/Apply.ts"))
    const name = asked.file === "-" ? "standard input" : asked.file
    const bytes = yield* readFileAt(asked.file, largestFile)
    const parsed = yield* Effect.try({ try: () => parseYaml(bytes, name), catch: failureOf })
    const workflows = workflowsIn(parsed.value)
    const inventory = yield* call((client, signal) => takeInventory(client, signal, (one) => workflows.has(one)))
    const { prune } = asked
    const plan = yield* Effect.try({
      try: () => planOf(parsed, name, inventory, process.env, { prune }),
      catch: failureOf
    })
    const todo = plan.steps.filter(({ action }) => action !== "unchanged")
    const count = (action: Step["action"]) => plan.steps.filter((step) => step.action === action).length
    const removal = prune ? `, ${count("delete")} to delete` : ""
    const summary = `${count("create")} to create, ${count("update")} to change, ${count("unchanged")} as they are${removal}`

    const variables = todo.flatMap(({ kind, read, wanted }) =>
      read.map(({ name, path }) => ({
        variable: name,
        given_to: `${kind.slice(0, -1)} ${wanted.name}: ${path.join(".")}${leadsTo(wanted)}`
      }))
    )

    const isJson = yield* Json
    if (!isJson) {
      for (const step of todo) {
        yield* Console.log(yield* line(step))
        for (const value of valueLines(step)) yield* Console.log(value)
      }
      for (const { moved, wanted } of todo) {
        if (moved !== null) yield* Console.log(plain(`${wanted.name} leads to ${moved.to}, no longer to ${moved.from}`))
      }
      for (const one of variables) yield* Console.log(plain(`$${one.variable} is given to ${one.given_to}`))
      if (plan.kept.length > 0) {
        yield* say(
          `these variables are not used, and the secrets stay as the gateway has them: ${plain(plan.kept.join(", "))}`
        )
      }
      yield* say(summary)
    }
    const planned = todo.map(({ action, changed, changes, kind, moved, wanted }) => ({
      action,
      kind: kind.slice(0, -1),
      name: wanted.name,
      changed,
      ...(changes.length === 0 ? {} : { values: changes }),
      ...(moved === null ? {} : { moved })
    }))
    const tellPlan = (isApplied: boolean) =>
      isJson
        ? Console.log(jsonLine({ applied: isApplied, steps: planned, variables, kept_secrets: plan.kept }))
        : Effect.void
    if (todo.length === 0) return yield* tellPlan(true)
    if (asked.plan) {
      yield* tellPlan(false)
      return yield* new CliFailure({ code: "differs", message: "the gateway differs from the file" })
    }
    if (!asked.yes) {
      if (!process.stdin.isTTY || asked.file === "-") return yield* usage(`${summary}: add --yes to apply it`)
      const isAgreed = yield* Prompt.run(Prompt.Confirm({ message: "Apply these changes?" }))
      if (!isAgreed) return yield* new CliFailure({ code: "failed", message: "nothing was changed" })
    }
    let done = 0
    const warnings: Array<string> = []
    const { showsProgress } = yield* Screen
    const services = yield* Effect.context<Screen>()
    yield* call((client, signal) =>
      apply(
        client,
        plan,
        inventory,
        name,
        ({ kind, wanted }, left) => {
          done++
          for (const message of left) warnings.push(`${kind.slice(0, -1)} ${wanted.name}: ${message}`)
          if (showsProgress) Effect.runSync(Effect.provideContext(progress(`${done} of ${todo.length}`), services))
        },
        signal
      )
    ).pipe(
      Effect.ensuring(progressOver),
      Effect.ensuring(Effect.suspend(() => Effect.forEach(warnings, (one) => say(plain(`warning: ${one}`))))),
      Effect.tapError(() => say(`${done} of ${todo.length} were done: import again to go on`))
    )
    yield* tellPlan(true)
    return yield* isJson ? Effect.void : say(`${done} done`)
  })
).pipe(Command.withDescription("Creates or updates the resources in a file; deletes others only with --prune"))
