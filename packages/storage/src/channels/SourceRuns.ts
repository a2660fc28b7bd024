import type { RunReason } from "@tidegate/channels/machine/Facts"
import { dayMs } from "@tidegate/channels/machine/Times"
import { Rows } from "../journal/Rows.ts"

/** The time (ms) for which runs are kept. */
export const runsKeptMs = 30 * dayMs
/** The same for scheduled runs that found nothing: a source may have one every minute. */
const quietKeptMs = 3 * dayMs

/** A run: the polls from the first page to the last one. */
export interface SourceRun {
  readonly id: string
  readonly team_id: string
  readonly source_id: string
  readonly status: "running" | "succeeded" | "failed"
  readonly reason: RunReason
  readonly items_found: number
  readonly items_new: number
  readonly error_code: string | null
  readonly started_at: number
  readonly finished_at: number | null
}

const isQuiet = ({ error_code, items_new, reason }: SourceRun): boolean =>
  reason === "schedule" && items_new === 0 && error_code === null

/** Runs as they are now. A manual one has a row already, and so has one with several pages: see `runAgain`. */
export const savedRuns = new Rows<SourceRun>("r", [
  ["id", "text", ({ id }) => id],
  ["team_id", "text", ({ team_id }) => team_id],
  ["source_id", "text", ({ source_id }) => source_id],
  ["status", "text", ({ status }) => status],
  ["reason", "text", ({ reason }) => reason],
  ["items_found", "int4", ({ items_found }) => items_found],
  ["items_new", "int4", ({ items_new }) => items_new],
  ["error_code", "text", ({ error_code }) => error_code],
  ["started_at", "timestamptz", ({ started_at }) => started_at, ["scheduled_at", "started_at"]],
  ["finished_at", "timestamptz", ({ finished_at }) => finished_at],
  ["expires_at", "timestamptz", (run) => run.started_at + (isQuiet(run) ? quietKeptMs : runsKeptMs)]
])

/** What a run that has a row changes in it. */
export const runAgain = `on conflict (id) do update set ${[
  "status",
  "items_found",
  "items_new",
  "error_code",
  "started_at",
  "finished_at",
  "expires_at"
]
  .map((column) => `${column} = excluded.${column}`)
  .join(", ")}`
