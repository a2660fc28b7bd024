import type { Rule } from "../support/Contract.ts"
import { sleep } from "../support/Waiting.ts"
import type { Cluster } from "./Cluster.ts"

/** A source with its connections, as the load sends to it and the oracle expects it to be routed. */
export interface Route {
  readonly sourceId: string
  readonly connections: ReadonlyArray<Connection>
}

export interface Connection {
  readonly id: string
  readonly sourceId: string
  readonly destinationId: string
  /** The path by which the target knows the destination. */
  readonly key: string
  /** Retries after the first attempt, and the milliseconds between them; null: none. */
  readonly retry: { readonly count: number; readonly intervalMs: number } | null
  readonly delayMs: number
  /** Only requests of this kind become events; the others are recorded as ignored. */
  readonly onlyKind: Kind | null
  readonly ratePerSecond: number | null
  /** Of the requests of one group, only one becomes an event. */
  readonly once: boolean
  /** A transformation writes `shaped`, twice the request's number, into the body; the filter stands behind it. */
  readonly shaped: boolean
  /** How events of one key are kept in order; null: in none. */
  readonly order: "block" | "skip" | null
}

/** The member of a request that the filter rule reads. */
export type Kind = "order" | "note"

export interface Plan {
  readonly key: string
  readonly retry?: Connection["retry"]
  readonly delayMs?: number
  readonly onlyKind?: Kind
  readonly ratePerSecond?: number
  readonly once?: boolean
  readonly shaped?: boolean
  readonly order?: "block" | "skip"
}

const retry = { count: 12, intervalMs: 1_000 }

/**
 * Twenty destinations, so that either runner has several. The target fails a share of the deliveries to those named
 * `flaky`, so that retries are always under way; `plain` has no retry rule and never fails unless a fault does it.
 */
const plans: ReadonlyArray<ReadonlyArray<Plan>> = [
  [{ key: "plain-1" }, { key: "flaky-1", retry }],
  [{ key: "plain-2" }, { key: "flaky-2", retry }],
  [
    { key: "steady-1", retry },
    { key: "flaky-3", retry }
  ],
  [
    { key: "paced-1", retry, ratePerSecond: 60 },
    { key: "steady-2", retry }
  ],
  [
    { key: "delayed-1", retry, delayMs: 1_000 },
    { key: "flaky-4", retry, onlyKind: "order" }
  ],
  [
    { key: "steady-3", retry, onlyKind: "order" },
    { key: "paced-2", ratePerSecond: 40, retry }
  ],
  [
    { key: "shaped-1", retry, shaped: true },
    { key: "flaky-5", retry, shaped: true, onlyKind: "order" }
  ],
  [
    { key: "once-1", retry, once: true },
    { key: "flaky-6", retry, once: true, shaped: true, onlyKind: "order" }
  ],
  [
    { key: "ordered-1", order: "block" },
    { key: "flaky-ordered-1", retry, order: "block" }
  ],
  [
    { key: "flaky-ordered-2", retry, order: "skip" },
    { key: "flaky-ordered-3", retry, order: "block", shaped: true }
  ]
]

/** Longer than a round, so that a lost window would be noticed. */
const onceWindowMs = 600_000

const shape = `addHandler("transform", (request) => {
  request.body.shaped = request.body.n * 2
  return request
})`

/**
 * Makes the sources, destinations and connections of the test through the control API. `allOrdered`: every connection keeps an order,
 * by turns blocked and not by an event that failed.
 */
export const createRoutes = async (
  cluster: Cluster,
  targetOrigin: string,
  allOrdered: boolean
): Promise<ReadonlyArray<Route>> => {
  const routes: Array<Route> = []
  for (const [index, plan] of plans.entries()) {
    const orderOf = allOrdered ? (index % 2 === 0 ? "block" : "skip") : null
    routes.push(await createRoute(cluster, targetOrigin, `source-${index + 1}`, plan, orderOf))
  }
  return routes
}

/** Repeats a `PUT` while the gateway asks to try again: on a busy machine, an actor may not answer in time. */
const repeated = async <A>(call: () => Promise<A>): Promise<A> => {
  for (let left = 10; ; left--) {
    try {
      return await call()
    } catch (error) {
      if (left === 0 || !/: 503 /.test(String(error))) throw error
      await sleep(1_000)
    }
  }
}

/** Makes one source with its connections. `orderOf`: the ordering of connections whose plan does not define one. */
export const createRoute = async (
  cluster: Cluster,
  targetOrigin: string,
  name: string,
  plan: ReadonlyArray<Plan>,
  orderOf: Connection["order"] = null
): Promise<Route> => {
  const { id: sourceId } = await repeated(() => cluster.api("PUT", "/sources", { name }))
  const connections: Array<Connection> = []
  for (const one of plan) {
    const {
      delayMs = 0,
      key,
      onlyKind = null,
      once = false,
      order = orderOf,
      ratePerSecond = null,
      retry = null,
      shaped = false
    } = one
    const { id: destinationId } = await repeated(() =>
      cluster.api("PUT", "/destinations", {
        name: key,
        config: { url: `${targetOrigin}/${key}`, rate_limit: ratePerSecond, rate_limit_period: "second" }
      })
    )
    const rules: Array<Rule> = []
    if (once) rules.push({ type: "deduplicate", window: onceWindowMs, include_fields: ["body.group"] })
    if (shaped) rules.push({ type: "transform", transformation: { name: "shape", code: shape } })
    if (onlyKind !== null) rules.push({ type: "filter", body: { kind: onlyKind } })
    if (delayMs !== 0) rules.push({ type: "delay", delay: delayMs })
    if (retry !== null) {
      rules.push({ type: "retry", strategy: "linear", count: retry.count, interval: retry.intervalMs })
    }
    const { id } = await repeated(() =>
      cluster.api("PUT", "/connections", {
        name: key,
        source_id: sourceId,
        destination_id: destinationId,
        rules,
        ordering: order === null ? null : { key: "body.line", on_failure: order }
      })
    )
    connections.push({
      id,
      sourceId,
      destinationId,
      key,
      retry,
      delayMs,
      onlyKind,
      ratePerSecond,
      once,
      shaped,
      order
    })
  }
  return { sourceId, connections }
}
