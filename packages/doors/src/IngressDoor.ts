import type { IncomingMessage, ServerResponse } from "node:http"
import { Clock, Context, Effect, Layer } from "effect"
import { horizonMs } from "@tidegate/entities/Destination/DeliveryQueue"
import type { DeliveryPayload } from "@tidegate/entities/Destination/DeliveryItem"
import { type ErrorCode, fail, toResponse } from "@tidegate/model/GatewayError"
import { isId, newId, prefixes } from "@tidegate/model/Ids"
import { Journal } from "@tidegate/storage/Journal"
import { Hints } from "./Hints.ts"
import { type InboundRequest, readHeaders } from "./InboundRequest.ts"
import { decide, type Decision } from "./Routing.ts"
import { type SourceSnapshot, SourceSnapshots } from "./SourceSnapshots.ts"

/** The path that all ingress URLs begin with. */
export const ingressPath = "/e/"

/** The largest body a sender may post, in bytes. */
const largestBody = 10 * 1024 * 1024
/** The largest size that can be kept of a body that is not: a sender may announce any number of bytes. */
const largestSize = 2 ** 31 - 1
/** Bodies that are being read and not yet handed to the journal, all together. Beyond it, the door sheds. */
const mostReading = 256 * 1024 * 1024
/** A source that changes faster than its requests can be routed: told to come again, because nothing was written. */
const mostRoutings = 50

/**
 * The public door: senders' requests in, stored, acknowledged. It waits for nobody but the database: it routes by the
 * cached snapshot of the source, hands the record to the journal, and answers once the commit is durable.
 *
 * Plain callbacks, because it runs for every request; see docs/decisions/0002-hot-path.md.
 */
export class IngressDoor extends Context.Service<
  IngressDoor,
  {
    /** Takes a request whose path begins with `ingressPath`. */
    readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  }
