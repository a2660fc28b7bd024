import { Cause, Effect, Exit } from "effect"
import type {
  AttemptFacts,
  HttpSender,
  LocalSender,
  OutboundRequest,
  PullSender,
  TunnelSender
} from "@tidegate/connectors/Connector"
import { Egress } from "@tidegate/egress/Egress"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { Echoes } from "@tidegate/redaction/Echoes"
import type { Message } from "@tidegate/model/Message"
import { metrics } from "@tidegate/telemetry/Metrics"
import { traceHeaders } from "@tidegate/telemetry/Tracing"
import { Loops } from "../../Loops.ts"
import { type Attempt, type Outcome, unanswered, verdictOf } from "./Attempt.ts"
import type { AttemptEnding, EndingHost } from "./AttemptEnding.ts"
import { Batching, type BatchSender, type Member } from "./Batching.ts"
import type { HeldSession, SendExit } from "./Sessions.ts"
import type { Polls, PullEnding } from "../pull/Polls.ts"
import { outcomeOf as pullOutcomeOf, pulledMessageOf } from "../pull/PulledMessage.ts"
import type { Returned, Tunnel, TunnelEnding } from "../tunnel/Tunnel.ts"
import { jobOf, outcomeOf } from "../tunnel/TunnelJob.ts"

/**
 * The longest attempt by HTTP or through a tunnel (ms), including the wait for a token. A step has a time-out of its own, and a destination
 * may have one for its calls.
 */
const attemptMs = 30_000
/** The part of it that is kept for sending when a token has to be obtained. */
export const forSendingMs = 1_000

/** What is kept of the answer to a call of several events: the results of them all have to be in it. */
const batchAnswerBytes = 1024 * 1024
/** What each of their attempts may always record of it (bytes). */
const minOfAnswer = 1_024

export const timeOf = ({ call }: Attempt): number => call?.timeoutMs ?? attemptMs

/** The headers of a complete request, with the headers that every request of its kind has. */
const headersOf = (
  { call, item, trace }: Attempt,
  headers: ReadonlyArray<string>,
  loops: Loops
): ReadonlyArray<string> => {
  const traced = traceHeaders(trace, headers)
  if (call === null) {
    const { headers: sent, requestId } = item.payload
    return [...traced, loopHeader, loops.next(sent, requestId)]
  }
  const own = new Set(call.headers.filter((_, i) => i % 2 === 0))
  return [...traced.filter((_, i) => !own.has(traced[i - (i % 2)]!.toLowerCase())), ...call.headers]
}

