import { connectors } from "../../../packages/connectors/src/Connectors.ts"
import { missing, of, type Proof, type Row, row, type Section, tests } from "./Facts.ts"

const stored = tests("packages/storage/test/Destinations.test.ts")
const input = tests("packages/resources/test/Destination.test.ts")
const delivery = tests("test/contract/Delivery.test.ts")
const lists = tests("packages/api/test/Lists.test.ts")
const commands = tests("packages/api/test/Commands.test.ts")
const presented = tests("test/contract/PresentedSecrets.test.ts")
const concurrency = tests("test/contract/Concurrency.test.ts")

const conformance = tests("packages/connectors/test/Conformance.test.ts")
const apis = tests("packages/connectors/test/ApiConnectors.test.ts")

const otherTypes = missing("comes with the other connectors; 400 says so until then")

const calls = tests("test/contract/ApiDestinations.test.ts")(
  "An event for %s becomes a call of the API, and its trace contains no secret"
)

const sql = tests("packages/foreign-databases/test/PostgresServers.test.ts")
const strangers = tests("packages/foreign-databases/test/Strangers.test.ts")

/** Types that have separate rows. */
const told = new Set(["HTTP", "CLI", "MOCK_API", "SQL_DATABASE"])
const calling = connectors.map(({ type }) => type).filter((type) => !told.has(type))
const authTypes: ReadonlySet<string> = new Set(connectors.flatMap(({ auths }) => auths.map(String)))
/** The contract's authentication types that have no separate rows. */
const otherAuths = [
  "OAUTH2_CLIENT_CREDENTIALS",
  "OAUTH2_AUTHORIZATION_CODE",
  "SERVICE_ACCOUNT",
  "OAUTH_REFRESH_TOKEN",
  "EMAIL_API_KEY",
  "CHAT_BOT_TOKEN",
  "OBJECT_STORE_R_ACCESS_KEY",
  "OBJECT_STORE_S_ACCESS_KEY",
  "MESSAGING_AUTH_TOKEN"
]

/** Settings of one type belong to its connector. The suite that every connector passes tests each of its settings. */
const ownSettings = of("*", conformance("%s: refuses what it cannot be, in words and without the value"))

const tokens = tests("test/contract/OutboundTokens.test.ts")
const consented = tokens(
  "OAUTH2_AUTHORIZATION_CODE stores each new refresh token, and OAUTH_REFRESH_TOKEN continues with one"
)
const tokenTypes: Readonly<Record<string, Proof>> = {
  OAUTH2_CLIENT_CREDENTIALS: tokens(
    "OAUTH2_CLIENT_CREDENTIALS by %s uses one hidden token for a hundred deliveries at once"
  ),
  OAUTH2_AUTHORIZATION_CODE: consented,
  OAUTH_REFRESH_TOKEN: consented,
  SERVICE_ACCOUNT: tokens("SERVICE_ACCOUNT proves its identity with a signed assertion")
}

const config = [
  of("url", input("wants an absolute http or https URL, without fragment or user")),
  of("path", input("of a mock API, keeps the path")),
  of("http_method", delivery("A delivery has the sender's method or the configured one")),
  of(
    "path_forwarding_disabled",
    delivery("A delivery has no path and query of the sender when path forwarding is disabled")
  ),
  of(
    "forward_credentials",
    presented("A destination stops and resumes forwarding of presented secrets when its setting changes")
  ),
  of(
    "rate_limit rate_limit_period",
    tests("test/cluster/rates.test.ts")(
      "A rate limit holds in every window, is used fully, and is shared equally by waiting connections"
    )
  ),
  of(
    "max_concurrency",
    concurrency("Deliveries at once never exceed max_concurrency, and a change applies from the next one on")
  ),
  of("auth_type auth", input("wants complete auth with an auth_type")),
  of("auth.header_name auth.value", delivery("CUSTOM_HEADER replaces the sender's header")),
  of(
    "auth.token_url auth.client_id auth.client_secret auth.token_auth_method auth.scope auth.refresh_token auth.authorization_url auth.redirect_uri",
    consented
  ),
  of(
    "auth.code auth.code_verifier",
    tests("packages/entities/test/Tokens.test.ts")(
      "of refresh tokens that change: each is stored before it is needed, by whatever runner"
    )
  ),
  of("auth.audience", tests("packages/entities/test/Tokens.test.ts")("are asked for an audience where one is written")),
  of(
    "auth.client_email auth.private_key auth.private_key_id auth.token_uri auth.subject",
    tests("packages/outbound-auth/test/OutboundAuth.test.ts")(
      "SERVICE_ACCOUNT takes a key file as it is, and a key whose line breaks are spelt out"
    )
  ),
  of("auth.disabled", delivery("A disabled CUSTOM_HEADER is not sent"))
]

