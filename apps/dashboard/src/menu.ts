import type { Call } from "./may.ts"

type Entry = readonly [path: string, label: string]

/** The pages of the menu, in its groups. The command palette offers the same ones, and `forms`, which are reached from lists. */
export const groups: ReadonlyArray<{ readonly title: string; readonly pages: ReadonlyArray<Entry> }> = [
  {
    title: "Watch",
    pages: [
      ["/", "Overview"],
      ["/map", "Map"],
      ["/requests", "Requests"],
      ["/events", "Events"],
      ["/attempts", "Attempts"],
      ["/runs", "Workflow runs"],
      ["/bulk-operations", "Bulk operations"]
    ]
  },
  {
    title: "Build",
    pages: [
      ["/sources", "Sources"],
      ["/connections", "Connections"],
      ["/destinations", "Destinations"],
      ["/transformations", "Transformations"],
      ["/workflows", "Workflows"],
      ["/filters", "Filters"],
      ["/fixtures", "Fixtures"]
    ]
  },
  {
    title: "Operate",
    pages: [
      ["/channels", "Channels"],
      ["/alerts", "Alerts"],
      ["/accounts", "Provider accounts"],
      ["/bins", "Bins"],
      ["/shares", "Shares"],
      ["/team", "Team"]
    ]
  }
]

/** Pages that make something, each with the call that it makes: they are for whoever may make it. */
export const forms: ReadonlyArray<readonly [...Entry, call: Call]> = [
  ["/sources/new", "New source", "POST /sources"],
  ["/destinations/new", "New destination", "POST /destinations"],
  ["/connections/new", "New connection", "POST /connections"],
  ["/transformations/new", "New transformation", "POST /transformations"],
  ["/workflows/new", "New workflow", "POST /workflows"],
  ["/filters/new", "New filter", "POST /filters"],
  ["/accounts/new", "New provider account", "POST /provider-accounts/credentials/connect"]
]
