import type { IncomingMessage } from "node:http"
import type { WebSocket } from "@effect/platform-node/NodeWS"
import { Cause, Clock, Effect, Latch, Result, type Scope } from "effect"
import type { Sharding } from "effect/cluster/Sharding"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import type { Heard, TunnelResult } from "@tidegate/entities/Destination/tunnel/TunnelProtocol"
import { type GatewayError, statusOf } from "@tidegate/model/GatewayError"
import { metrics } from "@tidegate/telemetry/Metrics"
import { askOwner } from "../handlers/Calls.ts"
import { closeCodeOf, kind, later, Sockets } from "../streams/Sockets.ts"
import type { Held } from "../streams/StreamSocket.ts"
import type { AdmittedTunnel } from "./TunnelAdmission.ts"
import { deliveryFrame, helloFrame, largestResult, pongFrame, readFrame } from "./TunnelFrames.ts"
import { TunnelSocket } from "./TunnelSocket.ts"

/** Tunnels of one team in one process. */
const maxPerTeam = 64
/** Deliveries that a client may have at once: the destination's actor hands out no more. */
const maxUnderWay = 50

/** How often a client has to send something; and how often the gateway checks that it is alive (ms). */
const heartbeatSeconds = 30
const pingEveryMs = 10_000
/** The number of pings after which the client's right is checked again. */
const pingsPerAdmission = 3
/** The actor answers a poll within 5 s; after a fail-over of its runner it takes a few more. */
const patience = "12 seconds"
/** The pause after a poll without an answer, or with an immediate empty one (ms). */
const pauseMs = 250
/** How long the actor may be unreachable before the session ends (ms). */
const maxUnreachedMs = 60_000
/** How long after its time-out an answer of the client is still accepted (ms). */
const graceMs = 5_000
/** Results that are reported to the actor at once. */
const maxAtOnce = 50

const wire = { maxPayload: largestResult, maxFragments: 64, maxBufferedChunks: 256 }

const replaced = { code: 4409, reason: "a newer session has taken over" }
const gone = { code: 4404, reason: "NOT_FOUND" }
const expired = { code: 4001, reason: "the session is over; connect again" }

type Owner = ReturnType<Effect.Success<typeof DestinationEntity.client>>

/** A connected client, and what is under way with it. */
interface Line {
  readonly owner: Owner
  readonly cliId: string
  readonly localUrl: string | null
  readonly tunnel: TunnelSocket
  /** By job, until when an answer of the client is expected (Unix ms). */
  readonly underWay: Map<string, number>
  /** Answers of the client that the actor has not confirmed. */
  readonly answered: Map<string, TunnelResult>
  readonly hasAnswers: Latch.Latch
  readonly hasRoom: Latch.Latch
}

/**
 * The actor's answer; null: there was none, and the call has to be repeated. The actor may have moved, which interrupts the call.
 */
const answerOf = <A, E>(call: Effect.Effect<A, E>): Effect.Effect<A | null> =>
  Effect.catchCause(call, (cause) =>
    Cause.hasDies(cause)
      ? Effect.as(Effect.logWarning("a tunnel could not ask its destination", cause), null)
      : Effect.succeed(null)
  )

const nothing: Heard = { jobs: [], ended: null }

/**
 * Polls the actor for jobs. When a poll or its answer is lost, the jobs are handed out again, because they are not listed as
 * held.
 */
const ask = Effect.fnUntraced(function* ({ answered, cliId, hasRoom, localUrl, owner, tunnel, underWay }: Line) {
  const now = yield* Clock.currentTimeMillis
  for (const [job, until] of underWay) if (until < now) underWay.delete(job)
  hasRoom.closeUnsafe()
  const { room } = tunnel
  const holding = [...underWay.keys(), ...answered.keys()]
  const asked = owner.Listen({ cli_id: cliId, local_url: localUrl, holding, room })
  return yield* Effect.timeout(room > 0 ? asked : Effect.raceFirst(asked, Effect.as(hasRoom.await, nothing)), patience)
})

const deliver = ({ answered, tunnel, underWay }: Line, { ended, jobs }: Heard, now: number): void => {
  if (ended === "replaced") tunnel.close(replaced.code, replaced.reason)
  else if (ended === "gone") tunnel.close(gone.code, gone.reason)
  for (const job of jobs) {
    // The shard's last owner has sent it already.
    if (underWay.has(job.job_id) || answered.has(job.job_id)) continue
    underWay.set(job.job_id, now + job.timeout_ms + graceMs)
    tunnel.send(deliveryFrame(job))
  }
}

const listen = Effect.fnUntraced(function* (line: Line) {
  let reachedAt = yield* Clock.currentTimeMillis
  while (true) {
    const askedAt = yield* Clock.currentTimeMillis
    const heard = yield* answerOf(ask(line))
    const now = yield* Clock.currentTimeMillis
    if (heard !== null) {
      reachedAt = now
      deliver(line, heard, now)
      if (heard.jobs.length > 0 || now - askedAt > pauseMs) continue
    } else if (now - reachedAt > maxUnreachedMs) return line.tunnel.close(expired.code, expired.reason)
    yield* Effect.sleep(pauseMs)
  }
})

