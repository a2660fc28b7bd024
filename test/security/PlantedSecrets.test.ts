import { randomBytes } from "node:crypto"
import { expect } from "vitest"
import { callingProviders } from "@tidegate/actions/Providers"
import { newId, prefixes } from "@tidegate/model/Ids"
import { it as gatewayIt } from "../support/collecting.ts"
import type { Source } from "../support/Contract.ts"
import type { Body } from "../support/Gateway.ts"
import { dumpOf, Planted } from "../support/Planted.ts"
import { request } from "../support/RawHttp.ts"

/**
 * Secrets of every kind go through a full run. At the end they are in no table, no line of the log, no metric, no span and no answer, in
 * none of the forms of `Planted`. What may hold one, and has none planted in it or is left out here:
 *  - the answer that shows a new key, token or secret this once, and a transformation's record, whose variables its owners read (`shown`);
 *  - a request's body, and a header or parameter that nobody says is a credential: they are kept as their sender sent them, and so are
 *    their fixture and what a transformation makes of them (of shares, the corpus of `redaction` says what is left out);
 *  - what a target answers: it is kept as it came, for its operators to see.
 */

const planted = new Planted()
/** What does stand in payloads, and is found there: a search that finds nothing tells nothing. */
const standing = new Planted()
const mark = standing.plant("mark")
const metricsKey = planted.plant("key of the metrics")
const collectorKey = planted.plant("key of the collector")
const ring = randomBytes(32)
planted.add("key of the ring, base64", ring.toString("base64"))
planted.add("key of the ring, hex", ring.toString("hex"))
planted.add("the team's API key", "gwk_contract_test_key")

/** Where no call of a provider account comes. */
const deadOrigins = [
  "https://api.github.com",
  "https://github.com",
  "https://www.googleapis.com",
  "https://oauth2.googleapis.com",
  "https://graph.microsoft.com",
  "https://login.microsoftonline.com",
  "https://api.twitch.tv"
]

const it = gatewayIt
  .extend("isLinked", { scope: "file" }, true)
  .extend("settings", { scope: "file" }, ({ collector }) => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_HEADERS: `x-collector-key=${collectorKey}`,
    TIDEGATE_METRICS_KEY: metricsKey,
    TIDEGATE_API_ORIGINS: deadOrigins.map((api) => `${api}=http://127.0.0.1:9`).join(", "),
    TIDEGATE_SECRET_KEYS: `one:${ring.toString("base64")}`,
    TIDEGATE_LOG_SAMPLE: "1000",
    TIDEGATE_OIDC_ISSUER: "http://127.0.0.1:9",
    TIDEGATE_OIDC_AUDIENCE: "tidegate"
  }))

interface Auth {
  readonly header_key?: string
  readonly api_key?: string
  readonly [name: string]: string | undefined
}

/** Credentials that are no bare secrets, by their names in the catalog. */
const plainCredentials: Readonly<Record<string, (secret: string) => string>> = {
  username: () => "ada",
  header_name: () => "x-key",
  account_sid: () => "AC00000000000000000000000000000000",
  access_key_id: () => "AKIA0000000000000000",
  client_id: () => "client",
  key_name: () => "gateway-send",
  token_url: () => "http://127.0.0.1:9/token",
  url: (secret) => `https://discord.com/api/webhooks/1234/${secret}`
}

/** The seed of a NATS user, as it is written: other secrets are refused. */
const natsSeed = (): string =>
  `SU${Array.from(randomBytes(56), (byte) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[byte % 32]).join("")}`

/** Sources by how they verify, each with a secret of its own. */
const verified: ReadonlyArray<readonly [type: string, auth_type: string | undefined, auth: (secret: string) => Auth]> =
  [
    ["WEBHOOK", "API_KEY", (api_key) => ({ header_key: "x-key", api_key })],
    ["WEBHOOK", "BASIC_AUTH", (password) => ({ username: "u", password })],
    ["WEBHOOK", "HMAC", (webhook_secret_key) => ({ webhook_secret_key })],
    ...["GITHUB", "STRIPE", "SHOPIFY", "SLACK", "SQUARE", "LINEAR", "TYPEFORM", "INTERCOM", "PAGERDUTY"].map(
      (type) => [type, undefined, (webhook_secret_key: string) => ({ webhook_secret_key })] as const
    ),
    ...["GITLAB", "TELEGRAM", "OKTA"].map(
      (type) =>
        [
          type,
          undefined,
          (api_key: string) => ({ api_key, ...(type === "OKTA" ? { header_key: "x-okta" } : {}) })
        ] as const
    )
  ]

