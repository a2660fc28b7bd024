import { generateKeyPairSync } from "node:crypto"
import { Effect, Result, type Schema } from "effect"
import { describe, expect, it } from "vitest"
import type { Call } from "@tidegate/actions/Call"
import type { Credentials, Inputs } from "@tidegate/actions/Provider"
import { callingProviders, callOf, sentToOf } from "@tidegate/actions/Providers"
import type { AttemptFacts } from "@tidegate/connectors/Connector"
import { Brokers } from "@tidegate/connectors/Brokers"
import { SqlServers } from "@tidegate/connectors/SqlServers"
import { compileOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"

/** What of a step's own inputs may be another than was saved with the credentials, of every action that has some. */

const facts: AttemptFacts = {
  eventId: "wse_1",
  requestId: "req_1",
  teamId: "tm_1",
  sourceId: "src_1",
  connectionId: "",
  destinationId: "",
  webhookId: "wse_1",
  attemptNumber: 1,
  trigger: "INITIAL",
  willRetryAfter: null,
  sourceName: "shop",
  connectionName: "flow",
  destinationName: "",
  verified: false,
  originalIp: null,
  createdAt: 0,
  timestampSeconds: 0,
  orderingKey: null,
  shown: { method: "POST", path: "/", query: "", headers: {} },
  isStep: true
}

interface Row {
  readonly credentials: Credentials
  readonly inputs: Inputs
  /** Another value that each of the other inputs can have. */
  readonly others: Inputs
  /** What goes with another value, where it cannot stand by itself. */
  readonly besides?: Readonly<Record<string, Inputs>>
  /** The inputs that have to be those that were saved. */
  readonly stay: ReadonlyArray<string>
}

const token = { mode: "bearer", values: { token: "token-of-the-target" } }
const store = {
  access_key_id: "AKIA0000000000000000",
  secret_access_key: "secret",
  session_token: "token-of-a-session"
}
const account = { client_email: "a@example.com", private_key: "key-of-the-account" }
const consent = {
  token_url: "https://id.example.com/token",
  client_id: "gateway",
  client_secret: "secret-of-the-client",
  refresh_token: "token-of-the-account"
}
const signingKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
  type: "pkcs8",
  format: "pem"
})
const request = { headers: { "x-a": "1" }, query: { a: "1" } }
const text = "another text"
const payload = { id: "o_2" }
const mail = {
  to: "c@example.com",
  cc: "c@example.com",
  bcc: "c@example.com",
  reply_to: "c@example.com",
  subject: text,
  text_template: text,
  html_template: text,
  payload
}
const bot = { mode: "chat_bot_token", values: { bot_token: "123456:token-of-the-bot" } }
const messaging = { mode: "messaging_auth_token", values: { account_sid: "AC0", auth_token: "token-of-the-account" } }
const message = { from: "+15005550006", to: "+15005550007", body_template: "x" }
const messages = {
  from: "+15005550008",
  to: "+15005550009",
  messaging_service_sid: `MG${"0".repeat(32)}`,
  body_template: text
}
const stored = {
  bucket: "another-bucket",
  endpoint: "https://elsewhere.example",
  key_template: "another.json",
  content_type: "text/plain",
  body_template: "{}",
  include_metadata: false,
  payload
}

const aws = { mode: "aws_access_key", values: store }
const content = { body_template: "{}", include_metadata: false, payload }
const fifo = { message_group_id: text, message_deduplication_id: text }

