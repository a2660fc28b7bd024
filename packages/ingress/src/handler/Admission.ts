import type { ServerResponse } from "node:http"
import type { Clock } from "effect"
import type { Loops } from "@tidegate/entities/Loops"
import { maxRequestBody } from "@tidegate/model/BodyLimits"
import { newId, prefixes } from "@tidegate/model/Ids"
import { binLimits } from "@tidegate/model/PublicBin"
import { requestArrived } from "@tidegate/runtime/ReportPace"
import type { TrustedProxies } from "@tidegate/model/TrustedProxies"
import type { Journal } from "@tidegate/storage/Journal"
import { binRefusal, isLookUpDue } from "../BinIngress.ts"
import type { Bodies } from "../Bodies.ts"
import { type InboundRequest, readHeaders } from "../InboundRequest.ts"
import { LookUps } from "../LookUps.ts"
import type { SourceSnapshot } from "../SourceSnapshot.ts"
import type { SourceSnapshots } from "../SourceSnapshots.ts"
import type { FramedMessage } from "../wire/FramedMessage.ts"
import { type Exchange, readTarget, type Target } from "./Exchange.ts"
import type { Refusals } from "./Refusals.ts"

/** The largest stored size of a body that is not kept: a sender may announce any number of bytes. */
const largestSize = 2 ** 31 - 1

interface Needs {
  readonly bodies: Bodies
  readonly clock: Clock.Clock
  readonly journal: Journal["Service"]
  readonly loops: Loops
  readonly proxies: TrustedProxies
  readonly refusals: Refusals
  readonly snapshots: SourceSnapshots["Service"]
  /** Receives each admitted request with its body. */
  readonly admitted: (snapshot: SourceSnapshot, exchange: Exchange) => void
}

/** Decides by its URL and the limits whether a request is read, and reads it. */
export class Admission {
  readonly #needs: Needs
  readonly #lookUps: LookUps

  constructor(needs: Needs) {
    this.#needs = needs
    this.#lookUps = new LookUps(needs.proxies)
  }

  admit(message: FramedMessage, response: ServerResponse): void {
    const { bodies, refusals, snapshots } = this.#needs
    const target = readTarget(message.url ?? "")
    if (target === null) {
      message.discard(response)
      return refusals.unknownSource(response)
    }
    if (bodies.isFull) {
      message.discard(response)
      return refusals.shed(response, "bodies_full")
    }
    const snapshot = snapshots.get(target.name)
    if (snapshot !== undefined) return this.#admit(snapshot, target, message, response)
    this.#lookUp(target, message, response)
  }

  #lookUp(target: Target, message: FramedMessage, response: ServerResponse): void {
    const { clock, refusals, snapshots } = this.#needs
    const leave = this.#lookUps.enter(message)
    if (leave === "busy" || leave === "full") {
      message.discard(response)
      return leave === "busy" ? refusals.crowded(response) : refusals.shed(response, "source_unknown_yet")
    }
    snapshots.load(target.name).then(
      (loaded) => {
        leave()
        // Measured from the end of the look-up: otherwise a slow database would be queried without a pause.
        if (loaded !== null && loaded.bin !== null) loaded.bin.lookedUpAt = clock.currentTimeMillisUnsafe()
        this.#admit(loaded, target, message, response)
      },
      () => {
        leave()
        message.discard(response)
        refusals.shed(response, "source_unknown_yet")
      }
    )
  }

  /** By the source's own limits, before the body is read, so that a flood uses no memory. */
  #admit(snapshot: SourceSnapshot | null, target: Target, message: FramedMessage, response: ServerResponse): void {
    const { clock, journal, refusals } = this.#needs
    if (snapshot === null) {
      message.discard(response)
      return refusals.unknownSource(response)
    }
    requestArrived()
    const { bin } = snapshot
    if (bin === null && journal.isFull(snapshot.id)) {
      message.discard(response)
      return refusals.shed(response, "journal_full")
    }
    if (bin !== null) {
      const now = clock.currentTimeMillisUnsafe()
      const refused = binRefusal(bin, now)
      if (refused !== null && isLookUpDue(bin, now)) return this.#lookUp(target, message, response)
      if (refused !== null) {
        message.discard(response)
        return refusals.byBin(response, refused)
      }
    }
    // A disabled source answers as disabled, whatever its limit is.
    const waitMs = snapshot.disabled || snapshot.limit === null ? 0 : snapshot.limit.wait()
    if (waitMs > 0) {
      message.discard(response)
      return refusals.limited(response, snapshot.limit!, waitMs)
    }
    this.#read(snapshot, target, message, response)
  }

  #read(snapshot: SourceSnapshot, target: Target, message: FramedMessage, response: ServerResponse): void {
    const { admitted, bodies, clock, loops, proxies, refusals } = this.#needs
    // All bins together have the capacity of one source.
    const counted = snapshot.bin === null ? snapshot.id : "bins"
    const largest = snapshot.bin === null ? maxRequestBody : binLimits.body
    const reading = bodies.read(message, counted, largest, (outcome) => {
      if (outcome.kind !== "whole") {
        // The rest of the body is not read: the connection ends with the answer.
        response.setHeader("connection", "close")
        message.discard(response)
        if (outcome.kind === "full") return refusals.shed(response, "bodies_full")
        if (outcome.kind === "busy") return refusals.crowded(response)
      }
      const receivedAt = clock.currentTimeMillisUnsafe()
      const headers = readHeaders(message.rawHeaders)
      const request: InboundRequest = {
        id: message.requestId ?? newId(prefixes.request, receivedAt),
        receivedAt,
        method: message.method ?? "POST",
        target: message.url ?? "",
        path: target.path,
        query: target.query,
        headers,
        body: outcome.kind === "whole" ? outcome.body : null,
        bodySize: outcome.kind === "whole" ? outcome.body.length : Math.min(outcome.size, largestSize),
        originalIp: proxies.clientOf(message.socket.remoteAddress, message.headers),
        isLoop: !loops.admits(headers),
        isSystem: loops.isSystem(headers, snapshot.teamId)
      }
      admitted(snapshot, { target, request, message, response })
    })
    if (reading && message.headers.expect !== undefined && message.httpVersionMinor > 0) response.writeContinue()
  }
}