/** The header that a source is set up to find its key in, where that is one of its own. */
const headerOf = (auth: { readonly header_key?: string; readonly api_key?: string }): ReadonlyArray<[string, string]> =>
  auth.header_key === undefined ? [] : [[auth.header_key, auth.api_key ?? ""]]

it("Planted secrets are nowhere in answers, tables, exports, log and metrics after a full run", async ({
  collector,
  gateway,
  target
}) => {
  const answers: Array<string> = []
  /** A call of anybody, whose answer is looked through; `shown`: it shows something new, this once. */
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    bearer: string | null = gateway.key,
    shown = false
  ) => {
    const response = await fetch(`${gateway.origin}${path}`, {
      method,
      headers: {
        "content-type": "application/json",
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` })
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
    })
    const text = await response.text()
    if (!shown)
      answers.push(
        `${method} ${path.replace(/[^/]{30,}$/, "…")} ${response.status} ${JSON.stringify([...response.headers])} ${text}`
      )
    return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : text }
  }
  const send = async (
    source: Pick<Source, "id">,
    headers: ReadonlyArray<[string, string]>,
    suffix = "",
    body = '{"n":1}'
  ) => {
    const answer = await request(gateway.port, { path: `/e/${source.id}${suffix}`, headers, body })
    answers.push(`ingress ${answer.status} ${JSON.stringify(answer.headers)} ${answer.body}`)
    return answer
  }

  // Sources that verify; what they are set up with is read, listed, written again, and refused.
  for (const [type, auth_type, authOf] of verified) {
    const secret = planted.plant(`${type} ${auth_type ?? ""}`)
    const config = { auth_type, auth: authOf(secret) }
    const made = await call("POST", "/v1/sources", { name: gateway.name("source"), type, config })
    expect(made.status, `${type}: ${JSON.stringify(made.body)}`).toBe(200)
    await call("GET", `/v1/sources/${made.body.id}`)
    await call("PATCH", `/v1/sources/${made.body.id}`, { config: { auth: authOf(planted.plant(`new ${type}`)) } })
    await call("PUT", `/v1/sources/${made.body.id}`, {
      name: "",
      type,
      config: { auth: { ...authOf(secret), more: 1 } }
    })
    // Presented, right and wrong: in headers, the query and the path.
    const sent = planted.plant(`presented to ${type}`)
    await send(made.body, [
      ...headerOf(authOf(sent)),
      ["x-gitlab-token", sent],
      ["authorization", `Bearer ${sent}`],
      ["cookie", `a=${sent}`]
    ])
  }
  await call("GET", "/v1/sources")

  // How the team is told of alerts: the chat's URL is its credential. A callback of a channel has its token in the URL.
  const settings = "/v1/sources/channel-settings"
  const chat = `https://127.0.0.1:9/hooks/${planted.plant("URL of the chat")}`
  await call("PATCH", settings, { chat_enabled: true, chat_webhook_url: chat })
  await call("GET", settings)
  await call("PUT", settings, { chat_webhook_url: chat.replace("https:", "http:"), cooldown_minutes: 1 })
  const callback = planted.add("token of a callback", randomBytes(22).toString("hex").slice(0, 43))
  for (const method of ["GET", "POST", "PUT"] as const) {
    const answer = await request(gateway.port, { method, path: `/channels/${callback}`, body: "{}" })
    answers.push(`callback ${answer.status} ${JSON.stringify(answer.headers)} ${answer.body}`)
  }

  // Provider accounts: one that its provider cannot check, one that is connected, and a consent.
  const accountOf = async (provider_key: string) => {
    const credentials = {
      token: planted.plant(`account of ${provider_key}`),
      ...(provider_key === "eventsub" ? { client_id: "c" } : {})
    }
    const connected = await call("POST", "/v1/provider-accounts/credentials/connect", { provider_key, credentials })
    const client_secret = planted.plant(`client of ${provider_key}`)
    const client = { provider_key, client_id: "c", client_secret }
    await call("POST", "/v1/provider-accounts/credentials/connect", {
      provider_key,
      credentials: { ...credentials, more: 1 }
    })
    await call("POST", "/v1/provider-accounts/oauth/start", { ...client, more: 1 })
    const { body: started } = await call("POST", "/v1/provider-accounts/oauth/start", client, gateway.key, true)
    if (started.state !== undefined) {
      planted.add(`state of ${provider_key}`, started.state.split(".")[1])
      const code = planted.plant(`code of ${provider_key}`)
      await call("POST", "/v1/provider-accounts/oauth/callback", { state: started.state, code })
    }
    // Of these providers only this one checks nothing.
    expect(connected.status, provider_key).toBe(provider_key === "eventsub" ? 200 : 502)
    return connected.status === 200 ? (connected.body.id as string) : null
  }

  // Actions of every provider, in every way that they authenticate.
  for (const { actions, auth, key: provider_key } of callingProviders) {
    for (const { fields, key: auth_mode } of auth) {
      const credentialsOf = (kind: string) =>
        Object.fromEntries(
          fields.flatMap((field): ReadonlyArray<readonly [string, string]> => {
            if (!field.required) return []
            const name = `${kind} ${provider_key} ${field.key}`
            if (field.key === "seed") return [[field.key, planted.add(name, natsSeed())]]
            const secret = field.type === "secret" ? planted.plant(name) : ""
            return [[field.key, plainCredentials[field.key]?.(secret) ?? secret]]
          })
        )
      if (fields.some(({ key }) => key === "private_key")) continue
      const credentials = credentialsOf("saved")
      // Credentials are saved with where they are sent.
      const [{ key: action_key, sample }] = actions as [(typeof actions)[number]]
      const provider_account_id = auth_mode === "account" ? await accountOf(provider_key) : null
      if (auth_mode === "account" && provider_account_id === null) continue
      const about = { provider_key, action_key, auth_mode, provider_account_id }
      const action = { name: gateway.name("action"), ...about, inputs: sample.inputs }
      const made = await call("POST", "/v1/actions", { ...action, credentials })
      expect(made.status, `${provider_key} ${auth_mode}: ${JSON.stringify(made.body)}`).toBe(201)
      const one = `/v1/actions/${made.body.id}`
      await call("GET", one)
      if (fields.length > 0) await call("PATCH", one, { credentials: credentialsOf("changed") })
      await call("PATCH", one, { credentials: { ...credentials, more: 1 } })
      await call("PUT", one, { auth_mode: "nothing", credentials })
    }
  }
  await call("GET", "/v1/actions")
  const accounts = await call("GET", "/v1/provider-accounts")

  // A source of an account whose provider is away: its poll fails, and so does the message to the chat about an alert.
  const account = accounts.body.models.find(({ provider_key }: Body) => provider_key === "eventsub").id as string
  const provider = {
    provider_key: "eventsub",
    definition_key: "stream.online_polling",
    provider_account_id: account,
    inputs: { broadcaster_user_id: "1337" }
  }
  const watched = await call("POST", "/v1/sources", {
    name: gateway.name("watched"),
    type: "PROVIDER",
    config: { provider }
  })
  const watchedPath = `/v1/sources/${watched.body.id}`
  await call("POST", `${watchedPath}/run`)
  await gateway.eventually("the poll has failed", async () => {
    const { body } = await call("GET", `${watchedPath}/runs`)
    return body.models.some(({ status }: Body) => status === "failed") ? true : null
  })
  const now = new Date()
  await gateway.sql(
    `insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at, notify_at)
     select $1, team_id, id, 'channel_renewal_failed', 'active', 'The provider is away', 1, $3, $3, $3 from sources where id = $2`,
    [newId(prefixes.channelAlert, now.getTime()), watched.body.id, now]
  )
  await gateway.eventually("the message to the chat has failed", async () => {
    // As if the time for grouping was over since a minute. It is set again and again, so it must not lie after the start of a look.
    await gateway.sql(
      "update channel_alert_deliveries set due_at = now() - interval '1 minute' where transport = 'chat' and attempts = 0"
    )
    // Another alert of the source may have come meanwhile: its message is suppressed, and has no error.
    const [row] = await gateway.sql(
      "select error_code from channel_alert_deliveries where transport = 'chat' and error_code is not null"
    )
    return row?.error_code ?? null
  })
  const told = await call("GET", `${watchedPath}/channel-events`)
  expect(told.body.deliveries).toContainEqual(
    expect.objectContaining({ transport: "chat", error_code: "CONNECTION_REFUSED" })
  )
  for (const path of [
    watchedPath,
    `${watchedPath}/activity`,
    "/v1/sources/channels",
    "/v1/sources/channel-alerts",
    "/v1/sources/channel-metrics",
    settings
  ]) {
    expect((await call("GET", path)).status, path).toBe(200)
  }
  await call("DELETE", watchedPath)
  for (const { id } of accounts.body.models) {
    await call("GET", `/v1/provider-accounts/${id}`)
    expect((await call("DELETE", `/v1/provider-accounts/${id}`)).status).toBe(200)
  }

  // A run with all that a delivery can be: it fails, is tried again, transformed, replayed, in bulk, as a fixture.
  const env = planted.add("variable of a transformation", 'p4nted "in quotes" & %25 \\ more = s3cr3t')
  const transformation = await call(
    "POST",
    "/v1/transformations",
    {
      name: gateway.name("transformation"),
      code: `addHandler("transform", (request, context) => { console.log(Object.keys(context?.env ?? {}).join()); return request })`,
      env: { SECRET: env }
    },
    gateway.key,
    true
  )
  await call("POST", "/v1/transformations", {
    name: "",
    code: `throw ${JSON.stringify(env)}`,
    env: { SECRET: 1, OTHER: env }
  })
  const own = planted.plant("destination's header")
  const source = await gateway.source({
    auth_type: "API_KEY",
    auth: { header_key: "x-own", api_key: planted.plant("source on the run") }
  })
  const ownKey = planted.plant("source on the run, new")
  await call("PATCH", `/v1/sources/${source.id}`, { config: { auth: { header_key: "x-own", api_key: ownKey } } })
  const destination = await gateway.destination({
    url: target.origin,
    auth_type: "CUSTOM_HEADER",
    auth: { header_name: "x-destination-key", value: own }
  })
  await call("POST", "/v1/destinations", {
    name: gateway.name("x"),
    type: "HTTP",
    config: { url: `http://user:${own}@127.0.0.1/`, auth_type: "CUSTOM_HEADER", auth: { value: own } }
  })
  const channel = await gateway.destination(
    {
      url: `${target.origin}/api/webhooks/1/${planted.plant("webhook of a channel")}`,
      content_template: "{{payload}}"
    },
    "CHAT_WEBHOOK"
  )
  const signed = await gateway.destination({ url: target.origin, auth_type: "SERVICE_SIGNATURE" })
  const nowhere = await gateway.destination({
    url: "http://127.0.0.1:9/",
    auth_type: "CUSTOM_HEADER",
    auth: { header_name: "x-destination-key", value: own }
  })
  const rules = [{ type: "transform", transformation_id: transformation.body.id }] as const
  const connection = await gateway.connection(source, destination)
  await gateway.connection(source, signed, rules)
  await gateway.connection(source, channel)
  await gateway.connection(source, nowhere)
  target.reply = (response) => void response.writeHead(500, { "x-said": "no" }).end("no")
  const presented = planted.plant("presented on the run")
  const headers: ReadonlyArray<[string, string]> = [
    ["X-Own", ownKey],
    ["Authorization", `Bearer ${presented}`]
  ]
  const accepted = await send(source, headers, "/orders?a=b", JSON.stringify({ mark }))
  expect(accepted.status).toBe(200)
  const id = JSON.parse(accepted.body).request_id as string
  await gateway.eventually("the attempts", async () =>
    (await gateway.traced(id, 3)).counts.attempts >= 3 ? true : null
  )
  target.reply = (response) => void response.writeHead(200).end("yes")
  await send(source, [["X-Own", planted.plant("wrong key")]])
  await call("POST", `/v1/requests/${id}/retry`, { headers: { "x-more": "1" } })
  const events = (await call("GET", "/v1/events?include=data")).body.models as ReadonlyArray<{ id: string }>
  for (const { id } of events.slice(0, 3)) await call("POST", `/v1/events/${id}/retry`)
  await call("POST", "/v1/requests/bulk_operations", { source_id: source.id, from: "now-1h" })
  await call("POST", "/v1/events/bulk_operations", { source_id: source.id, from: "now-1h" })
  const fixture = await call("POST", "/v1/request-fixtures", { request_id: id, name: "kept" })
  await call("POST", `/v1/request-fixtures/${fixture.body.id}/replay`, { connection_id: connection.id })

  // Links.
  const made = await call("POST", `/v1/requests/${id}/share`, {}, gateway.key, true)
  expect(made.status).toBe(201)
  const token = planted.add("token of a share", made.body.token as string)
  await call("GET", `/v1/shares/request/${token}`, undefined, null)
  await call(
    "GET",
    `/v1/shares/request/${planted.add("token of no share", `rsh_${"ab12".repeat(12)}`)}`,
    undefined,
    null
  )

  const bin = await call("POST", "/v1/public-bins", undefined, null, true)
  expect(bin.status).toBe(201)
  const binToken = planted.add("token of a bin", bin.body.token as string)
  await send(bin.body, [["authorization", `Bearer ${planted.plant("presented to a bin")}`]])
  for (const sent of [binToken, planted.add("token of no bin", `pbn_${"ef56".repeat(12)}`)]) {
    const read = await fetch(`${gateway.origin}/v1/public-bins/${bin.body.id}`, { headers: { "x-bin-token": sent } })
    answers.push(`a bin ${read.status} ${await read.text()}`)
  }

  // People and keys.
  const session = await call("POST", "/v1/auth/demo/login", undefined, null, true)
  const ses = planted.add("session", session.body.token as string)
  const owner = planted.add(
    "owner's session",
    (await call("POST", "/v1/auth/demo/login", undefined, null, true)).body.token as string
  )
  await call("GET", "/v1/auth/me", undefined, ses)
  await call("GET", "/v1/project-secrets", undefined, ses)
  await call("GET", "/v1/sources?limit=x", undefined, ses)
  await call("POST", "/v1/auth/logout", undefined, ses)
  await call("GET", "/v1/auth/me", undefined, ses)
  const keyPath = "/v1/project-api-keys"
  const scoped = await call("POST", keyPath, { name: "scoped", scopes: ["control:read"] }, owner, true)
  expect(scoped.status).toBe(201)
  const projectKey = planted.add("project key", scoped.body.data.api_key as string)
  planted.add("secret part of a project key", projectKey.slice(13))
  await call("GET", "/v1/sources", undefined, projectKey)
  await call("POST", "/v1/sources", { name: projectKey }, projectKey)
  await call("GET", "/v1/sources", undefined, `${projectKey.slice(0, -1)}${projectKey.endsWith("0") ? "1" : "0"}`)
  await call("POST", keyPath, { name: "x", scopes: [projectKey], execute_grants: [projectKey] }, owner)
  for (const path of [keyPath, `${keyPath}/${scoped.body.data.id}`, `${keyPath}/${scoped.body.data.id}/audit`]) {
    await call("GET", path, undefined, owner)
  }
  await call("POST", `${keyPath}/${scoped.body.data.id}/revoke`, undefined, owner)
  await call("GET", "/v1/sources", undefined, projectKey)
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
  const idToken = [
    part({ alg: "RS256", kid: "k" }),
    part({ iss: "http://127.0.0.1:9", aud: "tidegate", sub: planted.plant("subject") }),
    "c2ln"
  ].join(".")
  planted.add("ID token", idToken)
  await call("POST", "/v1/auth/idp/login", { id_token: idToken }, null)
  await call("POST", "/v1/auth/idp/login", { id_token: { nested: idToken }, team_id: 3 }, null)
  for (const kind of ["first signing secret", "second signing secret"]) {
    await call("PUT", "/v1/project-secrets", { signing_secret: planted.plant(kind) }, gateway.key, true)
    await send(source, headers)
  }
  await call("PUT", "/v1/project-secrets", {
    signing_secret: "short",
    api_key: `${planted.plant("refused key")} with a space`
  })
  const rotated = await call("POST", "/v1/project-secrets/rotate", { rotate: ["signing_secret"] }, gateway.key, true)
  planted.add("rotated signing secret", rotated.body.signing_secret.value as string)

  // Whatever is wrong.
  for (const secret of [
    planted.plant("wrong bearer"),
    `gwk_${planted.plant("wrong key")}`,
    `ses_${planted.plant("wrong session")}`
  ]) {
    await call("GET", "/v1/sources", undefined, secret)
    await call("GET", "/metrics", undefined, secret)
  }
  await call("POST", "/v1/sources", `{"name": "${planted.plant("broken JSON")}`)
  await call("POST", "/v1/destinations", {
    name: "x",
    type: "HTTP",
    config: { url: 5, auth: { value: planted.plant("no auth type") } }
  })
  await call("GET", `/v1/nothing/rsh_${"cd34".repeat(12)}`, undefined, null)
  await call("GET", `/v1/events?cursor=${"x".repeat(20)}`)
  await gateway.link.cut()
  await call("GET", "/v1/sources", undefined, planted.plant("bearer in an outage"))
  await send(source, headers)
  await gateway.link.mend()

  await gateway.eventually("all is quiet", async () => {
    const [{ count }] = (await gateway.sql("select count(*)::int as count from pending_routes")) as [{ count: number }]
    return count === 0 ? true : null
  })
  for (const { id } of events) {
    await call("GET", `/v1/events/${id}`)
    const attempts = (await call("GET", `/v1/attempts?event_id=${id}`)).body.models as ReadonlyArray<{ id: string }>
    for (const attempt of attempts) await call("GET", `/v1/attempts/${attempt.id}`)
  }
  for (const path of [
    `/v1/requests/${id}`,
    `/v1/requests/${id}/trace`,
    "/v1/requests?include=data",
    "/v1/events?include=data",
    "/v1/requests/bulk_operations",
    "/v1/destinations",
    "/v1/connections",
    `/v1/connections/${connection.id}/latest-input`,
    "/v1/request-fixtures",
    `/v1/request-fixtures/${fixture.body.id}`,
    "/v1/project-secrets",
    "/openapi.json"
  ]) {
    expect((await call("GET", path)).status, path).toBe(200)
  }
  // A read of the variables is the owner's.
  await call("GET", `/v1/transformations/${transformation.body.id}/executions`)

  expect(planted.size).toBeGreaterThan(60)
  expect(answers.flatMap((text) => planted.in(text))).toEqual([])
  const metrics = await fetch(`${gateway.origin}/metrics`, { headers: { authorization: `Bearer ${metricsKey}` } })
  expect(metrics.status).toBe(200)
  expect(planted.in(await metrics.text())).toEqual([])
  expect(planted.in(collector.texts.join("\n"))).toEqual([])
  expect(collector.spans.length).toBeGreaterThan(20)
  expect(planted.in(await gateway.logged())).toEqual([])
  const dump = await dumpOf(gateway)
  expect([...dump].flatMap(([table, text]) => planted.in(text).map((found) => `${table}: ${found}`))).toEqual([])
  const marked = [...dump].flatMap(([table, text]) =>
    standing.in(text).length > 0 ? [table.replace(/_\d+$/, "")] : []
  )
  expect(marked).toEqual(expect.arrayContaining(["requests", "request_fixtures", "request_shares"]))
  expect(await gateway.logged()).toContain(source.id)
  console.log(
    `${planted.size} secrets; ${answers.length} answers, ${dump.size} tables, ${collector.texts.length} exports, the log and the metrics: none found`
  )
})

it("Planted secrets of a workflow run are in no answer and in no line of the log", async ({ gateway, target }) => {
  const inRuns = new Planted()
  const answers: Array<string> = []
  const call = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${gateway.origin}/v1${path}`, {
      method,
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    answers.push(`${method} ${path} ${response.status} ${text}`)
    return { status: response.status, body: JSON.parse(text) }
  }
  const source = await gateway.source()
  const card = inRuns.add("card", "5500005555555559")
  const live = inRuns.add("key by its look", "sk_live_pl4ntedpl4ntedpl4nted01")
  const webToken = inRuns.add("web token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwbDRudGVkIn0.cGw0bnRlZHBsNG50ZWQ")
  const pem = inRuns.add("PEM", "-----BEGIN RSA PRIVATE KEY-----\nMIIEpl4nted\n-----END RSA PRIVATE KEY-----")
  const gatewayKey = inRuns.add("gateway's key", `gwk_${"pl4nted0".repeat(5)}`)
  const thrown = inRuns.plant("thrown by code")
  const said = inRuns.plant("said by a target")
  target.reply = (response) => void response.writeHead(500, { "x-api-key": said }).end(JSON.stringify({ token: said }))
  const transformation = await call("POST", "/transformations", {
    name: gateway.name("throws"),
    code: `addHandler("transform", (request) => { throw new Error("password=" + request.body.password + " token: " + ${JSON.stringify("given")} + " Bearer " + request.body.inner.bearer) })`
  })
  const destination = await gateway.destination({ url: target.origin })
  const step = (id: string, input: string) => ({
    id,
    kind: "action",
    action: { provider_key: "formatter", action_key: "text.trim" },
    invocation_inputs: { input }
  })
  const edge = (from: string | null, to: string) => ({
    source_type: from === null ? "trigger" : "step",
    source_step_id: from,
    target_step_id: to
  })
  const flow = await call("POST", "/workflows", {
    name: gateway.name("flow"),
    source_id: source.id,
    steps: [
      step("words", "{{trigger.body.words}}"),
      step("auth", "{{trigger.headers.x-own-text}}"),
      step("moved", "{{trigger.body.inner.apiKey}}"),
      step("said", "the pin is {{trigger.body.inner.card_pin}}, {{steps.moved.output.result}}"),
      {
        id: "sends",
        kind: "destination",
        resource_id: destination.id,
        invocation_inputs: { body: "{{trigger.body}}" },
        config: { on_error: "continue" }
      },
      { id: "throws", kind: "transformation", resource_id: transformation.body.id }
    ],
    edges: [
      edge(null, "words"),
      edge("words", "auth"),
      edge("auth", "moved"),
      edge("moved", "said"),
      edge("said", "sends"),
      edge("sends", "throws")
    ]
  })
  expect(flow.status, JSON.stringify(flow.body)).toBe(200)
  const seen = "an order that everybody may see"
  const body = {
    seen,
    words: `paid with ${card}, ${live}, ${webToken}`,
    password: thrown,
    inner: {
      bearer: thrown,
      apiKey: inRuns.plant("API key"),
      card_pin: inRuns.plant("pin"),
      clientToken: inRuns.plant("token"),
      ssn: inRuns.plant("ssn")
    },
    pem,
    list: [{ name: "Authorization", value: inRuns.plant("named value") }, gatewayKey]
  }
  const accepted = await request(gateway.port, {
    path: `/e/${source.id}/orders?token=${inRuns.plant("query")}&page=1`,
    headers: [
      ["content-type", "application/json"],
      ["authorization", `Bearer ${inRuns.plant("header")}`],
      ["x-shop-signature", inRuns.plant("signature")],
      ["x-own-text", `https://user:${inRuns.plant("user-info")}@example.com/`],
      ["cookie", `sid=${inRuns.plant("cookie")}`]
    ],
    body: JSON.stringify(body)
  })
  expect(accepted.status).toBe(200)
  const runs = `/workflows/${flow.body.id}/runs`
  const run = await gateway.eventually("the run", async () => {
    const [first] = (await call("GET", runs)).body.models
    return first?.finished_at == null ? null : first
  })
  expect(run).toMatchObject({ status: "failed", error_step_id: "throws", error_code: "RUNTIME_ERROR" })
  const detail = await call("GET", `${runs}/${run.id}?include_previews=true`)
  expect(detail.body.trigger.preview).toMatchObject({ available: true, redacted: true, preview: { body: { seen } } })
  await call("GET", `${runs}/${run.id}`)
  await call("GET", "/workflow-activity")
  expect((await call("POST", `${runs}/${run.id}/retry`, { step_id: "throws" })).status).toBe(202)
  await gateway.eventually("the retried run", async () => {
    const { attempt_count, finished_at } = (await call("GET", `${runs}/${run.id}?include_previews=true`)).body
    return attempt_count === 2 && finished_at !== null ? true : null
  })
  await call("GET", `/metrics/workflows?id=${flow.body.id}`)
  await call("DELETE", runs)
  expect(inRuns.size).toBeGreaterThan(12)
  expect(answers.join("\n")).toContain(seen)
  expect(answers.flatMap((text) => inRuns.in(text))).toEqual([])
  expect(inRuns.in(await gateway.logged())).toEqual([])
})