export const destinations: Section = {
  title: "Destinations",
  endpoints: [
    row("GET /destinations", lists("resources are listed by id, order and state")),
    row("POST,PUT /destinations; GET,DELETE /destinations/{id}", commands("the life of one of ${prefix}/${kind}")),
    row(
      "PUT,PATCH /destinations/{id}",
      commands("a replaced destination has the given config alone, a patched one keeps the rest")
    ),
    row(
      "PUT,POST /destinations/{id}/disable; PUT,POST /destinations/{id}/enable",
      commands("the life of one of ${prefix}/${kind}")
    ),
    row("POST /destinations/{id}/oauth/start; GET,POST /oauth/callback", consented)
  ],
  fields: {
    ConsentStarted: [],
    ConsentEnded: [],
    Destination: [
      of("attempts_24h_count attempts_24h_bins", stored("counts its attempts of the last 24 hours in six bins")),
      of("disabled_at", stored("is disabled and enabled, again without effect")),
      of(
        "held_until",
        tests("test/contract/RefusingTargets.test.ts")(
          "A temporary refusal holds a destination's other events, also in the next process, until it is changed"
        )
      ),
      of("config", stored("stores a destination and shows it, secrets masked"))
    ],
    DestinationConfig: [...config, ownSettings],
    DestinationWrite: [
      of("name description type config", input("fills in what is not given")),
      ...config.map(([members, proof]): Row => [members.map((member) => `config.${member}`), proof]),
      ownSettings
    ],
    DestinationPatch: [of("name description type config", input("merges config by member and leaves the rest"))],
    DestinationConfigPatch: [...config, ownSettings]
  },
  states: [
    row("disable, enable: disabled_at is set or cleared", stored("is disabled and enabled, again without effect")),
    row(
      "a disabled destination gets nothing",
      tests("test/contract/Routing.test.ts")("A disabled or deleted destination gets nothing")
    ),
    row("type HTTP", delivery("A delivery has the headers that the gateway adds")),
    row("type MOCK_API", delivery("A MOCK_API destination answers with 200 and an echo")),
    row(
      "type CLI",
      tests("test/contract/Tunnel.test.ts")(
        "A tunnel delivery is the request of an HTTP destination, and its answer is the attempt's result"
      )
    ),
    row("type SQL_DATABASE", sql("has the body, and what the destination asks for besides")),
    row(
      "type SQL_DATABASE: conflict_mode ERROR, IGNORE",
      sql("that is there already fails for ever, or is as good as inserted")
    ),
    row("type SQL_DATABASE: tls_mode verify-full, disable", sql("is reached ${name}, or not")),
    row("auth_type DATABASE_PASSWORD", sql("a wrong password, a user that is not there, and one that may not write")),
    ...calling.map((type) => row(`type ${type}`, calls)),
    row("a type that there is not is refused", input("refuses a type that there is not, and names all that there are")),
    row("auth_type null, NO_AUTH", input("wants complete auth with an auth_type")),
    row(
      "auth_type SERVICE_SIGNATURE",
      delivery("SERVICE_SIGNATURE is verified by the Standard Webhooks library and by the gateway's own header")
    ),
    row("auth_type CUSTOM_HEADER", delivery("CUSTOM_HEADER replaces the sender's header")),
    ...otherAuths.map((auth) =>
      row(`auth_type ${auth}`, tokenTypes[auth] ?? (authTypes.has(auth) ? calls : otherTypes))
    )
  ],
  limits: [
    row("list limit: 255 at most", lists("a limit beyond the maximum is the maximum")),
    row(
      "rate_limit a positive integer; rate_limit_period second, minute, hour, day",
      input("tells every setting that is wrong")
    ),
    row("media URLs 1 to 10 (MESSAGING_MMS)", apis("MMS: with media, each a URL or nothing is sent")),
    row("connect timeout 1 to 30, default 10 (SQL_DATABASE)", strangers("${name} costs one attempt"))
  ]
}
