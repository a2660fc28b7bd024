import { isBudgetSpent } from "@tidegate/runtime/EventLoopBudget"
import type { Resumable } from "@tidegate/runtime/Resumable"
import type { ProxyExchanges } from "@tidegate/storage/delivery/ProxyExchanges"
import { withoutOwn } from "@tidegate/verification/PresentedSecrets"
import type { Bodies } from "../Bodies.ts"
import type { IngressTelemetry } from "../IngressTelemetry.ts"
import type { ProxyUpstream } from "../ProxyUpstream.ts"
import type { WaitingSenders } from "../WaitingSenders.ts"
import { acceptedReply } from "../Reply.ts"
import type { Decision } from "../Routing.ts"
import type { SourceSnapshot } from "../SourceSnapshot.ts"
import { type Exchange, noHeaders, reply } from "./Exchange.ts"
import type { Refusals } from "./Refusals.ts"
import { largeForATurn, type Steps } from "./Steps.ts"

/**
 * Answers stored requests: with the upstream's answer in proxy mode, else with the output of a workflow's step, if one answers
 * senders, else with the source's own.
 */
export class Answers {
  readonly #bodies: Bodies
  readonly #exchanges: ProxyExchanges["Service"]
  readonly #refusals: Refusals
  readonly #senders: WaitingSenders["Service"]
  readonly #steps: Steps
  readonly #telemetry: IngressTelemetry
  readonly #upstream: ProxyUpstream["Service"]

  constructor(needs: {
    readonly bodies: Bodies
    readonly exchanges: ProxyExchanges["Service"]
    readonly refusals: Refusals
    readonly senders: WaitingSenders["Service"]
    readonly steps: Steps
    readonly telemetry: IngressTelemetry
    readonly upstream: ProxyUpstream["Service"]
  }) {
    this.#bodies = needs.bodies
    this.#exchanges = needs.exchanges
    this.#refusals = needs.refusals
    this.#senders = needs.senders
    this.#steps = needs.steps
    this.#telemetry = needs.telemetry
    this.#upstream = needs.upstream
  }

  /** A custom response may have to parse and search the body: steps, each within the event-loop budget. `parsing`: those not done yet. */
  send(exchange: Exchange, snapshot: SourceSnapshot, decision: Decision, parsing?: Resumable<void>): void {
    const isPlain = snapshot.reply.customResponse === null || snapshot.proxy !== null
    if (isPlain || decision.rejection !== null || decision.handshake !== null) {
      return this.#send(exchange, snapshot, decision)
    }
    const steps = parsing ?? decision.input().parsing()
    const later = (): void => this.#steps.defer(exchange, () => this.send(exchange, snapshot, decision, steps))
    if (isBudgetSpent()) return later()
    const since = performance.now()
    if (exchange.request.bodySize > largeForATurn) {
      while (steps.next().done !== true) if (isBudgetSpent(since)) return later()
      if (isBudgetSpent(since)) return later()
    }
    this.#send(exchange, snapshot, decision)
    if (performance.now() - since > 1) isBudgetSpent(since)
  }

  #send(exchange: Exchange, snapshot: SourceSnapshot, decision: Decision): void {
    const { response } = exchange
    const { handshake, input, record, rejection } = decision
    if (rejection !== null) return this.#refusals.rejected(response, snapshot, rejection)
    if (handshake !== null) return reply(response, { headers: noHeaders, ...handshake })
    if (snapshot.proxy !== null) return this.#forward(exchange, snapshot, snapshot.proxy, decision)
    const usual = acceptedReply(snapshot.reply, record.id, input)
    const { answer } = snapshot
    const run = answer === null ? undefined : record.runs.find(({ workflowId }) => workflowId === answer.workflowId)
    if (answer === null || run === undefined) return reply(response, usual)
    // The body is no longer needed: a sender who waits holds only the answer that it gets otherwise.
    this.#senders.wait(
      {
        workflowId: answer.workflowId,
        team_id: snapshot.teamId,
        run_id: run.id,
        step_id: answer.step_id,
        timeout_ms: answer.timeout_ms
      },
      response,
      (given) => reply(response, given ?? usual)
    )
  }

  #forward(
    { message, request, response }: Exchange,
    snapshot: SourceSnapshot,
    settings: NonNullable<SourceSnapshot["proxy"]>,
    decision: Decision
  ): void {
    this.#bodies.keep(request.bodySize)
    this.#upstream.forward(
      {
        settings,
        request: settings.forward_credentials === true ? request : withoutOwn(request, snapshot.verifier.presented),
        shownQuery: decision.request.query,
        publicUrl: snapshot.origin,
        message,
        response,
        requestId: decision.record.id
      },
      (outcome) => {
        this.#bodies.keep(-request.bodySize)
        this.#telemetry.proxied(decision.record, outcome)
        this.#exchanges.write({ ...outcome, teamId: snapshot.teamId, sourceId: snapshot.id })
      }
    )
  }
}
