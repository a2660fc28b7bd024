import type { ServerResponse } from "node:http"
import { Clock, Context, Effect, Layer } from "effect"
import { newRequest } from "@tidegate/entities/Connection/PendingRequest"
import { horizonMs, newItem, payloadOf } from "@tidegate/entities/Destination/queue/DeliveryItem"
import { Dispatcher } from "@tidegate/entities/dispatch/Dispatcher"
import { Loops } from "@tidegate/entities/Loops"
import { maxRequestBody } from "@tidegate/model/BodyLimits"
import { type ErrorCode, fail, toResponse } from "@tidegate/model/GatewayError"
import { isBudgetSpent, inLaterTurn } from "@tidegate/runtime/EventLoopBudget"
import { isId, newId, prefixes } from "@tidegate/model/Ids"
import { ingressPath, isSlug } from "@tidegate/model/Ingress"
import { binLimits } from "@tidegate/model/PublicBin"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { withoutOwn } from "@tidegate/verification/PresentedSecrets"
import { type Accepted, Journal } from "@tidegate/storage/Journal"
import { ProxyExchanges } from "@tidegate/storage/delivery/ProxyExchanges"
import { type Bin, BinIngress, binRefusal, type BinRefusal, isLookUpDue } from "./BinIngress.ts"
import { Bodies } from "./Bodies.ts"
import { Certificates } from "./Certificates.ts"
import { IngressTelemetry, type ShedReason } from "./IngressTelemetry.ts"
import { HandshakeSteps } from "./HandshakeSteps.ts"
import type { IngestLimit } from "./IngestLimits.ts"
import { type InboundRequest, readHeaders } from "./InboundRequest.ts"
import { ProxyUpstream } from "./ProxyUpstream.ts"
import { acceptedReply, rejectedReply, type Reply } from "./Reply.ts"
import { decide, type Decision, type Rejection, type Unfinished } from "./Routing.ts"
import { type SourceSnapshot, SourceSnapshots } from "./SourceSnapshots.ts"
import type { FramedMessage } from "./wire/FramedMessage.ts"

/** Bytes. Verifying a body of this size takes some milliseconds, so it shares the event-loop budget. */
const largeForATurn = 256 * 1024
/** The largest stored size of a body that is not kept: a sender may announce any number of bytes. */
const largestSize = 2 ** 31 - 1
/** Attempts to route a request whose source keeps changing. After that it is refused with a retry answer, because nothing was stored. */
const maxRoutings = 50

/**
 * Receives senders' requests, stores them and acknowledges them. It waits only for the database: it routes by the cached snapshot of
 * the source, passes the record to the journal, and answers after the commit is durable.
 *
 * Plain callbacks instead of Effect, because it runs for every request; see docs/decisions/0002-hot-path.md.
 */
export class IngressHandler extends Context.Service<
  IngressHandler,
  {
    /** Handles a request whose path begins with `ingressPath`. */
    readonly handle: (request: FramedMessage, response: ServerResponse) => void
  }
