import { of, row, type Section, tests } from "./Facts.ts"

const api = tests("packages/api/test/DataDeletions.test.ts")
const stored = tests("packages/storage/test/DataDeletion.test.ts")

const told = api("A deletion is for owners: it is planned, confirmed, and told as a proof without the text")
const refused = api(
  "A deletion that would delete everything, or whose text is too short, too long or blank at an end, is refused"
)
const text = stored(
  "A person's text is deleted with the requests and runs that it is in, wherever it is, although the process dies at each step"
)
const forms = stored(
  "A text is found in JSON, in URLs, in forms, and in compressed bodies, and what cannot be read is counted"
)
const filtered = stored(
  "A filter deletes its requests with replays of them, and with runs that came of those, and nothing else"
)
const limited = stored(
  "A team has one deletion at a time, which can be cancelled, ends when it finds too much, and expires as a plan"
)

export const dataDeletions: Section = {
  title: "Deletions of data",
  endpoints: [
    row("GET,POST /data-deletions", told),
    row("GET /data-deletions/{id}; POST /data-deletions/{id}/run; POST /data-deletions/{id}/cancel", told)
  ],
  fields: {
    DataDeletion: [of("unreadable_count", forms), of("planned deleted confirmed_at text_hash", text), of("*", told)],
    DataDeletionFilter: [of("*", told)],
    DataDeletionWrite: [of("text", refused), of("*", told)]
  },
  states: [
    row("searching, counting, planned, stopping, removing, done", text),
    row("cancelled; failed", limited),
    row("replays, runs and runs of runs go with a request", filtered),
    row(
      "events that wait, are retried or are being delivered are not delivered any more",
      tests("test/contract/DataDeletion.test.ts")(
        "A person's data is deleted from records, copies, queues and memory, and nothing of it is delivered any more"
      )
    )
  ],
  limits: [row("one deletion of a team at a time", limited), row("500,000 requests and runs in one deletion", limited)]
}