/** Reports answers to the actor until it has confirmed them, which frees the job there. */
const tell = Effect.fnUntraced(function* ({ answered, cliId, hasAnswers, owner }: Line) {
  while (true) {
    yield* hasAnswers.await
    hasAnswers.closeUnsafe()
    while (answered.size > 0) {
      const results = [...answered.values()].slice(0, maxAtOnce)
      const ignored = yield* answerOf(Effect.timeout(owner.Answer({ cli_id: cliId, results }), patience))
      if (ignored === null) {
        yield* Effect.sleep(pauseMs)
        continue
      }
      metrics.tunnelResults.at("late").add(ignored)
      for (const { job_id } of results) answered.delete(job_id)
    }
  }
})

/** Checks that the client is alive and still has the right. */
const attend = Effect.fnUntraced(function* <R>(
  tunnel: TunnelSocket,
  admit: Effect.Effect<AdmittedTunnel, GatewayError, R>,
  changed: Effect.Effect<void>
) {
  const pings = Effect.gen(function* () {
    for (let pings = 0; pings < pingsPerAdmission; pings++) {
      yield* Effect.sleep(pingEveryMs)
      tunnel.ping()
    }
  })
  while (true) {
    yield* Effect.raceFirst(pings, changed)
    const admitted = yield* Effect.result(admit)
    if (Result.isSuccess(admitted)) continue
    // Fails open when the check is impossible: an outage of the database must not end tunnels that wait for its end.
    const code = closeCodeOf(admitted.failure)
    if (code !== null) tunnel.close(code, admitted.failure.code)
    else if (statusOf[admitted.failure.code] === 429) tunnel.close(later.code, later.reason)
  }
})

/** Processes the messages of a client. */
const hear =
  ({ answered, hasAnswers, underWay }: Pick<Line, "answered" | "hasAnswers" | "underWay">) =>
  (frame: Buffer, tunnel: TunnelSocket): void => {
    const said = readFrame(frame, (job) => underWay.has(job))
    if (said.kind === "result") {
      metrics.tunnelResults.at("taken").add()
      underWay.delete(said.result.job_id)
      answered.set(said.result.job_id, said.result)
      hasAnswers.openUnsafe()
      return
    }
    if (said.kind === "ping") tunnel.send(pongFrame)
    else metrics.tunnelResults.at("unexpected").add()
    tunnel.unexpected()
  }

/**
 * The tunnels of this process. They are connected to clients, and poll the actors of destinations, on any runner, for deliveries.
 * A process may lose everything that it holds here: when a client goes, the actor sends its jobs again.
 */
export const tunnels: Effect.Effect<
  <R>(
    message: IncomingMessage,
    localUrl: string | null,
    admit: Effect.Effect<AdmittedTunnel, GatewayError, R>,
    changed: Effect.Effect<void>
  ) => Effect.Effect<void, GatewayError, Exclude<R, Scope.Scope>>,
  never,
  Sockets | Sharding
> = Effect.gen(function* () {
  const sockets = yield* Sockets
  const destinations = yield* DestinationEntity.client
  const clients = kind(wire, "tunnel.v1")
  const held: Held = { bytes: 0 }

  const serve = <R>(
    localUrl: string | null,
    admit: Effect.Effect<AdmittedTunnel, GatewayError, R>,
    changed: Effect.Effect<void>
  ) =>
    Effect.fnUntraced(function* (
      socket: WebSocket,
      { destination }: AdmittedTunnel
    ): Effect.fn.Return<void, GatewayError, R | Scope.Scope> {
      const owner = destinations(destination)
      const hasRoom = Latch.makeUnsafe(false)
      const hearing = {
        underWay: new Map<string, number>(),
        answered: new Map<string, TunnelResult>(),
        hasAnswers: Latch.makeUnsafe(false)
      }
      const tunnel = new TunnelSocket(socket, held, hear(hearing), () => hasRoom.openUnsafe())
      yield* sockets.keep(tunnel)
      const attached = yield* Effect.result(askOwner(owner.Attach({ local_url: localUrl })))
      if (Result.isFailure(attached)) tunnel.close(later.code, later.reason)
      else if (attached.success === null) tunnel.close(gone.code, gone.reason)
      else {
        const cliId = attached.success
        yield* Effect.addFinalizer(() =>
          Effect.forkDetach(Effect.ignore(Effect.timeout(owner.Leave({ cli_id: cliId }), patience)))
        )
        tunnel.send(helloFrame(cliId, destination, heartbeatSeconds, maxUnderWay))
        const line = { owner, cliId, localUrl, tunnel, hasRoom, ...hearing }
        yield* Effect.all([listen(line), tell(line), attend(tunnel, admit, changed)], {
          concurrency: "unbounded",
          discard: true
        })
      }
    })

  return (message, localUrl, admit, changed) =>
    sockets.open({
      message,
      kind: clients,
      admit,
      limits: ({ team }) => ({ [`tunnels ${team}`]: maxPerTeam }),
      serve: serve(localUrl, admit, changed)
    })
})
