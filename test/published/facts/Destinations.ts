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
const amqp = tests("packages/foreign-databases/test/AmqpStrangers.test.ts")
const redis = tests("packages/foreign-databases/test/RedisStrangers.test.ts")
const nats = tests("packages/foreign-databases/test/NatsStrangers.test.ts")
const realNats = tests("packages/foreign-databases/test/NatsJetStream.test.ts")
const kafka = tests("packages/foreign-databases/test/KafkaStrangers.test.ts")

const pulls = tests("test/contract/Pull.test.ts")
const fetching = pulls(
  "A consumer fetches an event as a delivery by HTTP has it, verifies its signature, and acknowledges it"
)
const refusing = pulls("A refused event is handed out again by the retry rule, with the same ids")
const pullLimits = pulls("Numbers and texts beyond their limits are refused")
const mail = tests("packages/foreign-databases/test/SmtpStrangers.test.ts")
const mysql = tests("packages/foreign-databases/test/MysqlStrangers.test.ts")
const strangers = tests("packages/foreign-databases/test/Strangers.test.ts")

const testDelivery = tests("test/contract/DestinationTest.test.ts")
const tested = testDelivery(
  "A test delivery sends the sample with the new settings, answers with the response, and stores nothing"
)

/** Types that have separate rows. */
const told = new Set([
  "HTTP",
  "CLI",
  "MOCK_API",
  "SQL_DATABASE",
  "RABBITMQ",
  "REDIS_STREAM",
  "NATS_JETSTREAM",
  "KAFKA",
  "PULL",
  "SMTP",
  "MYSQL"
])
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
  "AWS_ACCESS_KEY",
  "AZURE_SAS_KEY",
  "MESSAGING_AUTH_TOKEN"
]

/** Settings of one type belong to its connector. The suite that every connector passes tests each of its settings. */
const ownSettings = of("*", conformance("Setting %s refuses wrong values without quoting them"))

const signatures = tests("packages/outbound-auth/test/MessageSignature.test.ts")(
  "Signature by %s is accepted by another implementation, and a changed request is not"
)

const mutual = tests("test/contract/ClientCertificates.test.ts")
const own = tests("packages/connectors/test/ClientTls.test.ts")

const queryKeys = tests("packages/connectors/test/HttpDelivery.test.ts")(
  "Key is added to %s with the sender's query %s once, and is masked where the URL is shown"
)

const jwts = tests("packages/outbound-auth/test/SignedJwt.test.ts")(
  "Token by %s is valid, and has the claims that are set and a hash of the body"
)

const amazons = tests("packages/outbound-auth/test/AwsSigV4.test.ts")
const roles = tests("test/contract/SignedDeliveries.test.ts")(
  "AWS_SIGV4 signs with the key of a role, which is asked for once and is shown nowhere"
)

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
  of("url", input("The URL of a destination must be absolute http or https, without fragment and user name")),
  of("path", input("A MOCK_API destination has a path instead of a URL")),
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
  of(
    "client_certificate server_ca",
    mutual("A server that demands a certificate gets the destination's own, and no answer shows its key")
  ),
  of("timeout_ms", delivery("A destination's own time-out ends a call, and the retry rule applies")),
  of("client_key client_certificate_expires_at", own("Read shows when the certificate expires, and no key")),
  of("auth_type auth", input("An auth_type of a destination needs all of its settings")),
  of("auth.header_name auth.value", delivery("CUSTOM_HEADER replaces the sender's header")),
  of("auth.query_key auth.api_key", queryKeys),
  of("auth.key_id auth.algorithm auth.key auth.components auth.expires_seconds auth.tag", signatures),
  of(
    "auth.region auth.service auth.amz_target auth.access_key_id auth.secret_access_key auth.session_token",
    amazons("Signature for %s is that of another implementation")
  ),
  of("auth.role_arn auth.external_id auth.session_name auth.sts_endpoint", roles),
  of("auth.issuer auth.lifetime_seconds auth.body_hash_claim", jwts),
  of(
    "auth.token_url auth.client_id auth.client_secret auth.token_auth_method auth.scope auth.refresh_token auth.authorization_url auth.redirect_uri",
    consented
  ),
  of(
    "auth.code auth.code_verifier",
    tests("packages/entities/test/Tokens.test.ts")(
      "Each new refresh token is stored before it is needed, by any runner"
    )
  ),
  of(
    "auth.audience",
    tests("packages/entities/test/Tokens.test.ts")("A token is requested for an audience if one is set")
  ),
  of(
    "auth.client_email auth.private_key auth.private_key_id auth.token_uri auth.subject",
    tests("packages/outbound-auth/test/OutboundAuth.test.ts")(
      "SERVICE_ACCOUNT accepts a key file as it is, and a key with escaped line breaks"
    )
  ),
  of("auth.disabled", delivery("A disabled CUSTOM_HEADER is not sent"))
]