>()("@tidegate/ingress/IngressDoor") {
  static readonly layer: Layer.Layer<
    IngressHandler,
    never,
    Journal | SourceSnapshots | Dispatcher | Certificates | HandshakeSteps | ProxyUpstream | ProxyExchanges | BinIngress
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
  const loops = yield* Loops
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  const proxies = yield* TrustedProxies.Current
  const bodies = new Bodies(proxies)
  const telemetry = yield* IngressTelemetry.make(() => bodies.heldBytes)

  const refuse = (
    response: ServerResponse,
    code: ErrorCode,
    message: string,
    headers: Record<string, string> = {},
    data?: { readonly error_id: string }
  ): void => {
    const answer = toResponse(fail(code, message, data))
    reply(response, { status: answer.status, contentType: json, headers, body: JSON.stringify(answer.body) })
  }

  const shed = (response: ServerResponse, reason: ShedReason): void =>
    refuse(
      response,
      "QUEUE_UNAVAILABLE",
      "the gateway cannot store requests right now; try again",
      { "retry-after": "1" },
      telemetry.shed(reason)
    )

  const crowded = (response: ServerResponse): void => {
    telemetry.shed("sender_busy")
    refuse(response, "RATE_LIMITED", "too many requests are being received for this source, or from this address", {
      "retry-after": "1"
    })
  }

  /** Refuses a request above the source's limit: it is counted, and nothing is stored. */
  const limited = (response: ServerResponse, limit: IngestLimit, waitMs: number): void => {
    limit.refused()
    telemetry.limited()
    const retry = Math.max(1, Math.ceil(waitMs / 1_000))
    refuse(response, "RATE_LIMITED", `the source takes no more requests now; repeat this one after ${retry} s`, {
      "retry-after": String(retry)
    })
  }

  /** Refuses a request because its bin accepts none; nothing is stored. */
  const refuseOfBin = (response: ServerResponse, { code, message, waitMs }: BinRefusal): void => {
    telemetry.limited()
    refuse(
      response,
      code,
      message,
      waitMs === null ? noHeaders : { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1_000))) }
    )
  }

  const fault = (response: ServerResponse, cause: unknown): void =>
    refuse(response, "INTERNAL_ERROR", "the request could not be processed", {}, telemetry.fault(cause))

  const unknownSource = (response: ServerResponse): void => {
    telemetry.unknownSource()
    refuse(response, "NOT_FOUND", "there is no source at this URL")
  }

  const reject = (response: ServerResponse, snapshot: SourceSnapshot, { cause, code, message }: Rejection): void =>
    reply(
      response,
      rejectedReply(
        snapshot.reply,
        fail(code, message),
        cause === "SOURCE_METHOD_NOT_ALLOWED" ? { allow: snapshot.allowedMethods.join(", ") } : noHeaders
      )
    )

  /** Answers a stored request: with the upstream's answer in proxy mode, else with the source's own. */
  const answer = (exchange: Exchange, snapshot: SourceSnapshot, decision: Decision): void => {
    const { message, request, response } = exchange
    const { handshake, input, record, rejection } = decision
    if (rejection !== null) return reject(response, snapshot, rejection)
    if (handshake !== null) return reply(response, { headers: noHeaders, ...handshake })
    if (snapshot.proxy === null) return reply(response, acceptedReply(snapshot.reply, record.id, input))
    bodies.keep(request.bodySize)
    upstream.forward(
      {
        settings: snapshot.proxy,
        request:
          snapshot.proxy.forward_credentials === true ? request : withoutOwn(request, snapshot.verifier.presented),
        shownQuery: decision.request.query,
        publicUrl: snapshot.origin,
        message,
        response,
        requestId: record.id
      },
      (outcome) => {
        bodies.keep(-request.bodySize)
        telemetry.proxied(record, outcome)
        exchanges.write({ ...outcome, teamId: snapshot.teamId, sourceId: snapshot.id })
      }
    )
  }

  /** Answers with a custom response, which may have to parse and search the body: two steps, each within the event-loop budget. */
  const answerInTurn = (exchange: Exchange, snapshot: SourceSnapshot, decision: Decision): void => {
    const isPlain = snapshot.reply.customResponse === null || snapshot.proxy !== null
    if (isPlain || decision.rejection !== null || decision.handshake !== null)
      return answer(exchange, snapshot, decision)
    const later = (): void => defer(exchange, () => answerInTurn(exchange, snapshot, decision))
    if (isBudgetSpent()) return later()
    const since = performance.now()
    if (exchange.request.bodySize > largeForATurn) {
      decision.input().body()
      if (isBudgetSpent(since)) return later()
    }
    answer(exchange, snapshot, decision)
    if (performance.now() - since > 1) isBudgetSpent(since)
  }

  const hint = ({ input, record, request }: Decision): void => {
    if (record.pending.length > 0) {
      const pending = newRequest(record, request, input())
      for (const { connectionId, line } of record.pending) {
        // Events with an ordering key are read from SQL in their order.
        if (line === null) dispatcher.route(connectionId, pending)
        else dispatcher.wake(connectionId)
      }
    }
    for (const { workflowId } of record.runs) dispatcher.run(workflowId)
    if (record.events.length === 0) return
    const payload = payloadOf(request, record)
    const soon = record.ingestedAt + horizonMs
    for (const event of record.events) {
      if (event.dueAt > soon) continue
      dispatcher.deliver(event.destinationId, newItem(event, record, record.ingestedAt, payload))
    }
  }

  /**
   * Decides by a snapshot and stores. Repeats it with a newer snapshot if that one was outdated, and with a certificate if one was
   * missing.
   */
  const store = (snapshot: SourceSnapshot, exchange: Exchange, routings: number): void => {
    const { request, response } = exchange
    if (routings >= maxRoutings) return shed(response, "source_keeps_changing")
    const isLarge = request.bodySize > largeForATurn
    if (isLarge && isBudgetSpent()) return defer(exchange, () => store(snapshot, exchange, routings))
    const since = isLarge ? performance.now() : 0
    const decision = decide(snapshot, request, isBudgetSpent)
    if (isLarge) isBudgetSpent(since)
    if ("certificateUrl" in decision) {
      certificates.load(decision.certificateUrl).then(
        () => attempt(exchange, () => store(snapshot, exchange, routings + 1)),
        (error: unknown) => {
          run(Effect.logWarning("a sender's certificate could not be fetched", { source_id: snapshot.id, error }))
          shed(response, "certificate")
        }
      )
      return
    }
    keep(snapshot, exchange, decision, routings)
  }

  /** Runs the step in a later event-loop iteration, because the budget of this one is used up. */
  const defer = (exchange: Exchange, step: () => void): void => {
    const held = heldBy(exchange)
    bodies.keep(held)
    inLaterTurn(() => {
      bodies.keep(-held)
      attempt(exchange, step)
    })
  }

  /** Stores the decision once it is complete. */
  const keep = (
    snapshot: SourceSnapshot,
    exchange: Exchange,
    decision: Decision | Unfinished,
    routings: number
  ): void => {
    if ("resume" in decision) {
      return defer(exchange, () => keep(snapshot, exchange, decision.resume(), routings))
    }
    const { response } = exchange
    const { handshake } = decision
    if (handshake === null || (handshake.remember === undefined && handshake.confirmUrl === undefined)) {
      return commit(snapshot, exchange, decision, routings)
    }
    // The snapshot is checked before the steps of a handshake, because the commit would find it outdated too late: the steps would
    // be done, for good, for a source that the URL no longer names.
    snapshots.load(exchange.target.name).then(
      (current) =>
        attempt(exchange, () => {
          if (current === null) return unknownSource(response)
          if (current.id !== snapshot.id || current.version !== snapshot.version) {
            return store(current, exchange, routings + 1)
          }
          take(snapshot, exchange, decision, handshake, routings)
        }),
      () => shed(response, "source_unknown_yet")
    )
  }

  const take = (
    snapshot: SourceSnapshot,
    exchange: Exchange,
    decision: Decision,
    handshake: NonNullable<Decision["handshake"]>,
    routings: number
  ): void => {
    const { response } = exchange
    handshakes.take(snapshot, handshake).then(
      () => attempt(exchange, () => commit(snapshot, exchange, decision, routings)),
      (error: unknown) => {
        run(Effect.logWarning("a handshake could not be completed", { source_id: snapshot.id, error }))
        shed(response, "handshake")
      }
    )
  }

  const commit = (snapshot: SourceSnapshot, exchange: Exchange, decision: Decision, routings: number): void => {
    if (snapshot.bin !== null) return capture(snapshot, snapshot.bin, exchange, decision, routings)
    const { response } = exchange
    const limit = decision.rejection === null ? snapshot.limit : null
    // Taken only here, so that rejected and disconnected requests use nothing of the limit. No other request can run in between.
    if (limit?.take() === false) return limited(response, limit, limit.wait())
    journal.accept(decision.record, (outcome) => {
      // A request with an unavailable database may be stored all the same, but rarely is: an outage must not use up an hour's limit.
      if (outcome !== "committed") limit?.giveBack()
      conclude(snapshot, exchange, decision, routings, outcome)
    })
  }

  /** The same for a bin, without the journal, which is for requests of teams. */
  const capture = (
    snapshot: SourceSnapshot,
    bin: Bin,
    exchange: Exchange,
    decision: Decision,
    routings: number
  ): void => {
    const held = heldBy(exchange)
    bodies.keep(held)
    bins.store(bin, decision.record, (outcome) => {
      bodies.keep(-held)
      if (typeof outcome === "object") return refuseOfBin(exchange.response, outcome)
      conclude(snapshot, exchange, decision, routings, outcome)
    })
  }

  /** Answers according to the result of the commit. */
  const conclude = (
    snapshot: SourceSnapshot,
    exchange: Exchange,
    decision: Decision,
    routings: number,
    outcome: Accepted
  ): void => {
    const { response } = exchange
    switch (outcome) {
      case "committed":
        hint(decision)
        telemetry.stored(decision)
        return attempt(exchange, () => answerInTurn(exchange, snapshot, decision))
      case "stale":
        telemetry.stale()
        snapshots.load(exchange.target.name).then(
          (current) =>
            attempt(exchange, () => {
              if (current === null) return unknownSource(response)
              // The body was cut at the size limit of a bin, but the bin has become a source: the sender has to send it again.
              if (isCutFor(exchange, snapshot, current)) return shed(response, "source_unknown_yet")
              store(current, exchange, routings + 1)
            }),
          () => shed(response, "source_unknown_yet")
        )
        return
      case "unavailable":
        return shed(response, "database")
      case "failed":
        return refuse(response, "INTERNAL_ERROR", "the request could not be stored", {}, telemetry.failed(decision))
    }
  }

  const attempt = ({ response }: Exchange, step: () => void): void => {
    try {
      step()
    } catch (cause) {
      fault(response, cause)
    }
  }

  const receive = (
    snapshot: SourceSnapshot | null,
    target: Target,
    message: FramedMessage,
    response: ServerResponse
  ): void => {
    if (snapshot === null) {
      message.discard(response)
      return unknownSource(response)
    }
    const { bin } = snapshot
    if (bin !== null) {
      const now = clock.currentTimeMillisUnsafe()
      const refused = binRefusal(bin, now)
      if (refused !== null && isLookUpDue(bin, now)) return lookUp(target, message, response)
      if (refused !== null) {
        message.discard(response)
        return refuseOfBin(response, refused)
      }
    }
    // Checked before the body is read, so that a flood uses no memory. A disabled source answers as disabled, whatever its limit is.
    const waitMs = snapshot.disabled || snapshot.limit === null ? 0 : snapshot.limit.wait()
    if (waitMs > 0) {
      message.discard(response)
      return limited(response, snapshot.limit!, waitMs)
    }
    // All bins together have the capacity of one source.
    const counted = bin === null ? snapshot.id : "bins"
    const largest = bin === null ? maxRequestBody : binLimits.body
    const reading = bodies.read(message, counted, largest, (outcome) => {
      if (outcome.kind !== "whole") {
        // The rest of the body is not read: the connection ends with the answer.
        response.setHeader("connection", "close")
        message.discard(response)
        if (outcome.kind === "full") return shed(response, "bodies_full")
        if (outcome.kind === "busy") return crowded(response)
      }
      const receivedAt = clock.currentTimeMillisUnsafe()
      const headers = readHeaders(message.rawHeaders)
      const request: InboundRequest = {
        id: newId(prefixes.request, receivedAt),
        receivedAt,
        method: message.method ?? "POST",
        target: message.url ?? "",
        path: target.path,
        query: target.query,
        headers,
        body: outcome.kind === "whole" ? outcome.body : null,
        bodySize: outcome.kind === "whole" ? outcome.body.length : Math.min(outcome.size, largestSize),
        originalIp: proxies.clientOf(message.socket.remoteAddress, message.headers),
        isLoop: !loops.admits(headers)
      }
      const exchange = { target, request, message, response }
      attempt(exchange, () => store(snapshot, exchange, 1))
    })
    if (reading && message.headers.expect !== undefined && message.httpVersionMinor > 0) response.writeContinue()
  }

  const lookUp = (target: Target, message: FramedMessage, response: ServerResponse): void => {
    snapshots.load(target.name).then(
      (loaded) => {
        // Measured from the end of the look-up: otherwise a slow database would be queried without a pause.
        if (loaded !== null && loaded.bin !== null) loaded.bin.lookedUpAt = clock.currentTimeMillisUnsafe()
        receive(loaded, target, message, response)
      },
      () => {
        message.discard(response)
        shed(response, "source_unknown_yet")
      }
    )
  }

  return IngressHandler.of({
    handle: (message, response) => {
      const target = readTarget(message.url ?? "")
      if (target === null) {
        message.discard(response)
        return unknownSource(response)
      }
      if (journal.isFull() || bodies.isFull) {
        message.discard(response)
        return shed(response, bodies.isFull ? "bodies_full" : "journal_full")
      }
      const snapshot = snapshots.get(target.name)
      if (snapshot !== undefined) return receive(snapshot, target, message, response)
      lookUp(target, message, response)
    }
  })
})

