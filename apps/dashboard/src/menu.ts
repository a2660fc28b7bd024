type Entry = readonly [path: string, label: string]

/** The pages of the menu, in its groups. The command palette offers the same ones, and `made`, which are reached from lists. */
export const groups: ReadonlyArray<{ readonly title: string; readonly pages: ReadonlyArray<Entry> }> = [
  {
    title: "Watch",
    pages: [
      ["/", "Overview"],
      ["/map", "Map"],
      ["/requests", "Requests"],
      ["/events", "Events"],
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

export const made: ReadonlyArray<Entry> = [
  ["/sources/new", "New source"],
  ["/destinations/new", "New destination"],
  ["/connections/new", "New connection"],
  ["/transformations/new", "New transformation"],
  ["/workflows/new", "New workflow"],
  ["/filters/new", "New filter"],
  ["/accounts/new", "New provider account"]
]
