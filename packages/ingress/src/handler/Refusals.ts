import type { ServerResponse } from "node:http"
import { type ErrorCode, fail, toResponse } from "@tidegate/model/GatewayError"
import type { BinRefusal } from "../BinIngress.ts"
import type { IngestLimit } from "../IngestLimits.ts"
import type { IngressTelemetry, ShedReason } from "../IngressTelemetry.ts"
import { rejectedReply } from "../Reply.ts"
import type { Rejection } from "../Routing.ts"
import type { SourceSnapshot } from "../SourceSnapshot.ts"
import { noHeaders, reply } from "./Exchange.ts"

const json = "application/json; charset=utf-8"

/** The answers to requests that are not accepted. Each one is counted by its cause. */
export class Refusals {
  readonly #telemetry: IngressTelemetry

  constructor(telemetry: IngressTelemetry) {
    this.#telemetry = telemetry
  }

  /** The gateway is overloaded, or something that it needs is not available. Nothing is stored. */
  shed(response: ServerResponse, reason: ShedReason): void {
    refuse(
      response,
      "QUEUE_UNAVAILABLE",
      "the gateway cannot store requests right now; try again",
      { "retry-after": "1" },
      this.#telemetry.shed(reason)
    )
  }

  /** The source, or the sender's address, has too many bodies on their way. */
  crowded(response: ServerResponse): void {
    this.#telemetry.shed("sender_busy")
    refuse(response, "RATE_LIMITED", "too many requests are being received for this source, or from this address", {
      "retry-after": "1"
    })
  }

  /** The request is above the source's limit: it is counted, and nothing is stored. */
  limited(response: ServerResponse, limit: IngestLimit, waitMs: number): void {
    limit.refused()
    this.#telemetry.limited()
    const retry = inSeconds(waitMs)
    refuse(response, "RATE_LIMITED", `the source takes no more requests now; repeat this one after ${retry} s`, {
      "retry-after": retry
    })
  }

  /** The bin accepts no requests. Nothing is stored. */
  byBin(response: ServerResponse, { code, message, waitMs }: BinRefusal): void {
    this.#telemetry.limited()
    refuse(response, code, message, waitMs === null ? noHeaders : { "retry-after": inSeconds(waitMs) })
  }

  unknownSource(response: ServerResponse): void {
    this.#telemetry.unknownSource()
    refuse(response, "NOT_FOUND", "there is no source at this URL")
  }

  /** No subscription has this callback. It is told apart from nothing else, so that a stranger learns nothing. */
  unknownCallback(response: ServerResponse): void {
    refuse(response, "NOT_FOUND", "there is no callback at this URL")
  }

  /** The subscription of the callback has ended. `isGone`: by the protocol, 410 says that the provider shall stop. */
  endedCallback(response: ServerResponse, isGone: boolean): void {
    if (isGone) return reply(response, { status: 410, contentType: null, headers: noHeaders, body: "" })
    this.unknownCallback(response)
  }

  method(response: ServerResponse, allowed: string): void {
    refuse(response, "METHOD_NOT_ALLOWED", `only ${allowed}`, { allow: allowed })
  }

  tooLarge(response: ServerResponse, largest: number): void {
    refuse(response, "PAYLOAD_TOO_LARGE", `the body has more than ${largest} bytes`)
  }

  /** The request is stored as rejected, with the cause that the answer names. */
  rejected(response: ServerResponse, snapshot: SourceSnapshot, { cause, code, message }: Rejection): void {
    reply(
      response,
      rejectedReply(
        snapshot.reply,
        fail(code, message),
        cause === "SOURCE_METHOD_NOT_ALLOWED" ? { allow: snapshot.allowedMethods.join(", ") } : noHeaders
      )
    )
  }

  /** The database has refused the record itself. `error_id` is in the log, too. */
  notStored(response: ServerResponse, logged: { readonly error_id: string }): void {
    refuse(response, "INTERNAL_ERROR", "the request could not be stored", {}, logged)
  }

  /** A fault of the gateway: its cause is logged. */
  fault(response: ServerResponse, cause: unknown): void {
    refuse(response, "INTERNAL_ERROR", "the request could not be processed", {}, this.#telemetry.fault(cause))
  }
}

const inSeconds = (waitMs: number): string => String(Math.max(1, Math.ceil(waitMs / 1_000)))

const refuse = (
  response: ServerResponse,
  code: ErrorCode,
  message: string,
  headers: Record<string, string> = {},
  data?: { readonly error_id: string }
): void => {
  const { body, status } = toResponse(fail(code, message, data))
  reply(response, { status, contentType: json, headers, body: JSON.stringify(body) })
}
