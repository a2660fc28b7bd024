import { of, row, type Section, sourceTypes, tests } from "./Facts.ts"

const stored = tests("packages/storage/test/Sources.test.ts")
const input = tests("packages/resources/test/Source.test.ts")
const tried = tests("packages/api/test/DeduplicationTest.test.ts")
const sent = tests("test/contract/TestRequests.test.ts")
const listedTypes = sent("Source types are listed with their names, what to do and their samples")
const sentSample = sent("Test request has the sample's body and the mark of a test, and is delivered")
const sentOwn = sent(
  "Test request with a body, a path and a query of one's own is signed, with all digits of its numbers"
)
const triedInOrder = tried(
  "A deduplicate rule is tried on the stored requests of a source, in their order and within its window"
)
const answers = tests("test/contract/CustomResponses.test.ts")
const answerRules = tests("packages/rules/test/CustomResponse.test.ts")
const proxy = tests("test/contract/Proxy.test.ts")
const withheld = tests("test/contract/PresentedSecrets.test.ts")(
  "A proxy source withholds its own credentials from the upstream unless it is set to forward them"
)
const proxyRules = tests("test/contract/ProxyRules.test.ts")
const ingress = tests("test/contract/Ingress.test.ts")
const limit = tests("test/contract/IngestLimit.test.ts")
const lists = tests("packages/api/test/Lists.test.ts")
const providers = tests("test/contract/Providers.test.ts")
const warned = tests("packages/api/test/Strict.test.ts")(
  "Source of a provider without its secret gets a warning until it has one"
)
const commands = tests("packages/api/test/Commands.test.ts")

const auth = of("auth.*", providers("A provider's settings are masked when read and can be written back"))
const items = tests("packages/resources/test/ProviderSource.test.ts")
const ofProvider = tests("packages/storage/test/Channels.test.ts")(
  "A provider source is created with its channel, which is due with each change and kept after a delete"
)
const itemMembers = of(
  "provider_key definition_key delivery_mode schedule schedule.interval_minutes provider_account_id channel",
  ofProvider
)

const scheduled = tests("packages/resources/test/ScheduledSource.test.ts")
const madeBySchedule = tests("packages/storage/test/ScheduledSources.test.ts")
const subscribed = tests("packages/resources/test/BrokerSource.test.ts")
const subscriptions = tests("packages/storage/test/Subscriptions.test.ts")
const brokers = tests("test/contract/BrokerSources.test.ts")
const invalidSubscription = subscribed("All invalid settings of a subscription are reported at once")
const shownState = subscriptions(
  "How the connection is doing is shown until the source changes, and an outdated actor writes nothing"
)
const countedMessages = subscriptions("Messages become accepted requests in their order, for the source's connections")
const state = of("subscription_state", shownState)
const nextDue = of(
  "next_due_at",
  madeBySchedule("A source that is disabled or deleted makes no request, and has missed nothing when it is enabled")
)

const limits = of(
  "rate_limit rate_limit_period",
  limit("A source accepts requests up to its rate limit, and counts the others without storing them")
)

