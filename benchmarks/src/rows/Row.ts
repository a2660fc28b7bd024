/** The definition of a row of the table: settings, loads and requirements. */
import type { Measurement } from "../Measurement.ts"

/**
 * "saturated": as fast as requests are acknowledged. A number: requests per second, to all sources together. "waiting": a backlog of `waiting`
 * events, delivered when the connections are resumed.
 */
export type Load = "saturated" | "waiting" | number

/** A requirement for every phase of a row. */
export interface Must {
  readonly name: string
  /** The violation as text; null: there is none. */
  readonly fault: (found: Measurement) => string | null
}

/** One row. Defaults are those of a plain gateway: one source, one connection without rules, one destination, one process. */
export interface Row {
  readonly name: string
  readonly loads: ReadonlyArray<Load>
  readonly must: ReadonlyArray<Must>
  readonly processes?: number
  /** Sources, each with its own connection and destination. Requests go to them in turn, through all processes. */
  readonly sources?: number
  /** Connections of each source, each with its own destination. */
  readonly destinations?: number
  /** The delay of the target's answer in milliseconds. */
  readonly answersAfter?: number
  /** Settings of every source, of every connection, and its rules, in the form of the API. */
  readonly source?: object
  readonly connection?: object
  readonly rules?: ReadonlyArray<object>
  /** Customers of the events. Events of one customer are sent one after the other. */
  readonly customers?: number
  /** Events that wait when a phase with the load "waiting" begins. */
  readonly waiting?: number
  /** Each phase has new sources, and is measured from its first request. */
  readonly isFresh?: boolean
  /** Rate and CPU are those of refused requests. */
  readonly countsRefusals?: boolean
  /** Other sources of the same gateway with one connection each, and the requests per second that they get at the same time. */
  readonly beside?: ReadonlyArray<{ readonly perSecond: number; readonly rules: ReadonlyArray<object> }>
}

const must = (name: string, fault: (found: Measurement) => string | false): Must => ({
  name,
  fault: (found) => fault(found) || null
})

const isDelivered = must(
  "all delivered",
  ({ malformed, missing }) => missing + malformed > 0 && `${missing} missing, ${malformed} changed`
)

/** No request is refused, and every acknowledged request is delivered unchanged. */
export const complete: ReadonlyArray<Must> = [
  isDelivered,
  must("none refused", ({ refusal, refused }) => refused > 0 && `${refused} refused: ${refusal}`)
]

export const inOrder = must("no inversions", ({ inversions }) => inversions > 0 && `${inversions} inversions`)

export const p99AtMost = (ms: number): Must =>
  must(`p99 ≤ ${ms} ms`, ({ senderToTarget: { p99 } }) => !(p99 <= ms) && `p99 ${p99.toFixed(0)} ms`)

/**
 * For a new source with a limit of `perSecond`. In each started second it accepts at most the limit, and in addition a lease (an
 * eighth of the limit). When more is offered, it accepts at least 80 % of the limit. All other requests get 429.
 */
export const limitedTo = (perSecond: number): ReadonlyArray<Must> => [
  isDelivered,
  must(`≤ ${perSecond} a second and a lease`, ({ acknowledged, sending }) => {
    const most = Math.ceil(sending) * (perSecond + Math.ceil(perSecond / 8))
    const least = Math.floor(sending) * perSecond * 0.8
    return (acknowledged > most || acknowledged < least) && `${acknowledged} accepted in ${sending.toFixed(1)} s`
  }),
  must("the rest 429", ({ limited, refused, refusal }) =>
    refused === 0 ? "none refused" : limited !== refused && `${refused - limited} refused otherwise: ${refusal}`
  )
]

/** For a source that may accept one request a day. */
export const allRefused = must(
  "all but one 429",
  ({ acknowledged, limited, refused }) => (acknowledged > 1 || limited !== refused) && `${acknowledged} accepted`
)
