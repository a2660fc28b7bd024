import { of, row, type Section, tests } from "./Facts.ts"

const alarms = tests("packages/storage/test/Alarms.test.ts")
const expiring = tests("packages/storage/test/ExpiringKeys.test.ts")
const api = tests("packages/api/test/Issues.test.ts")
const lists = tests("packages/api/test/EveryList.test.ts")

const opened = alarms("A failed delivery opens an issue, and its team is told once by two looks at the same time")
const resolved = alarms("An issue is resolved when deliveries succeed again, and opens again with the next failure")
const changed = api("An issue is acknowledged or dismissed, and says who did it; a resolved one stays resolved")

export const issues: Section = {
  title: "Issues and system events",
  endpoints: [
    row("GET /issues", lists("List ${path} is narrowed by each of its filters")),
    row("GET /issues/{id}; POST /issues/{id}/acknowledge; POST /issues/{id}/dismiss", changed)
  ],
  fields: {
    Issue: [of("response_status changed_by", changed), of("resolved_at", changed), of("*", opened)]
  },
  states: [
    row("open", opened),
    row("resolved; open again", resolved),
    row("acknowledged; dismissed", changed),
    row(
      "destination.failing, destination.recovered: once for each change, at most once in a window",
      alarms("A destination that fails on and off within the window is not mentioned again")
    ),
    row(
      "key.expiring: once for each end and time before it",
      expiring(
        "A key that expires is told of 30 days, 7 days and 1 day before, once each by two looks at the same time"
      )
    ),
    row(
      "no system event about what follows from a system event",
      alarms("What follows from a system event makes no occurrence: by its source, or by the mark of its chain")
    ),
    row(
      "one system source in a team; nobody can send to it; it is not deleted",
      alarms("A team has one system source; nobody can send to it or delete it")
    )
  ],
  limits: [
    row(
      "60 system events in a minute",
      alarms("A team gets a limited number of system events in a minute, and the others later")
    )
  ]
}
