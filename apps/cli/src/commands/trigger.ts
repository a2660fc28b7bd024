import { randomBytes } from "node:crypto"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { didYouMean } from "@tidegate/model/NearestName"
import { CliFailure, usage } from "../Failure.ts"
import { find } from "../Gateway.ts"
import { rows } from "../Output.ts"
import { posted, signingFlags } from "../Posting.ts"

const flags = {
  source: Argument.String("source").pipe(
    Argument.optional,
    Argument.withDescription("Name or id of the source. Its type says whose event it is")
  ),
  event: Argument.String("event").pipe(
    Argument.optional,
    Argument.withDescription("Name of the event, for example payment_intent.succeeded")
  ),
  list: Flag.Boolean("list").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Prints the events: of all providers, or of the source that is named")
  ),
  provider: Flag.String("provider").pipe(
    Flag.optional,
    Flag.withDescription("Source type whose event is sent, for example stripe (default: the type of the source)")
  ),
  ...signingFlags
}

export const trigger = Command.make(
  "trigger",
  flags,
  Effect.fn(function* ({ event, list, provider, source: named, ...asked }) {
    const { catalog, momentAt, requestOf, samplesOf } = yield* Effect.promise(
      () => import("@tidegate/verification/samples/Catalog")
    )
    const providers = catalog.map(({ type }) => type.toLowerCase())
    const source = Option.isSome(named) ? yield* find("source", named.value) : null
    const type = Option.getOrElse(provider, () => source?.type ?? "").toUpperCase()
    const found = samplesOf(type)
    if (found === undefined && type !== "") {
      const hint = Option.isSome(provider) ? didYouMean(provider.value.toLowerCase(), providers) : ""
      const way = Option.isSome(provider) ? "" : "; --provider sends another provider's event"
      return yield* usage(`there are no events of ${type}${hint}: ${providers.join(", ")} have some${way}`)
    }
    if (list) {
      const shown = found === undefined ? catalog : [found]
      const events = shown.flatMap(({ documentation, samples, type }) =>
        samples.map((sample) => ({ provider: type, event: sample.event, documentation }))
      )
      return yield* rows(events, (row) => row)
    }
    if (source === null || found === undefined) return yield* usage("say which source, or --list")
    const names = found.samples.map((sample) => sample.event)
    if (Option.isNone(event)) return yield* usage(`say which event of ${type}: ${names.join(", ")}`)
    const sample = found.samples.find((sample) => sample.event === event.value)
    if (sample === undefined) {
      const message = `there is no event ${event.value} of ${type}${didYouMean(event.value, names)}; there are ${names.join(", ")}`
      return yield* new CliFailure({ code: "missing", message })
    }
    return yield* posted(source, requestOf(found, sample, momentAt(Date.now(), randomBytes)), asked)
  })
).pipe(
  Command.withDescription("Sends an event of a provider to a source, signed as the provider signs"),
  Command.withExamples([
    {
      command: "tidegate trigger stripe-prod payment_intent.succeeded",
      description: "With TIDEGATE_SENDER_SECRET=whsec_…: as Stripe would send it"
    },
    { command: "tidegate trigger shop orders/paid --provider shopify", description: "To a source of another type" },
    { command: "tidegate trigger --list", description: "Prints the events of all providers" }
  ])
)