const rows: Readonly<Record<string, Row>> = {
  http: {
    credentials: token,
    inputs: { url: "https://api.example.com/a", method: "POST" },
    others: { ...request, url: "https://elsewhere.example/a", method: "PUT", body: {} },
    stay: ["url"]
  },
  json_feed: {
    credentials: token,
    inputs: { url: "https://api.example.com/a" },
    others: { ...request, url: "http://api.example.com/a", items_path: "b", limit: 1 },
    stay: ["url"]
  },
  sql_database: {
    credentials: { mode: "database_password", values: { username: "writer", password: "password-of-the-writer" } },
    inputs: { host: "db.example.com", database: "shop", table: "orders", event_id_column: "event_id" },
    others: {
      host: "elsewhere.example",
      port: 6543,
      database: "other",
      schema: "other",
      table: "other",
      payload_column: "other",
      event_id_column: "other",
      metadata_column: "other",
      delivered_at_column: "other",
      conflict_mode: "IGNORE",
      tls_mode: "disable",
      connect_timeout: 5,
      payload
    },
    stay: ["host", "port", "tls_mode"]
  },
  mysql: {
    credentials: { mode: "database_password", values: { username: "writer", password: "password-of-the-writer" } },
    inputs: { host: "db.example.com", database: "shop", table: "orders", event_id_column: "event_id" },
    others: {
      host: "elsewhere.example",
      port: 3307,
      database: "other",
      table: "other",
      payload_column: "other",
      event_id_column: "other",
      metadata_column: "other",
      delivered_at_column: "other",
      conflict_mode: "IGNORE",
      tls_mode: "disable",
      connect_timeout: 5,
      payload
    },
    stay: ["host", "port", "tls_mode"]
  },
  rabbitmq: {
    credentials: { mode: "database_password", values: { username: "writer", password: "password-of-the-writer" } },
    inputs: { host: "rabbit.example.com", exchange: "orders", routing_key: "order" },
    others: {
      host: "elsewhere.example",
      port: 5672,
      vhost: "other",
      exchange: "other",
      routing_key: "other",
      mandatory: false,
      persistent: false,
      tls_mode: "disable",
      connect_timeout: 5,
      payload
    },
    stay: ["host", "port", "tls_mode"]
  },
  redis_stream: {
    credentials: { mode: "database_password", values: { username: "writer", password: "password-of-the-writer" } },
    inputs: { host: "redis.example.com", stream: "orders" },
    others: {
      host: "elsewhere.example",
      port: 6380,
      database: 1,
      stream: "other",
      max_length: 5,
      tls_mode: "disable",
      connect_timeout: 5,
      payload
    },
    stay: ["host", "port", "tls_mode"]
  },
  nats_jetstream: {
    credentials: { mode: "database_password", values: { username: "writer", password: "password-of-the-writer" } },
    inputs: { host: "nats.example.com", subject: "orders" },
    others: {
      host: "elsewhere.example",
      port: 4223,
      subject: "other",
      stream: "other",
      tls_mode: "disable",
      tls_first: true,
      connect_timeout: 5,
      payload
    },
    stay: ["host", "port", "tls_mode"]
  },
  kafka: {
    credentials: { mode: "database_password", values: { username: "writer", password: "password-of-the-writer" } },
    inputs: { bootstrap_servers: "kafka.example.com:9093", topic: "orders" },
    others: {
      bootstrap_servers: "elsewhere.example:9093",
      topic: "other",
      key: "other",
      sasl_mechanism: "PLAIN",
      tls_mode: "disable",
      connect_timeout: 5,
      payload
    },
    stay: ["bootstrap_servers", "sasl_mechanism", "tls_mode"]
  },
  object_store_s: {
    credentials: { mode: "object_store_s_access_key", values: store },
    inputs: { region: "eu-central-1", bucket: "archive" },
    others: { ...stored, region: "us-east-1", force_path_style: true },
    stay: ["endpoint"]
  },
  object_store_r: {
    credentials: { mode: "object_store_r_access_key", values: store },
    inputs: { account_id: "0123456789abcdef", bucket: "archive" },
    others: { ...stored, account_id: "fedcba9876543210" },
    stay: ["endpoint"]
  },
  aws_sqs: {
    credentials: aws,
    inputs: { queue_url: "https://queues.example.com/000000000000/orders.fifo", region: "eu-central-1" },
    others: { ...content, ...fifo, queue_url: "https://elsewhere.example/000000000000/orders", region: "us-east-1" },
    stay: ["queue_url"]
  },
  aws_sns: {
    credentials: aws,
    inputs: { topic_arn: "arn:aws:sns:eu-central-1:000000000000:orders.fifo" },
    others: {
      ...content,
      ...fifo,
      topic_arn: "arn:aws:sns:us-east-1:000000000000:others.fifo",
      subject: text,
      endpoint: "https://elsewhere.example"
    },
    stay: ["endpoint"]
  },
  aws_eventbridge: {
    credentials: aws,
    inputs: { region: "eu-central-1", source: "shop", detail_type: "order" },
    others: {
      ...content,
      region: "us-east-1",
      event_bus: "other",
      source: text,
      detail_type: text,
      endpoint: "https://elsewhere.example"
    },
    besides: { include_metadata: { body_template: "{}" } },
    stay: ["endpoint"]
  },
  aws_kinesis: {
    credentials: aws,
    inputs: { region: "eu-central-1", stream: "orders" },
    others: {
      ...content,
      region: "us-east-1",
      stream: "others",
      partition_key: text,
      endpoint: "https://elsewhere.example"
    },
    stay: ["endpoint"]
  },
  chat_webhook: {
    credentials: { mode: "none", values: { url: "https://discord.com/api/webhooks/1234/token-of-the-webhook" } },
    inputs: {},
    others: {
      content_template: text,
      username: text,
      avatar_url: "https://elsewhere.example/a.png",
      embeds: [{ title: text }],
      allowed_mentions: ["users"],
      payload
    },
    stay: []
  },
  chat_bot: {
    credentials: bot,
    inputs: { channel: "C1", text_template: "x" },
    others: { channel: "C2", text_template: text, blocks_template: [] },
    stay: []
  },
  messenger_message: {
    credentials: bot,
    inputs: { chat_id: "1", text_template: "x" },
    others: {
      chat_id: "2",
      text_template: text,
      parse_mode: "HTML",
      disable_link_previews: true,
      disable_notification: true
    },
    stay: []
  },
  messaging_sms: { credentials: messaging, inputs: message, others: messages, stay: [] },
  messaging_mms: {
    credentials: messaging,
    inputs: { ...message, media_urls: ["https://example.com/a.png"] },
    others: { ...messages, media_urls: ["https://elsewhere.example/a.png"] },
    stay: []
  },
  messaging_chat: {
    credentials: messaging,
    inputs: message,
    others: { ...messages, content_sid: `HX${"1".repeat(32)}`, content_variables: {} },
    besides: {
      content_sid: { messaging_service_sid: "MG1" },
      content_variables: { content_sid: "HX1", messaging_service_sid: "MG1" }
    },
    stay: []
  },
  email_api_email: {
    credentials: { mode: "email_api_key", values: { api_key: "SG.key-of-the-account" } },
    inputs: { from: "a@example.com", to: "b@example.com" },
    others: { ...mail, from: "d@example.com", from_name: text, api_base: "https://api.eu.sendgrid.com" },
    stay: []
  },
  smtp: {
    credentials: {
      mode: "database_password",
      values: { username: "writer", password: "password-of-the-writer", dkim_private_key: signingKey }
    },
    inputs: { host: "smtp.example.com", from: "a@example.com", to: "b@example.com", dkim_selector: "key1" },
    others: {
      ...mail,
      host: "elsewhere.example",
      port: 465,
      from: "d@example.com",
      from_name: text,
      dkim_selector: "key2",
      dkim_domain: "mail.example.com",
      tls_mode: "disable",
      tls_first: true,
      connect_timeout: 5
    },
    stay: ["host", "port", "tls_mode"]
  },
  mailbox_email: {
    credentials: { mode: "oauth_refresh_token", values: consent },
    inputs: { to: "b@example.com" },
    others: mail,
    stay: []
  },
  gcp_pubsub: {
    credentials: { mode: "service_account", values: account },
    inputs: { project_id: "my-shop", topic: "orders" },
    others: {
      project_id: "other-shop",
      topic: "others",
      ordering_key: text,
      endpoint: "https://elsewhere.example",
      payload
    },
    stay: ["endpoint"]
  },
  azure_service_bus: {
    credentials: { mode: "azure_sas_key", values: { key_name: "gateway-send", key: "key-of-the-policy" } },
    inputs: { endpoint: "https://my-shop.servicebus.windows.net", entity: "orders" },
    others: {
      endpoint: "https://elsewhere.example",
      entity: "others",
      session_id: text,
      subject: text,
      payload
    },
    stay: ["endpoint"]
  },
  spreadsheet: {
    credentials: { mode: "service_account", values: account },
    inputs: { spreadsheet_id: "1BxiMVs0XRA5nFMd", values: [1] },
    others: { spreadsheet_id: "2BxiMVs0XRA5nFMd", sheet_name: text, value_input_option: "RAW", values: [2] },
    stay: []
  }
}

