import { Schema } from "effect"
import { MissedRule } from "./WorkflowTriggers.ts"

/** The type of sources whose requests are made by a schedule: nobody can send to them. */
export const scheduledType = "CRON"

/** The header of such a request that says for which time it was made (ISO 8601). */
export const scheduledAtHeader = "x-gateway-scheduled-at"

/** When a source makes its requests, and what they contain: `config.schedule` of a source of type `CRON`, as stored. */
export const ScheduleSettings = Schema.Struct({
  cron: Schema.String,
  timezone: Schema.String,
  missed: MissedRule,
  /** JSON whose texts may contain tokens. Null: the time, the schedule and the source. */
  body: Schema.Json,
  /** Names in lower case. */
  headers: Schema.Record(Schema.String, Schema.String)
})
export interface ScheduleSettings extends Schema.Schema.Type<typeof ScheduleSettings> {}