interface Target {
  /** The id or the slug of a source. */
  readonly name: string
  readonly path: string
  readonly query: string
}

const noHeaders: Record<string, string> = {}
const json = "application/json; charset=utf-8"

/** `/e/{id or slug}[/suffix][?query]`; null if it cannot be a source's URL. */
const readTarget = (url: string): Target | null => {
  const queryAt = url.indexOf("?")
  const path = queryAt < 0 ? url : url.slice(0, queryAt)
  const suffixAt = path.indexOf("/", ingressPath.length)
  const name = suffixAt < 0 ? path.slice(ingressPath.length) : path.slice(ingressPath.length, suffixAt)
  if (!isId(prefixes.source, name) && !isSlug(name)) return null
  return {
    name,
    path: suffixAt < 0 ? "/" : path.slice(suffixAt),
    query: queryAt < 0 ? "" : url.slice(queryAt + 1)
  }
}

/** A request, and what is needed to answer it. */
interface Exchange {
  readonly target: Target
  readonly request: InboundRequest
  readonly message: FramedMessage
  readonly response: ServerResponse
}

/** Bytes of the body that are in memory: none if the body was announced but not read. */
const heldBy = ({ request }: Exchange): number => request.body?.length ?? 0

/** Whether the body was not read because of its size, but the present source would accept it. */
const isCutFor = ({ request }: Exchange, before: SourceSnapshot, now: SourceSnapshot): boolean =>
  before.bin !== null && now.bin === null && request.body === null && request.bodySize <= maxRequestBody

const reply = (response: ServerResponse, { body, contentType, headers, status }: Reply): void => {
  if (response.headersSent || response.destroyed) return
  const length = Buffer.byteLength(body)
  const framed = status === 204 || status === 304 ? headers : { ...headers, "content-length": length }
  response.writeHead(status, contentType === null ? framed : { ...framed, "content-type": contentType })
  // Node writes the headers in the encoding of the text that follows them. In latin-1 they keep their bytes.
  response.end(length === body.length ? body : Buffer.from(body), "latin1")
}