/** Sends prepared attempts: one function for each kind of sender. */
export const makeSenders = Effect.fnUntraced(function* (
  { ends, heard, holdsLease, now, run }: EndingHost,
  ending: AttemptEnding
) {
  const egress = yield* Egress
  const loops = yield* Loops
  const { abandon, answered, brokeDown, finish, guarded, isOver, mayWrite, soon } = ending

  /** A message can come back by a subscription of a source: it carries its chain as a request does. */
  const marked = (attempt: Attempt, facts: AttemptFacts): AttemptFacts => {
    const headers = headersOf(attempt, [], loops)
    const at = headers.indexOf(loopHeader)
    return at < 0 ? facts : { ...facts, loop: headers[at + 1]! }
  }

  /** A send over a session has ended. */
  const sent = (attempt: Attempt, exit: SendExit): void => {
    const at = now()
    if (Exit.isSuccess(exit)) {
      const outcome = { ...exit.value, errorCode: null, errorMessage: null, sentAt: attempt.startedAt, respondedAt: at }
      return finish(attempt, outcome, "successful", "answered")
    }
    const failure = Cause.findErrorOption(exit.cause)
    if (failure._tag === "Some" && failure.value.unsent === true) return abandon(attempt)
    if (failure._tag === "None" && !Cause.hasInterruptsOnly(exit.cause)) return brokeDown(attempt, exit.cause)
    const { broken, code, final, message } =
      failure._tag === "Some"
        ? failure.value
        : ({
            code: "NETWORK_REQUEST_CANCELED",
            message: "cancelled by the gateway",
            final: false,
            broken: true
          } as const)
    const outcome = unanswered(code, message, attempt.startedAt, at)
    if (isOver(outcome)) abandon(attempt)
    else finish(attempt, outcome, { code, message, final }, broken ? "overloaded" : "answered")
  }

  /** A delivery through the tunnel has ended. */
  const wentThrough = (attempt: Attempt, end: TunnelEnding | Returned, judge: HttpSender["judge"]): void => {
    if (end.kind === "returned") return ends.returned(attempt)
    soon(attempt, () => {
      const outcome = outcomeOf(end, attempt.startedAt, now(), timeOf(attempt))
      const verdict = verdictOf(outcome, judge)
      heard(outcome, verdict)
      // The end says nothing about how many may be under way: with a tunnel that number is fixed.
      finish(attempt, outcome, verdict, end.kind === "away" ? "unsent" : "answered")
    })
  }

  /** Sends one call of several attempts. */
  const sendBatch = (sender: BatchSender, members: ReadonlyArray<Member>): void => {
    const [{ attempt, facts }] = members as readonly [Member, ...ReadonlyArray<Member>]
    const broke = (cause: unknown): void =>
      members.forEach((member) => guarded(member.attempt, () => brokeDown(member.attempt, cause)))
    // Each attempt records its part: a server must not have one answer stored hundreds of times.
    const longest = Math.max(minOfAnswer, Math.floor(maxCapturedBytes / members.length))
    const shortened = (outcome: Outcome): Outcome =>
      outcome.body.length <= longest
        ? outcome
        : { ...outcome, body: outcome.body.subarray(0, longest), bodyTruncated: true }
    const exchanged = async (): Promise<Outcome> => {
      const request = sender.batch.call(
        members.map(({ part }) => part),
        members.map((member) => member.facts)
      )
      for (const one of members) one.attempt.url = request.shownUrl
      const completing = sender.batch.complete ?? sender.complete
      const mark = loops.nextOfAll(members.map((member) => member.attempt.item.payload))
      const marked = { ...request, headers: [...request.headers, loopHeader, mark] }
      const { secret, ...complete } = completing === undefined ? marked : await completing(marked, facts)
      if (secret !== undefined) for (const one of members) one.attempt.echoes = Echoes.with(one.attempt.echoes, secret)
      return egress.deliver({
        ...complete,
        mayStart: mayWrite,
        timeoutMs: sender.timeoutMs ?? timeOf(attempt),
        captureBytes: batchAnswerBytes
      })
    }
    exchanged().then((outcome) => {
      if (outcome.errorCode !== null || outcome.status === null) {
        return members.forEach((member) => member.ended(shortened(outcome), sender.judge))
      }
      let results: ReturnType<typeof sender.batch.judge>
      try {
        results = sender.batch.judge({ ...outcome, status: outcome.status }, members.length)
      } catch (cause) {
        return broke(cause)
      }
      // Nobody knows which of them the target does not take: the others have to arrive.
      if (results === null) return members.forEach((member) => sendBatch(sender, [member]))
      const judged = results
      members.forEach(({ attempt, ended }, place) =>
        guarded(attempt, () => {
          const { body, verdict } = judged[place]!
          ended(shortened({ ...outcome, body, bodyTruncated: false }), () => verdict)
        })
      )
    }, broke)
  }
  const batching = new Batching(run, sendBatch)
  /** The lease of a message has ended, or did not begin. */
  const wasPulled = (attempt: Attempt, end: PullEnding, { judge, leaseMs }: PullSender): void => {
    if (end.kind === "returned") return ends.returned(attempt)
    if (end.kind === "abandoned") return abandon(attempt)
    metrics.pulledMessages.at(end.kind).add()
    soon(attempt, () => {
      const outcome = pullOutcomeOf(end, leaseMs, now())
      finish(attempt, outcome, verdictOf(outcome, judge), "unsent")
    })
  }

  /** In a function of its own, so that a lease does not keep the message in memory. */
  const leasing = (attempt: Attempt, sender: PullSender) => ({
    leaseMs: sender.leaseMs,
    handedOut: (): void => ends.handedOut(attempt),
    done: (end: PullEnding): void => wasPulled(attempt, end, sender)
  })

  return {
    marked,

    session: (attempt: Attempt, session: HeldSession, message: Message, facts: AttemptFacts): void =>
      session.send(message, marked(attempt, facts), timeOf(attempt), holdsLease, (exit) =>
        soon(attempt, () => sent(attempt, exit))
      ),

    /** `waitedMs`: the part of its time that is spent already. `then` gets the target's answer, and does not throw. */
    http: (
      attempt: Attempt,
      sender: HttpSender,
      request: OutboundRequest,
      facts: AttemptFacts,
      waitedMs: number,
      then: (answer: Outcome) => void
    ): void => {
      const headers = headersOf(attempt, request.headers, loops)
      const exchange = (complete: OutboundRequest, headers: OutboundRequest["headers"]) =>
        egress.deliver({
          ...complete,
          headers,
          mayStart: mayWrite,
          timeoutMs:
            (attempt.call === null ? sender.timeoutMs : undefined) ??
            Math.max(forSendingMs, timeOf(attempt) - waitedMs),
          captureBytes: attempt.call?.captureBytes ?? maxCapturedBytes,
          ...(attempt.call === null ? {} : { signal: attempt.call.signal })
        })
      const exchanged =
        sender.complete === undefined
          ? exchange(request, headers)
          : sender.complete({ ...request, headers }, facts).then(({ secret, ...complete }) => {
              if (secret !== undefined) attempt.echoes = Echoes.with(attempt.echoes, secret)
              return exchange(complete, complete.headers)
            })
      exchanged.then(then, (cause: unknown) => brokeDown(attempt, cause))
    },

    /** Waits for others to be sent with, and ends with its own part of the answer. */
    batch: (sender: BatchSender, member: Member): void => batching.add(sender, member),

    tunnel: (
      attempt: Attempt,
      { judge, origin }: TunnelSender,
      request: OutboundRequest,
      facts: AttemptFacts,
      tunnel: Tunnel
    ): void => {
      const { id: cliId, localUrl } = tunnel.session ?? { id: null, localUrl: null }
      attempt.cliId = cliId
      if (localUrl !== null) attempt.url = localUrl + request.shownUrl.slice(origin.length)
      const headers = headersOf(attempt, request.headers, loops)
      const path = request.url.slice(origin.length)
      const job = jobOf({ ...request, headers }, path, facts, attempt.item.payload.dataId, localUrl, timeOf(attempt))
      tunnel.send(job, (end) => wentThrough(attempt, end, judge))
    },

    pull: (attempt: Attempt, sender: PullSender, request: OutboundRequest, facts: AttemptFacts, polls: Polls): void => {
      const headers = headersOf(attempt, request.headers, loops)
      polls.offer({
        message: pulledMessageOf({ ...request, headers }, request.url.slice(sender.origin.length), facts),
        ...leasing(attempt, sender)
      })
    },

    local: (attempt: Attempt, sender: LocalSender, request: OutboundRequest): void => {
      const called =
        attempt.call === null ? request : { ...request, headers: headersOf(attempt, request.headers, loops) }
      const answer = sender.answer(called)
      const outcome = { ...answer, errorCode: null, errorMessage: null, sentAt: attempt.startedAt, respondedAt: now() }
      soon(attempt, () => answered(attempt, outcome, sender.judge))
    }
  }
})
