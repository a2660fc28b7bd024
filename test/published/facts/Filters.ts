import { of, row, type Section, shape, tests } from "./Facts.ts"

const api = tests("packages/api/test/Filters.test.ts")
const stored = tests("packages/storage/test/Filters.test.ts")
const input = tests("packages/resources/test/Filter.test.ts")
const explanation = tests("packages/rules/test/Explanation.test.ts")
const contract = tests("test/contract/Filters.test.ts")
const cluster = tests("test/cluster/filters.test.ts")

const together = input("A filter consists of a name and conditions, which may stand together or each in its own member")
const linked = stored("A rule that links a filter has its conditions and their version")
const counts = [
  of("connections_count sample_connection_id", linked),
  of("workflow_steps_count", api("Filter can be created, read, changed and deleted under ${prefix}/filters"))
]

export const filters: Section = {
  title: "Stored filters",
  endpoints: [
    row("GET /filters", api("Filters are listed by name without their connections, and narrowed by id and name")),
    row(
      "POST,PUT /filters; GET,PUT,PATCH,DELETE /filters/{id}",
      api("Filter can be created, read, changed and deleted under ${prefix}/filters")
    ),
    row("POST /filters/test", api("Filter test on a sample explains which conditions matched"))
  ],
  fields: {
    Filter: [
      of("conditions headers body query path", stored("A stored filter is returned with each of its conditions")),
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
        input("A partial change of a filter keeps the rest and replaces conditions as a whole")
      )
    ],
    FilterDeleted: [
      of(
        "detached_connections",
        stored("Deleting a filter leaves copies to the rules and reports the number of connections")
      )
    ],
    FilterTestInput: [
      of("conditions filter request input", api("Filter test on a sample explains which conditions matched")),
      of("filter_id request_id", input("The test of a filter takes one filter and one request, by id or inline"))
    ],
    FilterTest: [
      of(
        "matched targets targets.* explanation",
        explanation("An explanation reports for each operator what was expected and what was found")
      )
    ]
  },
  states: [
    row(
      "a change refreshes the copies of linked connections, and holds for every later request",
      cluster("A changed filter is used by both processes at once, in all of 400 changes")
    ),
    row(
      "a delete detaches the conditions into the rules",
      stored("Deleting a filter leaves copies to the rules and reports the number of connections")
    ),
    row(
      "an ignored event tells by which version it was judged",
      contract("A rule uses its linked filter, and an ignored event shows the filter's version")
    ),
    row(
      "changes that race with connection writes leave no rule without conditions",
      stored("Concurrent changes leave no rule without conditions and no outdated copy")
    ),
    row(
      "conditions beside filter_id are refused",
      api("Linked filter provides a rule's conditions, and a rule can be written back as it was read")
    ),
    row(
      "written by owners who are signed in, read and tried by members and keys",
      api("Signed-in owners write filters, and members and API keys read and test them")
    ),
    row(
      "400 for a wrong name, for empty and for wrong conditions",
      api("Invalid filter is refused with a specific error code")
    )
  ],
  limits: [
    row(
      "list limit: 255 at most",
      tests("packages/api/test/EveryList.test.ts")("List ${path} has the documented envelope, order and limits")
    ),
    row("500 filters of a team", stored("A team can have 500 filters, even if the last ones are created concurrently")),
    row(
      "50 explained operators, values of 200 characters",
      explanation("An explanation shows at most 50 operators and 200 characters of a value, through the given mask")
    ),
    row("test body of 256 KiB: 413", api("Filter test on a sample explains which conditions matched"))
  ]
}