>()("@tidegate/doors/IngressDoor") {
  static readonly layer: Layer.Layer<IngressDoor, never, Journal | SourceSnapshots | Hints> = Layer.effect(
    IngressDoor,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const journal = yield* Journal
  const snapshots = yield* SourceSnapshots
  const hints = yield* Hints
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  let reading = 0

  const refuse = (
    response: ServerResponse,
    code: ErrorCode,
    message: string,
    headers: Record<string, string> = {}
  ): void => {
    const answer = toResponse(fail(code, message))
    send(response, answer.status, JSON.stringify(answer.body), headers)
  }

  const shed = (response: ServerResponse): void =>
    refuse(response, "QUEUE_UNAVAILABLE", "the gateway cannot store requests right now; try again", {
      "retry-after": "1"
    })

  const fault = (response: ServerResponse, cause: unknown): void => {
    run(Effect.logError("an ingress request failed", cause))
    refuse(response, "INTERNAL_ERROR", "the request could not be processed")
  }

  const unknownSource = (response: ServerResponse): void =>
    refuse(response, "NOT_FOUND", "there is no source at this URL")

  const answer = (response: ServerResponse, snapshot: SourceSnapshot, decision: Decision): void => {
    if (decision.rejection === null) {
      return send(
        response,
        200,
        `{"ok":true,"queued":true,"transport":"queue","request_id":"${decision.record.id}"}`,
        noHeaders
      )
    }
    const { cause, code, message } = decision.rejection
    refuse(
      response,
      code,
      message,
      cause === "SOURCE_METHOD_NOT_ALLOWED" ? { allow: snapshot.allowedMethods.join(", ") } : {}
    )
  }

  const hint = (request: InboundRequest, { record }: Decision): void => {
    for (const { connectionId } of record.pending) hints.route(connectionId)
    if (record.events.length === 0) return
    const payload: DeliveryPayload = {
      requestId: record.id,
      method: record.method,
      path: record.path,
      query: record.query,
      headers: request.headers,
      body: record.body ?? noBody,
      verified: record.verified,
      originalIp: record.originalIp
    }
    const soon = record.ingestedAt + horizonMs
    for (const { connectionId, destinationId, dueAt, id } of record.events) {
      if (dueAt > soon) continue
      hints.deliver(destinationId, {
        eventId: id,
        teamId: record.teamId,
        connectionId,
        sourceId: record.sourceId,
        createdAt: record.ingestedAt,
        dueAt,
        attempts: 0,
        firstAttemptAt: null,
        lastAttemptAt: null,
        trigger: "INITIAL",
        rootEventId: null,
        retryOperationId: null,
        payload
      })
    }
  }

  const store = (
    snapshot: SourceSnapshot,
    request: InboundRequest,
    response: ServerResponse,
    routings: number
  ): void => {
    const decision = decide(snapshot, request)
    journal.accept(decision.record, (outcome) => {
      switch (outcome) {
        case "committed":
          answer(response, snapshot, decision)
          return hint(request, decision)
        case "stale":
          if (routings >= mostRoutings) return shed(response)
          snapshots.load(snapshot.id).then(
            (current) => (current === null ? unknownSource(response) : store(current, request, response, routings + 1)),
            () => shed(response)
          )
          return
        case "unavailable":
          return shed(response)
        case "failed":
          return refuse(response, "INTERNAL_ERROR", "the request could not be stored")
      }
    })
  }

  /** Reads the body, bounded; `done` gets null when it is too large. A sender that goes away is forgotten. */
  const readBody = (message: IncomingMessage, done: (body: Uint8Array | null, size: number) => void): void => {
    const declared = Number(message.headers["content-length"] ?? 0)
    if (declared > largestBody) return done(null, Math.min(declared, largestSize))
    const chunks: Array<Buffer> = []
    let size = 0
    let over = false
    const end = (): void => {
      reading -= size
      size = 0
      over = true
    }
    message.on("data", (chunk: Buffer) => {
      if (over) return
      size += chunk.length
      reading += chunk.length
      if (size <= largestBody) {
        chunks.push(chunk)
        return
      }
      const read = size
      end()
      done(null, read)
    })
    message.on("end", () => {
      if (over) return
      const read = size
      end()
      done(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), read)
    })
    message.on("close", () => {
      if (!over) end()
    })
  }

  const receive = (
    snapshot: SourceSnapshot | null,
    target: Target,
    message: IncomingMessage,
    response: ServerResponse
  ): void => {
    if (snapshot === null) {
      message.resume()
      return unknownSource(response)
    }
    readBody(message, (body, size) => {
      if (body === null) {
        // What is still coming is not wanted: the connection ends with the answer.
        response.setHeader("connection", "close")
        message.resume()
      }
      try {
        const receivedAt = clock.currentTimeMillisUnsafe()
        const request: InboundRequest = {
          id: newId(prefixes.request, receivedAt),
          receivedAt,
          method: message.method ?? "POST",
          path: target.path,
          query: target.query,
          headers: readHeaders(message.rawHeaders),
          body,
          bodySize: size,
          originalIp: message.socket.remoteAddress ?? null
        }
        store(snapshot, request, response, 1)
      } catch (cause) {
        fault(response, cause)
      }
    })
  }

  return IngressDoor.of({
    handle: (message, response) => {
      const target = readTarget(message.url ?? "")
      if (target === null) {
        message.resume()
        return unknownSource(response)
      }
      if (journal.isFull() || reading > mostReading) {
        message.resume()
        return shed(response)
      }
      const snapshot = snapshots.get(target.sourceId)
      if (snapshot !== undefined) return receive(snapshot, target, message, response)
      snapshots.load(target.sourceId).then(
        (loaded) => receive(loaded, target, message, response),
        () => {
          message.resume()
          shed(response)
        }
      )
    }
  })
})

interface Target {
  readonly sourceId: string
  readonly path: string
  readonly query: string
}

const noHeaders: Record<string, string> = {}
const noBody = new Uint8Array(0)

/** `/e/{source_id}[/suffix][?query]`; null when that cannot be a source's URL. */
const readTarget = (url: string): Target | null => {
  const queryAt = url.indexOf("?")
  const path = queryAt < 0 ? url : url.slice(0, queryAt)
  const suffixAt = path.indexOf("/", ingressPath.length)
  const sourceId = suffixAt < 0 ? path.slice(ingressPath.length) : path.slice(ingressPath.length, suffixAt)
  if (!isId(prefixes.source, sourceId)) return null
  return {
    sourceId,
    path: suffixAt < 0 ? "/" : path.slice(suffixAt),
    query: queryAt < 0 ? "" : url.slice(queryAt + 1)
  }
}

const send = (response: ServerResponse, status: number, body: string, headers: Record<string, string>): void => {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, {
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body)
  })
  response.end(body)
}
