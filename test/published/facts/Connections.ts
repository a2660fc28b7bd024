import { of, row, type Section, tests } from "./Facts.ts"

const stored = tests("packages/storage/test/Connections.test.ts")
const input = tests("packages/resources/test/Connection.test.ts")
const rules = tests("packages/rules/test/RuleSet.test.ts")
const dedup = tests("test/contract/Deduplicate.test.ts")
const keys = tests("packages/rules/test/Deduplication.test.ts")
const retry = tests("packages/rules/test/Retry.test.ts")
const lists = tests("packages/api/test/Lists.test.ts")
const commands = tests("packages/api/test/Commands.test.ts")
const ordering = tests("test/contract/Ordering.test.ts")
const actors = tests("packages/entities/test/Delivery.test.ts")
const routing = tests("test/contract/Routing.test.ts")
const life = tests("test/contract/TransformationLife.test.ts")

const retryMembers = of("strategy count interval", rules("A retry rule gets its default values"))
const statusCodes = of(
  "response_status_codes",
  tests("packages/rules/test/StatusExpression.test.ts")("Every form of a status expression covers its statuses")
)
const within = (members: string) =>
  members
    .split(" ")
    .map((name) => `rules[].${name}`)
    .join(" ")

export const connections: Section = {
  title: "Connections and rules",
  endpoints: [
    row("GET /connections", lists("Resources are listed by id, order and state")),
    row("POST /connections", stored("A stored connection is returned with its source and destination")),
    row(
      "PUT /connections; GET,PUT,PATCH,DELETE /connections/{id}",
      commands("Connection can be paused, disabled, changed, upserted and deleted under ${prefix}/connections")
    ),
    row(
      "PUT,POST /connections/{id}/pause; PUT,POST /connections/{id}/unpause",
      commands("Connection can be paused, disabled, changed, upserted and deleted under ${prefix}/connections")
    ),
    row(
      "PUT,POST /connections/{id}/disable; PUT,POST /connections/{id}/enable",
      commands("Connection can be paused, disabled, changed, upserted and deleted under ${prefix}/connections")
    ),
    row(
      "GET /connections/{id}/latest-input",
      lists("Latest input of a connection is the last accepted request of its source")
    )
  ],
  fields: {
    Connection: [
      of("source destination", stored("A stored connection is returned with its source and destination")),
      of(
        "ordering ordering.*",
        ordering("A connection's ordering is null by default, blocks by default, and can be removed")
      ),
      of("disabled_at paused_at", stored("A connection can be paused and unpaused, and a repetition has no effect")),
      of("rules", input("Rules of a connection are normalized"))
    ],
    "ConnectionWrite ConnectionUpsert ConnectionPatch": [
      of(
        "id",
        commands("Connection can be paused, disabled, changed, upserted and deleted under ${prefix}/connections")
      ),
      of("name description rules", input("A new connection gets default values for what is omitted")),
      of(
        "source_id source source.id destination_id destination destination.id",
        input("A connection accepts its source and destination by id or as objects, and the id has priority")
      ),
      of("disabled_at paused_at", stored("An update of the two times has the same effect as the command for it")),
      of("ordering", input("An ordering key is the path of one request value, and a failure blocks by default")),
      of(within("type window include_fields exclude_fields"), rules("All forms of a deduplicate rule are accepted")),
      of(within("headers body query path"), rules("Normalized rules are kept as written")),
      of(
        within("filter_id filter_snapshot filter_snapshot.* detached_from_filter detached_from_filter.*"),
        rules("Links to stored filters are accepted, and so is a filter detached from a deleted one")
      ),
      of(
        within("transformation_id transformation transformation.*"),
        rules("The rule type transformation means transform, linked or inline")
      ),
      of(within("delay"), rules("Delay and retry rules are compiled")),
      of(within("strategy count interval response_status_codes"), rules("A retry rule gets its default values"))
    ],
    Ordering: [
      of("key on_failure", input("An ordering key is the path of one request value, and a failure blocks by default"))
    ],
    DeduplicateRule: [
      of(
        "type",
        tests("packages/api/test/DeduplicationTest.test.ts")(
          "A test of a deduplicate rule refuses other rules, other numbers, and sources of other teams"
        )
      ),
      of(
        "window",
        dedup("A deduplication window ends a fixed time after the first request, and duplicates do not extend it")
      ),
      of("include_fields", keys("Only included fields decide about the key")),
      of("exclude_fields", keys("Everything except the excluded fields decides about the key")),
      of("headers body", keys("Only requests that match the conditions have a key"))
    ],
    ShownTransformRule: [],
    FilterRule: [
      of("headers body query path", routing("Each connection of a source decides for itself")),
      of(
        "filter_id filter_snapshot filter_snapshot.* detached_from_filter detached_from_filter.*",
        rules("Links to stored filters are accepted, and so is a filter detached from a deleted one")
      )
    ],
    DelayRule: [of("delay", routing("A delivery waits for a short delay rule"))],
    RetryRule: [retryMembers, statusCodes],
    LatestInput: [
      of(
        "*",
        tests("test/contract/Records.test.ts")("The latest input of a connection is the last request of its source")
      )
    ]
  },
  states: [
    row(
      "disable, enable: disabled_at is set or cleared; routing is off while it is disabled",
      stored("Disabling ends a pause and cancels events, and enabling cancels older events")
    ),
    row(
      "pause: paused_at is set, delivery is paused; unpause: paused_at is null, delivery goes on",
      actors("A paused connection delivers nothing and continues with the trigger UNPAUSE")
    ),
    row(
      "rules are evaluated in normalized order",
      rules("Rules are sorted by the order of evaluation, and filters keep their order")
    ),
    row(
      "rule types retry, delay, filter, transform, transformation, deduplicate",
      input("Connections accept deduplicate, transform and filter rules, linked or inline")
    ),
    row(
      "an inline transformation is upserted and linked",
      life("A transformation inside a rule is stored by its name, and the rule refers to its id")
    ),
    row("strategy linear", retry("A linear rule always waits its interval")),
    row("strategy exponential", retry("An exponential rule doubles its interval")),
    row(
      "upsert by id, otherwise by source_id and name",
      commands("Connection can be paused, disabled, changed, upserted and deleted under ${prefix}/connections")
    )
  ],
  limits: [
    row("list limit: 255 at most", lists("Limit above the maximum of a list is lowered to the maximum")),
    row(
      "delay 0 to 86400000 ms; window 1000 to 3600000 ms",
      rules("The rules ${JSON.stringify(input).slice(0, 100)} are rejected")
    )
  ]
}
