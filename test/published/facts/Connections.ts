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

const retryMembers = of("strategy count interval", rules("fills in a retry's defaults"))
const statusCodes = of("response_status_codes", tests("packages/rules/test/StatusExpression.test.ts")("every form"))
const within = (members: string) =>
  members
    .split(" ")
    .map((name) => `rules[].${name}`)
    .join(" ")

export const connections: Section = {
  title: "Connections and rules",
  endpoints: [
    row("GET /connections", lists("resources are listed by id, order and state")),
    row("POST /connections", stored("stores a connection and shows it with its source and destination")),
    row(
      "PUT /connections; GET,PUT,PATCH,DELETE /connections/{id}",
      commands("the life of one of ${prefix}/connections")
    ),
    row(
      "PUT,POST /connections/{id}/pause; PUT,POST /connections/{id}/unpause",
      commands("the life of one of ${prefix}/connections")
    ),
    row(
      "PUT,POST /connections/{id}/disable; PUT,POST /connections/{id}/enable",
      commands("the life of one of ${prefix}/connections")
    ),
    row("GET /connections/{id}/latest-input", lists("the latest input of a connection"))
  ],
  fields: {
    Connection: [
      of("source destination", stored("stores a connection and shows it with its source and destination")),
      of(
        "ordering ordering.*",
        ordering("A connection's ordering is null by default, blocks by default, and can be removed")
      ),
      of("disabled_at paused_at", stored("pauses and unpauses, again without effect")),
      of("rules", input("normalises rules"))
    ],
    "ConnectionWrite ConnectionUpsert ConnectionPatch": [
      of("id", commands("the life of one of ${prefix}/connections")),
      of("name description rules", input("fills in what is not given")),
      of(
        "source_id source source.id destination_id destination destination.id",
        input("takes its ends by id or as objects with an id; the id wins")
      ),
      of("disabled_at paused_at", stored("an update that sets the two times is the transition that they stand for")),
      of("ordering", input("keeps an order by one value of the request, and blocks unless told")),
      of(within("type window include_fields exclude_fields"), rules("accepts every shape of a deduplicate rule")),
      of(within("headers body query path"), rules("keeps what is written")),
      of(
        within("filter_id filter_snapshot filter_snapshot.* detached_from_filter detached_from_filter.*"),
        rules("accepts a link to a stored filter, for the caller to resolve, and what a deleted one leaves")
      ),
      of(
        within("transformation_id transformation transformation.*"),
        rules("reads transformation as transform, linked or inline")
      ),
      of(within("delay"), rules("delay and retry")),
      of(within("strategy count interval response_status_codes"), rules("fills in a retry's defaults"))
    ],
    Ordering: [of("key on_failure", input("keeps an order by one value of the request, and blocks unless told"))],
    DeduplicateRule: [
      of(
        "window",
        dedup("A deduplication window ends a fixed time after the first request, and duplicates do not extend it")
      ),
      of("include_fields", keys("only they count")),
      of("exclude_fields", keys("everything else counts")),
      of("headers body", keys("only the requests that match them take part"))
    ],
    ShownTransformRule: [],
    FilterRule: [
      of("headers body query path", routing("Each connection of a source decides for itself")),
      of(
        "filter_id filter_snapshot filter_snapshot.* detached_from_filter detached_from_filter.*",
        rules("accepts a link to a stored filter, for the caller to resolve, and what a deleted one leaves")
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
      stored("disabling ends a pause and cancels; enabling cancels what is older")
    ),
    row(
      "pause: paused_at is set, delivery is paused; unpause: paused_at is null, delivery goes on",
      actors("delivers nothing of a paused connection, and goes on with UNPAUSE")
    ),
    row(
      "rules are evaluated in normalized order",
      rules("puts rules in the order of evaluation, filters among themselves as written")
    ),
    row(
      "rule types retry, delay, filter, transform, transformation, deduplicate",
      input("takes deduplicate and transform rules, linked and inline, and links to stored filters")
    ),
    row(
      "an inline transformation is upserted and linked",
      life("A transformation inside a rule is stored by its name, and the rule refers to its id")
    ),
    row("strategy linear", retry("linear waits the interval")),
    row("strategy exponential", retry("exponential doubles it")),
    row("upsert by id, otherwise by source_id and name", commands("the life of one of ${prefix}/connections"))
  ],
  limits: [
    row("list limit: 255 at most", lists("a limit beyond the maximum is the maximum")),
    row("delay 0 to 86400000 ms; window 1000 to 3600000 ms", rules("refuses ${JSON.stringify(input).slice(0, 100)}"))
  ]
}