const withCredentials = callingProviders.filter(
  ({ auth, key }) => auth.some(({ fields }) => fields.length > 0) && key !== "cli"
)

/** The own hosts of stores and of Amazon's services, of any bucket, region or account. */
const ofStore = /(?:^|\.)((?:s3|sns|events|kinesis)\.[a-z\d-]+\.amazonaws\.com|r2\.cloudflarestorage\.com)$/

/** Where a call leads, and by what; null: nothing is called. */
const leadsTo = (call: Call): string | null => {
  if (call.kind === "http") return new URL(call.request.url).origin
  if (call.kind !== "send") return null
  const { headers } = compileOutboundAuth({ auth_type: null, auth: {} })
  const { connector, settings } = call
  const sender = connector.open(settings, { headers, signing: null, settings: call.auth.auth }, (origin) => origin)
  if (sender.kind === "session") {
    let reached = ""
    const open = ({ host, port, tls }: { readonly host: string; readonly port: number; readonly tls: boolean }) => {
      reached = `${host}:${port} ${tls}`
      return Effect.never
    }
    Effect.runFork(
      Effect.scoped(sender.connect).pipe(
        Effect.provideService(SqlServers, { open } as never),
        Effect.provideService(Brokers, { open: (_: string, place: Parameters<typeof open>[0]) => open(place) } as never)
      )
    )
    return reached
  }
  if (sender.kind !== "http") return null
  const prepared = sender.prepare(call.message, facts)
  if (!("body" in prepared)) return null
  const { host, origin, protocol } = new URL(prepared.url)
  if (connector.origins?.includes(origin) === true) return "its API"
  return ofStore.test(host) ? `${protocol} the service's own` : origin
}

