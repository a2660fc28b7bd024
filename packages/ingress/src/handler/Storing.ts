import { Effect } from "effect"
import type { Dispatcher } from "@tidegate/entities/dispatch/Dispatcher"
import { wakeStored } from "@tidegate/entities/dispatch/WakeStored"
import { isBudgetSpent } from "@tidegate/runtime/EventLoopBudget"
import type { Accepted, CommittedBy, Journal } from "@tidegate/storage/Journal"
import type { Bin, BinIngress } from "../BinIngress.ts"
import type { Bodies } from "../Bodies.ts"
import type { Certificates } from "../Certificates.ts"
import type { HandshakeSteps } from "../HandshakeSteps.ts"
import type { IngressTelemetry } from "../IngressTelemetry.ts"
import { decide, type Decision, type Unfinished } from "../Routing.ts"
import type { SourceSnapshot } from "../SourceSnapshot.ts"
import type { SourceSnapshots } from "../SourceSnapshots.ts"
import type { Answers } from "./Answers.ts"
import { type Exchange, heldBy, isCutFor } from "./Exchange.ts"
import type { Refusals } from "./Refusals.ts"
import { largeForATurn, type Steps } from "./Steps.ts"

/**
 * A request whose source keeps changing is refused at this attempt to route it, with a retry answer, because nothing was stored.
 */
const maxRoutings = 50

interface Needs {
  readonly answers: Answers
  readonly bins: BinIngress["Service"]
  readonly bodies: Bodies
  readonly certificates: Certificates["Service"]
  readonly dispatcher: Dispatcher["Service"]
  readonly handshakes: HandshakeSteps["Service"]
  readonly journal: Journal["Service"]
  readonly refusals: Refusals
  readonly run: (effect: Effect.Effect<void>) => void
  readonly snapshots: SourceSnapshots["Service"]
  readonly steps: Steps
  readonly telemetry: IngressTelemetry
}

/** Routes a received request by a snapshot of its source, stores it, wakes the actors that have work by it, and has it answered. */
export class Storing {
  readonly #needs: Needs

  constructor(needs: Needs) {
    this.#needs = needs
  }