export const destinations: Section = {
  title: "Destinations",
  endpoints: [
    row("GET /destinations", lists("Resources are listed by id, order and state")),
    row(
      "POST,PUT /destinations; GET,DELETE /destinations/{id}",
      commands("Resource can be created, changed, disabled and deleted under ${prefix}/${kind}")
    ),
    row(
      "PUT,PATCH /destinations/{id}",
      commands("Replaced destination has the given config alone, and a patched destination keeps the rest")
    ),
    row(
      "PUT,POST /destinations/{id}/disable; PUT,POST /destinations/{id}/enable",
      commands("Resource can be created, changed, disabled and deleted under ${prefix}/${kind}")
    ),
    row("POST /destinations/{id}/oauth/start; GET,POST /oauth/callback", consented),
    row("POST /destinations/test", tested),
    row("POST /destinations/{id}/messages/pull", fetching),
    row("POST /destinations/{id}/messages/ack", fetching),
    row("POST /destinations/{id}/messages/nack", refusing)
  ],
  fields: {
    ConsentStarted: [],
    DestinationTestInput: [
      of("destination request", tested),
      of(
        "destination_id",
        testDelivery("A change of a stored destination is tested with its stored secret, which goes nowhere else")
      )
    ],
    DestinationTest: [of("*", tested)],
    PullInput: [of("*", pullLimits)],
    AckInput: [of("*", pullLimits)],
    NackInput: [of("*", refusing)],
    PulledMessages: [of("*", fetching)],
    PulledMessage: [
      of(
        "receipt event_id request_id source_id connection_id attempt_number ordering_key method path headers body",
        fetching
      ),
      of("body_base64", pulls("A body that is no text is fetched in base64"))
    ],
    SettledMessages: [of("*", fetching)],
    ConsentEnded: [
      of("destination_id", consented),
      of(
        "provider_account_id",
        tests("packages/api/test/ProviderAccounts.test.ts")(
          "A browser that comes back shows whose account it becomes, and connects it after a confirmation"
        )
      )
    ],
    Destination: [
      of("attempts_24h_count attempts_24h_bins", stored("The attempts of the last 24 hours are counted in six bins")),
      of("disabled_at", stored("A destination can be disabled and enabled, and a repetition has no effect")),
      of(
        "held_until",
        tests("test/contract/RefusingTargets.test.ts")(
          "A temporary refusal holds a destination's other events, also in the next process, until it is changed"
        )
      ),
      of("config", stored("A stored destination is returned with masked secrets"))
    ],
    DestinationConfig: [...config, ownSettings],
    DestinationWrite: [
      of("name description type config", input("A new destination gets default values for what is omitted")),
      ...config.map(([members, proof]): Row => [members.map((member) => `config.${member}`), proof]),
      ownSettings
    ],
    DestinationPatch: [
      of("name description type config", input("A partial change merges config by member and keeps the rest"))
    ],
    DestinationConfigPatch: [...config, ownSettings]
  },
  states: [
    row(
      "disable, enable: disabled_at is set or cleared",
      stored("A destination can be disabled and enabled, and a repetition has no effect")
    ),
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
    row("type SQL_DATABASE", sql("Inserted row has the body and the columns that the destination asks for")),
    row(
      "type SQL_DATABASE: conflict_mode ERROR, IGNORE",
      sql("Duplicate row fails permanently, or succeeds in the conflict mode IGNORE")
    ),
    row(
      "type SQL_DATABASE: tls_mode verify-full, disable",
      sql("Connection to a database server ${name} gives the expected result")
    ),
    row(
      "auth_type DATABASE_PASSWORD",
      sql("Wrong password, unknown user and missing right to insert are reported as rejected credentials")
    ),
    row("type PULL", fetching),
    row(
      "type PULL: after a kill the messages are handed out again",
      pulls("After a kill between fetch and acknowledgement nothing is lost, and the ids repeat")
    ),
    row("type RABBITMQ", amqp("Message to a broker %s has the expected result")),
    row("type REDIS_STREAM", redis("Entry for a server %s has the expected result")),
    row("type NATS_JETSTREAM", nats("Message to a server %s has the expected result")),
    row("type MYSQL", mysql("Row for a server %s has the expected result")),
    row("type SMTP", mail("Letter to a server %s has the expected result")),
    row(
      "auth_type NATS_TOKEN",
      realNats("Message is delivered over TLS by a token, and not to a server with another certificate")
    ),
    row(
      "auth_type NATS_NKEY",
      realNats("User of an operator's account is let in by the JWT and the seed, and not with another seed")
    ),
    row("type KAFKA", kafka("Record for a cluster %s has the expected result")),
    ...calling.map((type) => row(`type ${type}`, calls)),
    row(
      "a type that there is not is refused",
      input("An unknown destination type is rejected, and all known types are listed")
    ),
    row("auth_type null, NO_AUTH", input("An auth_type of a destination needs all of its settings")),
    row(
      "auth_type SERVICE_SIGNATURE",
      delivery("SERVICE_SIGNATURE is verified by the Standard Webhooks library and by the gateway's own header")
    ),
    row("auth_type CUSTOM_HEADER", delivery("CUSTOM_HEADER replaces the sender's header")),
    row("auth_type API_KEY_QUERY", queryKeys),
    row("auth_type HTTP_MESSAGE_SIGNATURE", signatures),
    row("auth_type SIGNED_JWT", jwts),
    row("auth_type AWS_SIGV4", amazons("Signature for %s is that of another implementation")),
    ...otherAuths.map((auth) =>
      row(`auth_type ${auth}`, tokenTypes[auth] ?? (authTypes.has(auth) ? calls : otherTypes))
    )
  ],
  limits: [
    row("list limit: 255 at most", lists("Limit above the maximum of a list is lowered to the maximum")),
    row(
      "rate_limit a positive integer; rate_limit_period second, minute, hour, day",
      input("All invalid settings of a destination are reported")
    ),
    row(
      "media URLs 1 to 10 (MESSAGING_MMS)",
      apis("MESSAGING_MMS destination sends media URLs and refuses an event whose media URL is invalid")
    ),
    row(
      "connect timeout 1 to 30, default 10 (SQL_DATABASE)",
      strangers("Hostile database server costs one attempt: ${name}")
    )
  ]
}
