/** What one row of the table is: settings, loads, and what must come true. */
import type { Measurement } from "../Measurement.ts"

/** As fast as acknowledged, or so many requests a second, to all sources together. */
export type Load = "saturated" | number

/** Something that must come true in every phase of a row. */
export interface Must {
  readonly name: string
  /** What is wrong; null: nothing. */
  readonly fault: (found: Measurement) => string | null
}

/** One row; what is left out is as in a plain gateway: one source, one connection without rules, one destination, one process. */
export interface Row {
  readonly name: string
  readonly loads: ReadonlyArray<Load>
  readonly must: ReadonlyArray<Must>
  readonly processes?: number
  /** Sources with a connection and a destination of their own each; requests take turns, at all processes. */
  readonly sources?: number
  /** Connections of each source, to a destination of its own each. */
  readonly destinations?: number
  /** Milliseconds that the target takes to answer. */
  readonly answersAfter?: number
  /** Settings of every source, and of every connection, and its rules, as the API takes them. */
  readonly source?: object
  readonly connection?: object
  readonly rules?: ReadonlyArray<object>
  /** Customers that the events are about; those of one are sent one after the other. */
  readonly customers?: number
  /** Each phase has sources of its own, which have seen nothing before, and is measured from its first request. */
  readonly isFresh?: boolean
  /** Rate and CPU are those of refused requests. */
  readonly countsRefusals?: boolean
  /** Other sources of the same gateway, with one connection each, and how many requests a second they get meanwhile. */
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

/** Nothing is refused, and what is acknowledged is delivered as it was sent. */
export const complete: ReadonlyArray<Must> = [
  isDelivered,
  must("none refused", ({ refusal, refused }) => refused > 0 && `${refused} refused: ${refusal}`)
]

export const inOrder = must("no inversions", ({ inversions }) => inversions > 0 && `${inversions} inversions`)

export const p99AtMost = (ms: number): Must =>
  must(`p99 ≤ ${ms} ms`, ({ senderToTarget: { p99 } }) => !(p99 <= ms) && `p99 ${p99.toFixed(0)} ms`)

/**
 * Of a source that may accept so many a second, and has seen nothing before: no more than that in each second begun, and a
 * lease (an eighth of the limit); and most of it, when more is offered. All else is 429.
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

/** Of a source that may accept one a day. */
export const allRefused = must(
  "all but one 429",
  ({ acknowledged, limited, refused }) => (acknowledged > 1 || limited !== refused) && `${acknowledged} accepted`
)
