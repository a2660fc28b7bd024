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
}

/** What a request says about itself, for the filter rule. */
export type Kind = "order" | "note"

interface Plan {
  readonly key: string
  readonly retry?: Connection["retry"]
  readonly delayMs?: number
  readonly onlyKind?: Kind
  readonly ratePerSecond?: number
}

const retry = { count: 12, intervalMs: 1_000 }

/**
 * Twelve destinations, so that either runner has several. The target fails a share of the deliveries to those named
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
    { key: "delayed-1", retry, delayMs: 1_500 },
    { key: "flaky-4", retry, onlyKind: "order" }
  ],
  [
    { key: "steady-3", retry, onlyKind: "order" },
    { key: "paced-2", ratePerSecond: 40, retry }
  ]
]

/** Makes the sources, destinations and connections of the test through the control API. */
export const createRoutes = async (cluster: Cluster, targetOrigin: string): Promise<ReadonlyArray<Route>> => {
  const routes: Array<Route> = []
  for (const [index, plan] of plans.entries()) {
    const sourceId = idOf(await cluster.api("POST", "/sources", { name: `source-${index + 1}` }))
    const connections: Array<Connection> = []
    for (const { delayMs = 0, key, onlyKind = null, ratePerSecond = null, retry = null } of plan) {
      const destinationId = idOf(
        await cluster.api("POST", "/destinations", {
          name: key,
          config: { url: `${targetOrigin}/${key}`, rate_limit: ratePerSecond, rate_limit_period: "second" }
        })
      )
      const rules = [
        ...(onlyKind === null ? [] : [{ type: "filter", body: { kind: onlyKind } }]),
        ...(delayMs === 0 ? [] : [{ type: "delay", delay: delayMs }]),
        ...(retry === null
          ? []
          : [{ type: "retry", strategy: "linear", count: retry.count, interval: retry.intervalMs }])
      ]
      const id = idOf(
        await cluster.api("POST", "/connections", {
          name: key,
          source_id: sourceId,
          destination_id: destinationId,
          rules
        })
      )
      connections.push({ id, sourceId, destinationId, key, retry, delayMs, onlyKind, ratePerSecond })
    }
    routes.push({ sourceId, connections })
  }
  return routes
}

const idOf = (record: Record<string, unknown>): string => String(record["id"])
