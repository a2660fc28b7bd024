import { Schema } from "effect"
import { RatePeriod } from "./Destination.ts"
import { Timestamp } from "./Timestamp.ts"

/**
 * The state of a source: the results of its requests in the last 24 hours, and its ingest limit. `limited` requests are counted
 * and not stored. `period`: null without a limit, and while no period is under way; `leased`: what its requests have used, and
 * what ingress processes hold in advance.
 */
export const SourceHealth = Schema.Struct({
  source_id: Schema.String,
  accepted_24h_count: Schema.Int,
  rejected_24h_count: Schema.Int,
  limited_24h_count: Schema.Int,
  last_request_at: Schema.NullOr(Timestamp),
  rate_limit: Schema.NullOr(Schema.Int).annotate({
    description: "Requests that are accepted per `rate_limit_period`. Null: no limit"
  }),
  rate_limit_period: Schema.NullOr(RatePeriod),
  period: Schema.NullOr(
    Schema.Struct({ leased: Schema.Int, remaining: Schema.Int, processes: Schema.Int, ends_at: Timestamp })
  )
}).annotate({
  identifier: "SourceHealth",
  description: "Counts of a source's requests in the last 24 hours, and the state of its rate limit."
})

export interface SourceHealth extends Schema.Schema.Type<typeof SourceHealth> {}