export const sources: Section = {
  title: "Sources",
  endpoints: [
    row("GET /sources", lists("Resources are listed by id, order and state")),
    row(
      "GET,PUT,PATCH,DELETE /sources/{id}",
      commands("Resource can be created, changed, disabled and deleted under ${prefix}/${kind}")
    ),
    row("POST /sources", commands("Source created over HTTP is stored as a row and can be read back")),
    row("PUT /sources", commands("Concurrent upserts of one name all succeed and create one resource")),
    row(
      "PUT,POST /sources/{id}/disable; PUT,POST /sources/{id}/enable",
      commands("Resource can be created, changed, disabled and deleted under ${prefix}/${kind}")
    ),
    row("GET /sources/{id}/health", limit("The health of a source without a rate limit has no period")),
    row("POST /sources/{id}/deduplication-test", triedInOrder),
    row("POST /sources/{id}/test-request", sentSample),
    row("GET /source-types", listedTypes)
  ],
  fields: {
    SourceType: [of("*", listedTypes)],
    TestRequestInput: [of("sample headers", sentSample), of("*", sentOwn)],
    TestRequestResult: [of("*", sentSample)],
    TestRequestAnswer: [
      of(
        "*",
        sent("Test request that only the provider can sign is refused, and sent unsigned only if that is asked for")
      )
    ],
    Source: [
      of(
        "url",
        tests("test/contract/Slugs.test.ts")(
          "A slug is a second URL of a source, which shows it and keeps the URL with its id"
        )
      ),
      itemMembers,
      nextDue,
      state,
      of(
        "disabled_at",
        stored("Disabling a source disables its enabled connections, and enabling it enables exactly those")
      )
    ],
    WrittenSource: [
      of(
        "disabled_at url",
        stored("Disabling a source disables its enabled connections, and enabling it enables exactly those")
      ),
      itemMembers,
      nextDue,
      state,
      of("warnings", warned)
    ],
    Warning: [of("*", warned)],
    DeduplicationTestInput: [of("rule limit", triedInOrder)],
    DeduplicationTest: [of("*", triedInOrder)],
    TestedDuplicate: [of("*", triedInOrder)],
    SourceConfig: [
      of("schedule", scheduled("A source with a schedule is stored with the defaults of what is omitted")),
      of(
        "subscription",
        subscribed("A source of a broker is stored with the defaults of what is omitted, and signs in with its auth")
      ),
      of("subscription.*", invalidSubscription),
      of("provider", items("A provider source is stored with its complete inputs and the defaults of its delivery")),
      auth,
      limits,
      of("allowed_http_methods", ingress("A source can accept GET and HEAD, and HEAD is answered without a body")),
      of(
        "auth_type",
        providers("The auth_type of a provider's source may be omitted, PROVIDER_SIGNATURE or the one that it reads")
      ),
      of(
        "chat_defer_ephemeral",
        answers("Chat interactions are deferred, publicly or only for their sender, and delivered")
      ),
      of(
        "custom_response",
        answers("A stored custom response is returned as written, and a change applies from the next request on")
      ),
      of("mode proxy", proxyRules("Proxy settings get their defaults and are kept in webhook mode"))
    ],
    "SourceWrite SourcePatch": [
      of("name description type", input("A new source gets default values for what is omitted")),
      of("status", stored("An update can disable and enable a source as well")),
      of("url", input("The URL of a source contains a slug below the ingress URL")),
      of("config", input("Source settings are accepted inside config and at the top level, but must not differ")),
      of(
        "config.allowed_http_methods",
        input("The allowed methods of a source are stored without duplicates, and one is required")
      ),
      of("config.custom_response", input("A custom response is stored as it was written")),
      of("config.provider", items("The type PROVIDER is chosen once, and only its sources have a provider")),
      of("config.schedule", scheduled("The type CRON is chosen once, and only its sources have a schedule")),
      of(
        "config.subscription",
        subscribed("The type of a broker is chosen once, and only its sources have a subscription")
      ),
      of("config.subscription.*", invalidSubscription),
      of("config.mode config.proxy", input("The mode and the proxy's switch imply each other")),
      of("config.chat_defer_ephemeral", input("The setting chat_defer_ephemeral is for DISCORD sources only")),
      of(
        "config.rate_limit config.rate_limit_period",
        input("The rate limit of a source must be a whole number in a known period")
      ),
      of(
        "config.auth.timestamp_header config.auth.tolerance_seconds",
        ingress("Ingress verifies an HMAC with a timestamp")
      ),
      of("config.auth.query_key", ingress("Ingress verifies an API_KEY in the query")),
      of(
        "config.auth.algorithm config.auth.encoding",
        tests("packages/verification/test/SignatureScheme.test.ts")(
          "RFC 4231 test vector ${index + 1} is verified, and its truncated signature is refused"
        )
      ),
      of(
        "config.auth.verify_token",
        tests("test/contract/Handshakes.test.ts")("A provider's handshake is answered, stored and not delivered")
      ),
      of("config.auth_type config.auth config.auth.*", sourceTypes)
    ],
    SourceConfigPatch: [
      of("allowed_http_methods", input("A partial change merges the source's config by member and keeps the rest")),
      of("auth_type auth auth.*", providers("A provider's verification can be turned off and on by a change")),
      of("custom_response", input("A change replaces the custom response as a whole, or keeps it")),
      of("provider", items("A change merges the provider by member and replaces the inputs as a whole")),
      of(
        "schedule",
        scheduled("A change merges the schedule by member, and replaces its body and its headers as a whole")
      ),
      of(
        "subscription",
        subscribed("A change merges the subscription by member, and keeps the credentials with their address")
      ),
      of("subscription.*", invalidSubscription),
      of("mode", input("A change of the mode enables or disables the stored proxy settings")),
      of("proxy", input("New proxy settings replace the old ones as a whole and keep the mode by default")),
      of("chat_defer_ephemeral", input("The setting chat_defer_ephemeral stays until it or the type is changed")),
      of("rate_limit rate_limit_period", input("The rate limit of a source stays until it is changed"))
    ],
    ScheduleSettings: [],
    SubscriptionState: [
      of("status connected_at last_error last_error_at", shownState),
      of("last_message_at stored_count rejected_count last_rejection", countedMessages),
      of(
        "duplicate_count",
        subscriptions("A message that comes again makes no second request, and another one with its id makes its own")
      )
    ],
    "ScheduleSettingsWrite ScheduleSettingsPatch": [
      of("cron timezone missed body", scheduled("All invalid settings of a schedule are reported at once")),
      of(
        "headers",
        scheduled(
          "Headers of a schedule are stored in lower case, and those that others set or that hold credentials are refused"
        )
      )
    ],
    CustomResponse: [
      of("content_type", answerRules("The content type of a rule defaults to the outer one, and that one to JSON")),
      of("body", answers("Placeholders are filled in JSON responses")),
      of(
        "rules rules[].enabled",
        answers("The first enabled rule that matches decides, and a rule without conditions always matches")
      ),
      of(
        "rules[].match rules[].match.*",
        answerRules("A rule answers if all of its conditions match, and the fallback answers otherwise")
      ),
      of(
        "rules[].response rules[].response.content_type rules[].response.body",
        answerRules("A rule without a body answers with an empty body, whatever the fallback is")
      ),
      of(
        "rules[].response.status",
        answers("A custom response with status ${status} still accepts and routes the request")
      ),
      of("rules[].response.headers", answers("A custom response can have headers, which a sender's value cannot break"))
    ],
    ConditionOperators: [
      of(
        "*",
        tests("packages/rules/test/Filter.test.ts")(
          "The filter ${shown(condition)} on ${shown(document)} gives ${expected}"
        )
      )
    ],
    ProxySettings: [
      of("enabled", input("The mode and the proxy's switch imply each other")),
      of("target_url", input("The proxy's target must be an absolute http or https URL")),
      of(
        "path_forwarding query_forwarding",
        proxy('A proxy source with ${JSON.stringify(proxy)} and base "${base}" maps "${suffix}" to ${called}')
      ),
      of("forward_credentials", withheld),
      of("timeout_ms", proxy("An upstream that does not answer in time results in 504")),
      of(
        "capture_response_bytes",
        proxyRules("The caller gets all of ${size} bytes, and with a limit of ${limit} the exchange keeps ${kept}")
      )
    ],
    ShownProxySettings: [of("forward_credentials", withheld)],
    SourceHealth: [
      of("*", limit("A source accepts requests up to its rate limit, and counts the others without storing them"))
    ],
    Deleted: []
  },
  states: [
    row(
      "disable: disabled_at is set; disable: related connections are disabled too; enable: disabled_at is null, and the connections that it had disabled are back",
      stored("Disabling a source disables its enabled connections, and enabling it enables exactly those")
    ),
    row(
      "a connection disabled by itself stays off when its source is enabled",
      stored("A connection that was disabled by itself stays disabled when its source is enabled")
    ),
    row("mode webhook, proxy", proxyRules("A change of the proxy mode applies from the next request on")),
    row(
      "type CRON: one request for each time; missed skip, once, all",
      madeBySchedule("After a downtime the rule for missed times says which of them make requests")
    ),
    row(
      "types RABBITMQ, NATS_JETSTREAM, AWS_SQS, REDIS_STREAM, KAFKA and GCP_PUBSUB: a message is settled at its broker after the commit that stores it, and once for each message",
      brokers("Messages of a queue become requests, each once, also when the broker and the gateway are cut off")
    ),
    row("auth_type BASIC_AUTH", ingress("Ingress verifies BASIC_AUTH")),
    row("auth_type API_KEY", ingress("Ingress verifies an API_KEY in a header")),
    row("auth_type HMAC", ingress("Ingress verifies an HMAC over the raw bytes")),
    row("auth_type null", input("An explicit null as auth_type turns verification off, whatever auth contains")),
    row(
      "duplicate name: 409 RESOURCE_ALREADY_EXISTS",
      stored("A source name that is taken is rejected with the id of its owner")
    ),
    row(
      "vendor-specific types",
      providers("A genuine provider request is delivered unchanged, and a forged one is stored as rejected")
    ),
    row(
      "custom_response content types json, text, xml",
      answers("A custom response of type ${content_type} is not interpreted as a page by browsers")
    ),
    row(
      "matcher operators $eq, $ne, $contains, $starts_with, $ends_with, $exists, $in, $regex",
      answerRules("A rule answers if all of its conditions match, and the fallback answers otherwise")
    )
  ],
  limits: [
    row(
      "100 sources of type CRON in a team",
      madeBySchedule("A team has a limit of such sources, which two creates at once cannot exceed")
    ),
    row(
      "20 sources of brokers in a team",
      subscriptions("Nobody can post to the URL of such a source, and a team has a limited number of them")
    ),
    row("list limit: 255 at most", lists("Limit above the maximum of a list is lowered to the maximum")),
    row(
      "proxy timeout_ms 1000 to 30000; proxy capture_response_bytes 0 to 65536",
      input("Proxy settings outside their limits are rejected")
    ),
    row(
      "rate_limit a positive integer; rate_limit_period second, minute, hour, day",
      input("The rate limit of a source must be a whole number in a known period")
    )
  ]
}
