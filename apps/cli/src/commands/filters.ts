import { Flag } from "effect/cli"

/* The flags that filter lists and bulk retries. */

const many = (name: string, described: string) =>
  Flag.String(name).pipe(
    Flag.atMost(100),
    Flag.withMetavar("name|id"),
    Flag.withDescription(`${described}; separated by commas, or repeated`)
  )

const window = {
  from: Flag.String("from").pipe(
    Flag.optional,
    Flag.withDescription("Start of the time range: ISO 8601, now, or now-<n><s|m|h|d>")
  ),
  to: Flag.String("to").pipe(Flag.optional, Flag.withDescription("End of the time range, in the same formats")),
  search: Flag.String("search").pipe(
    Flag.optional,
    Flag.withDescription("Only records with this text in their ids or in other searched fields")
  )
}

export const sources = many("source", "Only of this source")

export const requestFilters = {
  source: sources,
  status: Flag.Literals("status", ["accepted", "rejected"]).pipe(
    Flag.optional,
    Flag.withDescription("Only requests of this status")
  ),
  ...window
}

export const eventFilters = {
  source: sources,
  destination: many("destination", "Only to this destination"),
  connection: many("connection", "Only of this connection"),
  status: Flag.Literals("status", ["SCHEDULED", "QUEUED", "HOLD", "SUCCESSFUL", "FAILED", "CANCELLED"]).pipe(
    Flag.atMost(6),
    Flag.withDescription("Only events of this status; can be repeated")
  ),
  ...window
}
