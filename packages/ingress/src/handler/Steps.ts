import { inLaterTurn } from "@tidegate/runtime/EventLoopBudget"
import type { Bodies } from "../Bodies.ts"
import { type Exchange, heldBy } from "./Exchange.ts"
import type { Refusals } from "./Refusals.ts"

/** Bytes. Work on a body of this size takes some milliseconds, so it shares the event-loop budget. */
export const largeForATurn = 256 * 1024

/** Runs the steps of handling a request so that an exception is answered and the event-loop budget is kept. */
export class Steps {
  readonly #bodies: Bodies
  readonly #refusals: Refusals

  constructor(bodies: Bodies, refusals: Refusals) {
    this.#bodies = bodies
    this.#refusals = refusals
  }

  /** An exception of the step is logged and answered with a plain 5xx. */
  attempt({ response }: Exchange, step: () => void): void {
    try {
      step()
    } catch (cause) {
      this.#refusals.fault(response, cause)
    }
  }

  /** Runs the step in a later event-loop iteration, because the budget of this one is used up. The body counts as held until then. */
  defer(exchange: Exchange, step: () => void): void {
    const held = heldBy(exchange)
    this.#bodies.keep(held)
    inLaterTurn(() => {
      this.#bodies.keep(-held)
      this.attempt(exchange, step)
    })
  }
}
