import type { ServerResponse } from "node:http"
import { Clock, Context, Effect, Layer } from "effect"
import { definitionOf } from "@tidegate/channels/SourceProviders"
import { Dispatcher } from "@tidegate/entities/dispatch/Dispatcher"
import { Loops } from "@tidegate/entities/Loops"
import { StepLinks } from "@tidegate/entities/Workflow/StepLinks"
import { callbackPath, channelPath } from "@tidegate/model/Ingress"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import type { CalledSubscription } from "@tidegate/storage/channels/Notifications"
import { Journal } from "@tidegate/storage/Journal"
import { ProxyExchanges } from "@tidegate/storage/delivery/ProxyExchanges"
import { BinIngress } from "./BinIngress.ts"
import { Bodies } from "./Bodies.ts"
import { Certificates } from "./Certificates.ts"
import { type CalledAdapter, Callbacks } from "./channels/Callbacks.ts"
import { CallbackTelemetry } from "./channels/CallbackTelemetry.ts"
import { ReceivingSteps } from "./callbacks/ReceivingSteps.ts"
import { StepCallbacks } from "./callbacks/StepCallbacks.ts"
import { CalledSubscriptions } from "./channels/CalledSubscriptions.ts"
import { Admission } from "./handler/Admission.ts"
import { Answers } from "./handler/Answers.ts"
import { Refusals } from "./handler/Refusals.ts"
import { Steps } from "./handler/Steps.ts"
import { Storing } from "./handler/Storing.ts"
import { HandshakeSteps } from "./HandshakeSteps.ts"
import { IngressTelemetry } from "./IngressTelemetry.ts"
import { ProxyUpstream } from "./ProxyUpstream.ts"
import { SourceSnapshots } from "./SourceSnapshots.ts"
import { WaitingSenders } from "./WaitingSenders.ts"
import type { FramedMessage } from "./wire/FramedMessage.ts"

/**
 * Receives senders' requests, stores them and acknowledges them. It waits only for the database: it routes by the cached snapshot of
 * the source, passes the record to the journal, and answers after the commit is durable.
 *
 * The steps are in `handler/`: `Admission` decides whether a request is read, `Storing` routes and stores it and wakes the actors,
 * `Answers` answers it, and `Refusals` answers what is not accepted. They use plain callbacks instead of Effect, because they run
 * for every request; see docs/decisions/0002-hot-path.md. Messages of providers to the callbacks of channels are in `channels/`,
 * and callbacks for steps of runs in `callbacks/`.
 */
export class IngressHandler extends Context.Service<
  IngressHandler,
  {
    /** Handles a request whose path begins with one of `ingressPaths`. */
    readonly handle: (request: FramedMessage, response: ServerResponse) => void
  }
>()("@tidegate/ingress/IngressHandler") {
  static readonly layer: Layer.Layer<
    IngressHandler,
    never,
    | Journal
    | SourceSnapshots
    | Dispatcher
    | Certificates
    | HandshakeSteps
    | ProxyUpstream
    | ProxyExchanges
    | BinIngress
    | CalledSubscriptions
    | WaitingSenders
    | ReceivingSteps
  > = Layer.effect(
    IngressHandler,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const journal = yield* Journal
  const snapshots = yield* SourceSnapshots
  const dispatcher = yield* Dispatcher
  const certificates = yield* Certificates
  const handshakes = yield* HandshakeSteps
  const upstream = yield* ProxyUpstream
  const exchanges = yield* ProxyExchanges
  const bins = yield* BinIngress
  const senders = yield* WaitingSenders
  const loops = yield* Loops
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  const proxies = yield* TrustedProxies.Current

  const bodies = new Bodies(proxies)
  const telemetry = yield* IngressTelemetry.make(() => bodies.heldBytes)
  const refusals = new Refusals(telemetry)
  const steps = new Steps(bodies, refusals)
  const answers = new Answers({ bodies, exchanges, refusals, senders, steps, telemetry, upstream })
  const storing = new Storing({
    answers,
    bins,
    bodies,
    certificates,
    dispatcher,
    handshakes,
    journal,
    refusals,
    run,
    snapshots,
    steps,
    telemetry
  })
  const admission = new Admission({
    bodies,
    clock,
    journal,
    loops,
    proxies,
    refusals,
    snapshots,
    admitted: (snapshot, exchange) => steps.attempt(exchange, () => storing.store(snapshot, exchange))
  })
  const callbacks = new Callbacks({
    adapterOf,
    bodies,
    clock,
    dispatcher,
    refusals,
    run,
    subscriptions: yield* CalledSubscriptions,
    telemetry: yield* CallbackTelemetry.make()
  })
  const links = yield* StepLinks
  const stepCallbacks = new StepCallbacks({ bodies, links, refusals, run, steps: yield* ReceivingSteps })
  return IngressHandler.of({
    handle: (message, response) => {
      const url = message.url ?? ""
      if (url.startsWith(channelPath)) return callbacks.admit(message, response)
      if (url.startsWith(callbackPath)) return stepCallbacks.admit(message, response)
      return admission.admit(message, response)
    }
  })
})

/** The adapter of the definition that a subscription was made by. Null: the source has another provider by now. */
const adapterOf = ({ adapter: key, definition_key, provider_key }: CalledSubscription): CalledAdapter | null => {
  const definition = definitionOf(provider_key, definition_key)
  const adapter = definition?.trigger.adapter
  if (definition === undefined || !adapter || adapter.key !== key) return null
  return { adapter, pairKey: definition.trigger.key }
}
