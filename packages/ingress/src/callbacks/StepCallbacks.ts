import type { ServerResponse } from "node:http"
import { Effect, Result } from "effect"
import type { CallbackReceived } from "@tidegate/entities/Workflow/StepCallback"
import type { StepLinks } from "@tidegate/entities/Workflow/StepLinks"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { callbackPath } from "@tidegate/model/Ingress"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import type { Bodies } from "../Bodies.ts"
import { noHeaders, reply } from "../handler/Exchange.ts"
import type { Refusals } from "../handler/Refusals.ts"
import type { FramedMessage } from "../wire/FramedMessage.ts"
import type { ReceivingSteps } from "./ReceivingSteps.ts"

/** The largest body of a callback in bytes: it is kept in the run. */
const largestBody = 64 * 1024

/** Callbacks that one process stores at once, and those of one team that may wait for that. */
const atOnce = { permits: 16, maxWaiting: 256 }

interface Needs {
  readonly bodies: Bodies
  readonly links: StepLinks
  readonly refusals: Refusals
  readonly run: (effect: Effect.Effect<void>) => void
  readonly steps: ReceivingSteps["Service"]
}

/**
 * Takes what others send to the URLs of steps that wait for a callback. The token in the URL is checked without the database, so a
 * stranger who guesses costs nothing. The answer is 200 once, when the callback is stored with the run, and 410 afterwards.
 */
export class StepCallbacks {
  readonly #needs: Needs
  /** Teams take turns, so that a flood at one team's steps delays no other team. */
  readonly #turns = permitsByKey(atOnce)

  constructor(needs: Needs) {
    this.#needs = needs
  }

  /** Handles a request whose path begins with `callbackPath`. */
  admit(message: FramedMessage, response: ServerResponse): void {
    const { bodies, links, refusals } = this.#needs
    const url = message.url ?? ""
    const queryAt = url.indexOf("?")
    const place = links.read(url.slice(callbackPath.length, queryAt < 0 ? undefined : queryAt))
    if (place === null) {
      message.discard(response)
      return refusals.unknownCallback(response)
    }
    const method = message.method ?? ""
    // A GET ends no wait, because chat programs and mail filters fetch every URL that they see.
    if (method !== "POST" && method !== "PUT") {
      message.discard(response)
      return refusals.method(response, "POST, PUT")
    }
    if (bodies.isFull) {
      message.discard(response)
      return refusals.shed(response, "bodies_full")
    }
    const { workflow_id, ...step } = place
    const reading = bodies.read(message, place.run_id, largestBody, (outcome) => {
      if (outcome.kind === "whole") {
        const query = queryAt < 0 ? "" : url.slice(queryAt + 1)
        const body = outcome.body.toString("base64")
        return this.#take(workflow_id, { ...step, method, headers: headersOf(message), query, body }, response)
      }
      // The rest of the body is not read: the connection ends with the answer.
      response.setHeader("connection", "close")
      message.discard(response)
      if (outcome.kind === "too large") return refusals.tooLarge(response, largestBody)
      return outcome.kind === "full" ? refusals.shed(response, "bodies_full") : refusals.crowded(response)
    })
    if (reading && message.headers.expect !== undefined && message.httpVersionMinor > 0) response.writeContinue()
  }

  /** Stores the callback, then answers. The body counts as held until then. */
  #take(workflowId: string, received: CallbackReceived, response: ServerResponse): void {
    const { bodies, refusals, run, steps } = this.#needs
    const held = received.body.length
    bodies.keep(held)
    const turn = this.#turns.within(received.team_id)
    const stored = turn(
      steps.receive(workflowId, received),
      fail("QUEUE_UNAVAILABLE", "too many callbacks are being stored; try again")
    )
    run(
      Effect.result(stored).pipe(
        Effect.map((result) =>
          Result.isSuccess(result)
            ? reply(response, { status: 200, contentType: json, headers: noHeaders, body: '{"status":"received"}' })
            : this.#refuse(result.failure, response)
        ),
        Effect.catchDefect((defect) => Effect.sync(() => refusals.fault(response, defect))),
        Effect.ensuring(Effect.sync(() => bodies.keep(-held)))
      )
    )
  }

  #refuse({ code }: GatewayError, response: ServerResponse): void {
    const { refusals } = this.#needs
    switch (code) {
      case "STEP_NOT_WAITING":
      case "WORKFLOW_NOT_EXECUTABLE":
        return refusals.endedCallback(response, true)
      case "NOT_FOUND":
        return refusals.unknownCallback(response)
      // Everything else passes: the caller may repeat it.
      default:
        return refusals.shed(response, code === "QUEUE_UNAVAILABLE" ? "callbacks_full" : "database")
    }
  }
}

const json = "application/json; charset=utf-8"

const headersOf = ({ headers }: FramedMessage): CallbackReceived["headers"] =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]]
    )
  )
