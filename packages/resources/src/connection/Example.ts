import { example as destination } from "../destination/Example.ts"
import { example as source } from "../source/Example.ts"
import { ids, times } from "../ExampleIds.ts"

export const rules = [
  { type: "deduplicate", window: 60_000, include_fields: ["body.id"] },
  { type: "filter", body: { type: { $in: ["order.created", "order.paid"] } } },
  { type: "delay", delay: 5_000 },
  {
    type: "retry",
    strategy: "exponential",
    count: 5,
    interval: 60_000,
    response_status_codes: ["429", "500-599", "!501"]
  }
] as const

export const ordering = { key: "body.customer.id", on_failure: "block" } as const

export const example = {
  body: {
    name: "shop-to-orders-api",
    source_id: ids.source,
    destination_id: ids.destination,
    rules,
    ordering
  },
  patch: { rules: [{ type: "retry", strategy: "linear", count: 3, interval: 10_000 }] },
  record: {
    id: ids.connection,
    team_id: ids.team,
    name: "shop-to-orders-api",
    description: null,
    source_id: ids.source,
    destination_id: ids.destination,
    source: source.record,
    destination: destination.record,
    rules,
    ordering,
    disabled_at: null,
    paused_at: null,
    ...times
  }
} as const