  /**
   * Decides by a snapshot and stores. Repeats it with a newer snapshot if that one was outdated, and with a certificate if one was
   * missing. `routings`: how often the request has been routed, with this time.
   */
  store(snapshot: SourceSnapshot, exchange: Exchange, routings = 1): void {
    const { refusals, steps } = this.#needs
    const { request, response } = exchange
    if (routings >= maxRoutings) return refusals.shed(response, "source_keeps_changing")
    const isLarge = request.bodySize > largeForATurn
    if (isLarge && isBudgetSpent()) return steps.defer(exchange, () => this.store(snapshot, exchange, routings))
    const since = isLarge ? performance.now() : 0
    const decision = decide(snapshot, request, isBudgetSpent)
    if (isLarge) isBudgetSpent(since)
    if (!("certificateUrl" in decision)) return this.#keep(snapshot, exchange, decision, routings)
    this.#needs.certificates.load(decision.certificateUrl).then(
      () => steps.attempt(exchange, () => this.store(snapshot, exchange, routings + 1)),
      (error: unknown) => {
        this.#needs.run(
          Effect.logWarning("a sender's certificate could not be fetched", { source_id: snapshot.id, error })
        )
        refusals.shed(response, "certificate")
      }
    )
  }

  /** Stores the decision once it is complete. */
  #keep(snapshot: SourceSnapshot, exchange: Exchange, decision: Decision | Unfinished, routings: number): void {
    const { steps } = this.#needs
    if ("resume" in decision) {
      return steps.defer(exchange, () => this.#keep(snapshot, exchange, decision.resume(), routings))
    }
    const { handshake } = decision
    if (handshake === null || (handshake.remember === undefined && handshake.confirmUrl === undefined)) {
      return this.#commit(snapshot, exchange, decision, routings)
    }
    this.#shakeHands(snapshot, exchange, decision, handshake, routings)
  }

  /**
   * Takes the steps of a handshake, then stores. The snapshot is checked before, because the commit would find it outdated too late:
   * the steps would be done, for good, for a source that the URL no longer names.
   */
  #shakeHands(
    snapshot: SourceSnapshot,
    exchange: Exchange,
    decision: Decision,
    handshake: NonNullable<Decision["handshake"]>,
    routings: number
  ): void {
    const { handshakes, refusals, run, steps } = this.#needs
    this.#withCurrent(exchange, (current) => {
      if (current.id !== snapshot.id || current.version !== snapshot.version) {
        return this.store(current, exchange, routings + 1)
      }
      handshakes.take(snapshot, handshake).then(
        () => steps.attempt(exchange, () => this.#commit(snapshot, exchange, decision, routings)),
        (error: unknown) => {
          run(Effect.logWarning("a handshake could not be completed", { source_id: snapshot.id, error }))
          refusals.shed(exchange.response, "handshake")
        }
      )
    })
  }

  #commit(snapshot: SourceSnapshot, exchange: Exchange, decision: Decision, routings: number): void {
    if (snapshot.bin !== null) return this.#capture(snapshot, snapshot.bin, exchange, decision, routings)
    const limit = decision.rejection === null ? snapshot.limit : null
    // Taken only here, so that rejected and disconnected requests use nothing of the limit. No other request can run in between.
    if (limit?.take() === false) return this.#needs.refusals.limited(exchange.response, limit, limit.wait())
    this.#needs.journal.accept(decision.record, (outcome, by) => {
      // A request with an unavailable database may be stored all the same, but rarely is: an outage must not use up an hour's limit.
      if (outcome !== "committed") limit?.giveBack()
      this.#conclude(snapshot, exchange, decision, routings, outcome, by)
    })
  }

  /** The same for a bin, without the journal, which is for requests of teams. */
  #capture(snapshot: SourceSnapshot, bin: Bin, exchange: Exchange, decision: Decision, routings: number): void {
    const { bins, bodies, refusals } = this.#needs
    const held = heldBy(exchange)
    bodies.keep(held)
    bins.store(bin, decision.record, (outcome) => {
      bodies.keep(-held)
      if (typeof outcome === "object") return refusals.byBin(exchange.response, outcome)
      this.#conclude(snapshot, exchange, decision, routings, outcome, "now")
    })
  }

  /** Answers according to the result of the commit. */
  #conclude(
    snapshot: SourceSnapshot,
    exchange: Exchange,
    decision: Decision,
    routings: number,
    outcome: Accepted,
    by: CommittedBy
  ): void {
    const { answers, dispatcher, refusals, steps, telemetry } = this.#needs
    const { response } = exchange
    switch (outcome) {
      case "committed":
        // Without a wake-up, a poller finds the work.
        if (by !== "elsewhere") wakeStored(dispatcher, decision.record, decision.request, decision.input)
        telemetry.stored(decision)
        return steps.attempt(exchange, () => answers.send(exchange, snapshot, decision))
      case "stale":
        telemetry.stale()
        return this.#withCurrent(exchange, (current) => {
          // The body was cut at the size limit of a bin, but the bin has become a source: the sender has to send it again.
          if (isCutFor(exchange, snapshot, current)) return refusals.shed(response, "source_unknown_yet")
          this.store(current, exchange, routings + 1)
        })
      case "unavailable":
        return refusals.shed(response, "database")
      case "failed":
        return refusals.notStored(response, telemetry.failed(decision))
    }
  }

  /** Goes on with the present snapshot of the source that the URL names. */
  #withCurrent(exchange: Exchange, step: (current: SourceSnapshot) => void): void {
    const { refusals, snapshots, steps } = this.#needs
    const { response, target } = exchange
    snapshots.load(target.name).then(
      (current) => steps.attempt(exchange, () => (current === null ? refusals.unknownSource(response) : step(current))),
      () => refusals.shed(response, "source_unknown_yet")
    )
  }
}