const nameOf = (provider_key: string, action_key: string) => ({ provider_key, action_key, version: "1.0.0" })

const hostile: ReadonlyArray<string> = [
  "elsewhere.example",
  "elsewhere.example/",
  "elsewhere.example#",
  "elsewhere.example\\",
  "a@elsewhere.example",
  "..//elsewhere.example",
  "https://elsewhere.example/",
  "//elsewhere.example",
  "x\r\nHost: elsewhere.example",
  "x y",
  "[::1]",
  "::1",
  "127.0.0.1",
  "%2f%2felsewhere.example",
  "disable",
  "DISABLE",
  ""
]

describe("Credentials of saved actions", () => {
  it("Test table covers every provider that has credentials", () => {
    expect(Object.keys(rows).toSorted()).toEqual(withCredentials.map(({ key }) => key).toSorted())
  })

  for (const { actions, key } of withCredentials) {
    const row = rows[key]
    if (row === undefined) continue
    for (const action of actions) {
      const inputsOf = action.action.inputs ?? []
      const name = nameOf(key, action.key)
      const target = (inputs: Inputs): string | null => {
        const call = callOf(name, inputs, row.credentials)
        return Result.isFailure(call) ? null : leadsTo(call.success)
      }
      const { of } = sentToOf(name)
      const isSaved = (inputs: Inputs): boolean => of(inputs) !== null && of(inputs) === of(row.inputs)
      const changed = (input: string, value: Schema.Json): Inputs => ({ ...row.inputs, [input]: value })

      it(`Saved credentials of ${key}.${action.key} are bound to ${row.stay.length === 0 ? "its API alone" : row.stay.join(", ")}`, () => {
        expect(target(row.inputs)).not.toBeNull()
        expect(Object.keys(row.others).toSorted(), "each input has another value here").toEqual(inputsOf.toSorted())
        const moving = inputsOf.filter((input) => !isSaved(changed(input, row.others[input]!)))
        expect(moving).toEqual(expect.arrayContaining([...row.stay]))
        expect(moving.length).toBe(row.stay.length)
        for (const input of inputsOf) {
          const inputs = { ...changed(input, row.others[input]!), ...row.besides?.[input] }
          expect(target(inputs), `${input} is judged`).not.toBeNull()
          if (isSaved(inputs)) expect(target(inputs), input).toBe(target(row.inputs))
        }
      })

      it(`No input value sends the saved credentials of ${key}.${action.key} to another target`, () => {
        for (const input of inputsOf) {
          for (const value of [...hostile, ...hostile.map((one) => [one])]) {
            const inputs = changed(input, value)
            const reached = isSaved(inputs) ? target(inputs) : null
            if (reached !== null) expect(reached, `${input}: ${JSON.stringify(value)}`).toBe(target(row.inputs))
          }
        }
      })
    }
  }
})

/** Names by which a request could be led, framed or signed in otherwise than it is said. */
const reserved = [
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "proxy-authorization",
  "proxy-connection",
  "keep-alive",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "x-gateway-event-id",
  "gateway-loop"
]
const spelled = (name: string): ReadonlyArray<string> => [
  name,
  name.toUpperCase(),
  name.replace(/[a-z]/, (letter) => letter.toUpperCase()),
  `${name} `,
  ` ${name}`,
  `${name}:`,
  `${name}\r\nx-a`,
  `${name}\0`,
  `x-a\r\n${name}`
]

