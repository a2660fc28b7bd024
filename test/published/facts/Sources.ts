import { of, row, type Section, sourceTypes, tests } from "./Facts.ts"

const stored = tests("packages/storage/test/Sources.test.ts")
const input = tests("packages/resources/test/Source.test.ts")
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
  "a provider's source without its secret is made with a warning, which goes when it has one"
)
const commands = tests("packages/api/test/Commands.test.ts")

const auth = of("auth.*", providers("A provider's settings are masked when read and can be written back"))
const limits = of(
  "rate_limit rate_limit_period",
  limit("A source accepts requests up to its rate limit, and counts the others without storing them")
)

export const sources: Section = {
  title: "Sources",
  endpoints: [
    row("GET /sources", lists("resources are listed by id, order and state")),
    row("GET,PUT,PATCH,DELETE /sources/{id}", commands("the life of one of ${prefix}/${kind}")),
    row("POST /sources", commands("a source created over HTTP is a row, and reads back")),
    row("PUT /sources", commands("upserts of one name at once all succeed, with one resource")),
    row(
      "PUT,POST /sources/{id}/disable; PUT,POST /sources/{id}/enable",
      commands("the life of one of ${prefix}/${kind}")
    ),
    row("GET /sources/{id}/health", limit("The health of a source without a rate limit has no period"))
  ],
  fields: {
    Source: [
      of(
        "url",
        tests("test/contract/Slugs.test.ts")(
          "A slug is a second URL of a source, which shows it and keeps the URL with its id"
        )
      ),
      of("disabled_at", stored("switches its enabled connections off with it, and on again exactly those"))
    ],
    WrittenSource: [
      of("disabled_at url", stored("switches its enabled connections off with it, and on again exactly those")),
      of("warnings", warned)
    ],
    Warning: [of("*", warned)],
    SourceConfig: [
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
      of("name description type", input("fills in what is not given")),
      of("status", stored("an update can switch it off and on as well")),
      of("url", input("is a slug below the ingress URL")),
      of("config", input("takes settings inside config and at the top, once")),
      of("config.allowed_http_methods", input("keeps each method once; at least one")),
      of("config.custom_response", input("is stored as it was written, whatever the spelling")),
      of("config.mode config.proxy", input("each implies the other")),
      of("config.chat_defer_ephemeral", input("is for chat interactions only")),
      of("config.rate_limit config.rate_limit_period", input("is a whole number of requests in a known period")),
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
      of("allowed_http_methods", input("merges config by member and leaves the rest")),
      of("auth_type auth auth.*", providers("A provider's verification can be turned off and on by a change")),
      of("custom_response", input("is replaced whole by a change, and left alone without one")),
      of("mode", input("a change of the mode wakes the settings up and puts them to sleep")),
      of(
        "proxy",
        input("a change of the settings replaces them whole, in the mode that is stored unless it says otherwise")
      ),
      of("chat_defer_ephemeral", input("stays unless it is changed, and ends with the type")),
      of("rate_limit rate_limit_period", input("stays unless it is changed"))
    ],
    CustomResponse: [
      of("content_type", answerRules("content types fall back to the outer one, and that to JSON")),
      of("body", answers("Placeholders are filled in JSON responses")),
      of(
        "rules rules[].enabled",
        answers("The first enabled rule that matches decides, and a rule without conditions always matches")
      ),
      of("rules[].match rules[].match.*", answerRules("a rule's when all of its conditions hold, else the fallback")),
      of(
        "rules[].response rules[].response.content_type rules[].response.body",
        answerRules("a rule without a body answers without one, whatever the fallback is")
      ),
      of(
        "rules[].response.status",
        answers("A custom response with status ${status} still accepts and routes the request")
      ),
      of("rules[].response.headers", answers("A custom response can have headers, which a sender's value cannot break"))
    ],
    ConditionOperators: [
      of("*", tests("packages/rules/test/Filter.test.ts")("${shown(condition)} ← ${shown(document)}: ${expected}"))
    ],
    ProxySettings: [
      of("enabled", input("each implies the other")),
      of("target_url", input("the target is an absolute http or https URL")),
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
      stored("switches its enabled connections off with it, and on again exactly those")
    ),
    row(
      "a connection disabled by itself stays off when its source is enabled",
      stored("a connection disabled by itself stays off when its source comes back")
    ),
    row("mode webhook, proxy", proxyRules("A change of the proxy mode applies from the next request on")),
    row("auth_type BASIC_AUTH", ingress("Ingress verifies BASIC_AUTH")),
    row("auth_type API_KEY", ingress("Ingress verifies an API_KEY in a header")),
    row("auth_type HMAC", ingress("Ingress verifies an HMAC over the raw bytes")),
    row("auth_type null", input("turns verification off with an explicit null, whatever auth says")),
    row("duplicate name: 409 RESOURCE_ALREADY_EXISTS", stored("refuses a name that is taken, naming its holder")),
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
      answerRules("a rule's when all of its conditions hold, else the fallback")
    )
  ],
  limits: [
    row("list limit: 255 at most", lists("a limit beyond the maximum is the maximum")),
    row("proxy timeout_ms 1000 to 30000; proxy capture_response_bytes 0 to 65536", input("the settings have limits")),
    row(
      "rate_limit a positive integer; rate_limit_period second, minute, hour, day",
      input("is a whole number of requests in a known period")
    )
  ]
}
