import { of, row, type Section, shape, tests } from "./Facts.ts"

const api = tests("packages/api/test/Filters.test.ts")
const stored = tests("packages/storage/test/Filters.test.ts")
const input = tests("packages/resources/test/Filter.test.ts")
const explanation = tests("packages/rules/test/Explanation.test.ts")
const contract = tests("test/contract/Filters.test.ts")
const cluster = tests("test/cluster/filters.test.ts")

const together = input("is a name and conditions, together or each in a member of its own")
const linked = stored("a rule that links one has its conditions, and which version they are of")
const counts = [
  of("connections_count sample_connection_id", linked),
  of("workflow_steps_count", api("the life of one of ${prefix}/filters"))
]

export const filters: Section = {
  title: "Stored filters",
  endpoints: [
    row("GET /filters", api("are listed by name, without their connections, and narrowed by id and name")),
    row("POST,PUT /filters; GET,PUT,PATCH,DELETE /filters/{id}", api("the life of one of ${prefix}/filters")),
    row("POST /filters/test", api("are tried on a request, and what matched is explained"))
  ],
  fields: {
    Filter: [
      of("conditions headers body query path", stored("stores a filter and shows it with its conditions one by one")),
      ...counts,
      of("connections", linked)
    ],
    ListedFilter: [of("conditions headers body query path", shape), ...counts],
    FilterConnection: [of("disabled_at paused_at", linked)],
    FilterConditions: [of("headers body query path", together)],
    FilterWrite: [of("name conditions headers body query path", together)],
    FilterPatch: [
      of(
        "name conditions headers body query path",
        input("a change in part leaves the rest, and replaces conditions whole")
      )
    ],
    FilterDeleted: [
      of(
        "detached_connections",
        stored("a delete leaves the copies to the rules as their own, and says to how many connections")
      )
    ],
    FilterTestInput: [
      of("conditions filter request input", api("are tried on a request, and what matched is explained")),
      of("filter_id request_id", input("takes one filter and one request, by id or as they are"))
    ],
    FilterTest: [
      of("matched targets targets.* explanation", explanation("says of each operator what it asked and what was there"))
    ]
  },
  states: [
    row(
      "a change refreshes the copies of linked connections, and holds for every later request",
      cluster("A changed filter is used by both processes at once, in all of 1,000 changes")
    ),
    row(
      "a delete detaches the conditions into the rules",
      stored("a delete leaves the copies to the rules as their own, and says to how many connections")
    ),
    row(
      "an ignored event tells by which version it was judged",
      contract("A rule uses its linked filter, and an ignored event shows the filter's version")
    ),
    row(
      "changes that race with connection writes leave no rule without conditions",
      stored("changes, deletes and connection writes at once leave no rule without conditions, and no stale copy")
    ),
    row(
      "conditions beside filter_id are refused",
      api("are linked by rules, which read their conditions and can be written back as they were read")
    ),
    row(
      "written by owners who are signed in, read and tried by members and keys",
      api("are written by owners who are signed in, read and tried by members and keys")
    ),
    row(
      "400 for a wrong name, for empty and for wrong conditions",
      api("are refused with a code of their own for what is wrong")
    )
  ],
  limits: [
    row(
      "list limit: 255 at most",
      tests("packages/api/test/EveryList.test.ts")("${path} has its envelope, its order and its limits")
    ),
    row("500 filters of a team", stored("a team can have 500, also when the last ones are made at once")),
    row(
      "50 explained operators, values of 200 characters",
      explanation("has at most 50 operators and 200 characters of a value, and shows what it is told to show")
    ),
    row("test body of 256 KiB: 413", api("are tried on a request, and what matched is explained"))
  ]
}