const withHeaders: ReadonlyArray<readonly [provider: string, action: string, inputs: Inputs]> = [
  ["http", "request", { url: "https://api.example.com" }],
  ["json_feed", "fetch", { url: "https://api.example.com" }],
  ["gateway", "publish", { source_id: "src_1" }]
]

describe("Headers of a step", () => {
  for (const [provider, action, inputs] of withHeaders) {
    it(`Step headers of ${provider}.${action} cannot set headers that HTTP or the gateway sets`, () => {
      for (const name of reserved.flatMap(spelled)) {
        for (const value of ["x", ["x"], 1]) {
          const headers = { [name]: value }
          const call = callOf(nameOf(provider, action), { ...inputs, headers }, { mode: "none", values: {} })
          expect(call, JSON.stringify(name)).toMatchObject({ failure: { code: "INPUT_INVALID" } })
        }
      }
    })
  }

  it("Headers of credentials replace step headers of the same name in any spelling", () => {
    for (const headers of [{ Authorization: "Bearer mine" }, { AUTHORIZATION: ["a", "b"] }, { authorization: "x" }]) {
      const call = Result.getOrThrow(
        callOf(nameOf("http", "request"), { url: "https://api.example.com", headers }, token)
      ) as Extract<Call, { kind: "http" }>
      const said = call.request.headers.filter((_, i) => call.request.headers[i - 1]?.toLowerCase() === "authorization")
      expect(said).toEqual(["Bearer token-of-the-target"])
    }
    for (const name of ["authorization ", "authorization:", " authorization", "authorization\r\nx-a"]) {
      const inputs = { url: "https://api.example.com", headers: { [name]: "Bearer mine" } }
      expect(callOf(nameOf("http", "request"), inputs, token)).toMatchObject({ failure: { code: "INPUT_INVALID" } })
    }
  })
})

describe("Header of a credential", () => {
  const modes = withCredentials.flatMap(({ auth, key }) =>
    auth.flatMap((mode) =>
      ["name", "header_name"].flatMap((field) =>
        mode.fields.some((one) => one.key === field) && mode.key !== "basic" ? [[key, mode, field] as const] : []
      )
    )
  )
  const secret = { api_key: "a-secret-key", value: "a-secret-value" }

  it("Header name of a credential can be chosen in the modes api_key and custom_header only", () => {
    expect(modes.map(([key, mode]) => `${key} ${mode.key}`)).toEqual([
      "http api_key",
      "http custom_header",
      "json_feed api_key",
      "json_feed custom_header"
    ])
  })

  for (const [key, mode, field] of modes) {
    it(`Header of the credential ${key} ${mode.key} cannot be one that HTTP or the gateway sets`, () => {
      const written = Object.fromEntries(
        Object.entries(secret).filter(([name]) => mode.fields.some((one) => one.key === name))
      )
      expect(Result.isSuccess(mode.judge({ ...written, [field]: "X-Token" }))).toBe(true)
      for (const name of [...reserved, "idempotency-key"].flatMap(spelled)) {
        const judged = mode.judge({ ...written, [field]: name })
        expect(judged, JSON.stringify(name)).toMatchObject({ failure: [{ path: field }] })
        // Also one that was saved before names were judged.
        const values = { ...written, [field]: name }
        const inputs = { url: "https://api.example.com" }
        if (reserved.includes(name.toLowerCase())) {
          const call = callOf(nameOf("http", "request"), inputs, { mode: mode.key, values })
          expect(call, JSON.stringify(name)).toMatchObject({ failure: { code: "INPUT_INVALID" } })
        }
      }
    })
  }

  it("Header of a credential replaces the request's own header of the same name", () => {
    const values = { header_name: "Content-Type", value: "application/vnd.key" }
    const call = Result.getOrThrow(
      callOf(
        nameOf("http", "request"),
        { url: "https://api.example.com", method: "POST", body: {} },
        { mode: "custom_header", values }
      )
    ) as Extract<Call, { kind: "http" }>
    expect(call.request.headers.filter((_, i) => i % 2 === 0).toSorted()).toEqual(["content-type", "user-agent"])
  })
})
