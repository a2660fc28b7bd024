import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Logger, Result } from "effect"
import { SqlClient } from "effect/sql"
import { ProviderError } from "@tidegate/channels/Adapter"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import type { SourceProvider, Trigger } from "@tidegate/channels/SourceProvider"
import { newId, prefixes } from "@tidegate/model/Ids"
import { TeamLimits } from "@tidegate/resources/TeamLimits"
import { loadAction } from "@tidegate/storage/workflows/Actions"
import { accountConsentOf } from "@tidegate/storage/accounts/AccountConsents"
import { hashToken, parseSecretKeys, Secrets } from "@tidegate/storage/secrets/Secrets"
import { AccountProvider } from "../../entities/test/AccountProvider.ts"
import { sealedColumn } from "../../storage/src/secrets/SealedColumn.ts"
import { renewAll } from "../../storage/src/secrets/KeyRotation.ts"
import { clientOf, redirectUri } from "../../../test/support/TokenProvider.ts"
import { call as callAs, type CallOptions, layer as server, teams } from "./ControlServer.ts"
import { somebody } from "./SignedIn.ts"

/** Provider accounts over the API, at a provider with a real OAuth server. */

class Provider extends Context.Service<Provider, AccountProvider>()("@tidegate/api/test/AccountProvider") {}

const callback = "http://ingress.test/v1/oauth/callback"

/** What was logged, for the search for secrets. */
const logged: Array<string> = []
const log = Logger.layer([Logger.map(Logger.formatJson, (line) => void logged.push(line))])

/** The subscriptions that were stopped, and those that the provider does not end. */
const stops: Array<string> = []
const stubborn = new Set<string>()
/** The inputs with which each was ended. */
const endedWith = new Map<string, unknown>()

const trigger: Trigger = {
  key: "item.changed",
  name: "Item changed",
  description: "An item has changed.",
  category: "core",
  version: "1.0.0",
  requiredScopes: [],
  inputs: {},
  output: { type: "object" },
  primaryOutput: null,
  sample: { inputs: {}, output: {} },
  adapter: {
    key: "watch",
    targets: () => [],
    provision: () => Effect.die("not here"),
    renew: null,
    stop: ({ baseUrl, call, inputs }, { id }, url) =>
      Effect.gen(function* () {
        endedWith.set(id, inputs)
        expect(url).toMatch(/^http:\/\/ingress\.test\/channels\/t{43}$/)
        yield* call({ method: "DELETE", url: `${baseUrl}/hooks/${id}`, authorized: true })
        if (stubborn.has(id)) {
          const failure = { code: "PROVIDER_UNAVAILABLE", message: "HTTP 503", permanent: false, status: 503 } as const
          return yield* new ProviderError({ ...failure, retryAfterMs: null })
        }
        return void stops.push(id)
      }),
    receive: () => ({ kind: "ping", reply: { status: 200, contentType: null, body: "" } })
  },
  poller: { key: "json_poll", poll: () => Effect.die("not here") }
}

const open: SourceProvider = {
  key: "open_provider",
  name: "Open provider",
  description: "Needs no account.",
  icon_key: "rss",
  manifest_version: "1.0.0",
  account: null,
  triggers: [{ ...trigger, adapter: null }]
}

/** Its own service is elsewhere, and its users host it, too. */
const hosted = (row: SourceProvider): SourceProvider => ({
  ...row,
  key: "hosted_provider",
  account: {
    ...row.account!,
    origin: "https://api.hosted.example",
    oauth2: {
      ...row.account!.oauth2!,
      authorizationUrl: "https://hosted.example/auth",
      tokenUrl: "https://hosted.example/token",
      selfHosted: { authorizationUrl: "../auth", tokenUrl: "../token", revocationUrl: "../token/revocation" }
    },
    identity: null
  }
})

/** Its accounts get their tokens as clients of their own. */
const withAppTokens = (row: SourceProvider, issuer: string): SourceProvider => {
  const field = (key: string, type: "secret" | "text", required: boolean) => ({
    key,
    label: key,
    type,
    required,
    help: null
  })
  return {
    ...row,
    key: "app_provider",
    account: {
      ...row.account!,
      connections: ["api_key"],
      oauth2: null,
      appTokens: { tokenUrl: `${issuer}/token`, revocationUrl: `${issuer}/token/revocation` },
      fields: [
        field("client_id", "text", true),
        field("client_secret", "secret", false),
        field("token", "secret", false)
      ]
    }
  }
}

const world = Layer.unwrap(
  Effect.gen(function* () {
    const provider = yield* Effect.acquireRelease(
      Effect.promise(() => AccountProvider.start({ redirectUris: [callback] })),
      ({ close }) => Effect.promise(close)
    )
    const row = provider.row()
    const rows = [
      { ...row, triggers: [trigger] },
      open,
      { ...row, key: "git_host" },
      hosted(row),
      withAppTokens(row, provider.oauth.issuer)
    ]
    return Layer.merge(
      Layer.succeed(Provider, provider),
      Layer.provide(server, [
        log,
        Layer.succeed(KnownProviders, rows),
        Layer.effect(
          TeamLimits,
          Effect.map(TeamLimits, (limits) => ({ ...limits, provider_accounts: 12 }))
        )
      ])
    )
  })
)

const client = clientOf("client_secret_post")
const wanted = { provider_key: "test_provider", ...client }

/** What was answered, for the search for secrets. */
const answered: Array<string> = []
const call = (method: string, path: string, options?: CallOptions) =>
  Effect.tap(callAs(method, path, options), ({ body }) =>
    Effect.sync(() => {
      answered.push(JSON.stringify(body))
    })
  )

const post = (path: string, body: object, key?: string) =>
  call("POST", `/provider-accounts/${path}`, { body, ...(key === undefined ? {} : { key }) })
const start = (change: object = {}, key?: string) => post("oauth/start", { ...wanted, ...change }, key)

/** Consents as this person; the query with which the provider sends them back. */
const consented = (url: string, login = "ada") =>
  Effect.gen(function* () {
    const { oauth } = yield* Provider
    const back = yield* Effect.promise(() => oauth.consent(url, login))
    return { state: back.searchParams.get("state")!, code: back.searchParams.get("code")! }
  })

/** Connects an account by a consent. */
const connected = Effect.fnUntraced(function* (change: object = {}) {
  const { body: started } = yield* start({ redirect_uri: redirectUri, ...change })
  const { body, status } = yield* post("oauth/callback", yield* consented(started.authorization_url))
  expect([status, body.lifecycle?.state], JSON.stringify(body)).toEqual([200, "active"])
  return body
})

const withKey = (change: object = {}) =>
  post("credentials/connect", {
    provider_key: "test_provider",
    credentials: { token: AccountProvider.key },
    ...change
  })

/** A source of the account, with live subscriptions. */
const sourceOf = Effect.fnUntraced(function* (account: string, subscriptions: number) {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const source = newId(prefixes.source, Date.now())
  const team_id = teams.a.id
  const config = JSON.stringify({ provider: { provider_account_id: account, inputs: {} } })
  yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
    values (${source}, ${team_id}, ${source}, 'PROVIDER', ${config}::text::jsonb, now(), now())`
  yield* sql`insert into channels (source_id, team_id, created_at, updated_at) values (${source}, ${team_id}, now(), now())`
  const ids = Array.from({ length: subscriptions }, () => newId(prefixes.channelSubscription, Date.now()))
  for (const id of ids) {
    const sealed = yield* sealedColumn(secrets, "channel_subscriptions", "secrets").seal(
      { id, team_id },
      { token: "t".repeat(43), secret: "s".repeat(43) }
    )
    yield* sql`insert into channel_subscriptions (id, team_id, source_id, adapter, definition_key, account_id, target, token_hash,
        secrets, state, created_at)
      values (${id}, ${team_id}, ${source}, 'watch', 'item.changed', ${account}, 'all', ${hashToken(id)}, ${sealed}, 'active', now())`
  }
  const dueOf = Effect.map(
    sql<{ due: boolean }>`select due_at is not null as due from channels where source_id = ${source}`,
    ([row]) => row!.due
  )
  return { ids, dueOf }
})

const rowOf = (id: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{
      row: string
    }>`select row_to_json(a)::text as row from provider_accounts a where id = ${id}`
    return row!.row
  })

layer(world, { excludeTestServices: true })("Provider accounts", (it) => {
  it.effect("A consent connects an account, with PKCE and without showing a secret", () =>
    Effect.gen(function* () {
      const provider = yield* Provider
      const started = yield* start({ scopes: ["openid", "offline_access"] })
      expect(started).toMatchObject({
        status: 200,
        body: { redirect_uri: callback, state: expect.stringMatching(/^pac_\w{26}\.[\w-]{43}$/) }
      })
      const url = new URL(started.body.authorization_url)
      expect(Object.fromEntries(url.searchParams)).toMatchObject({
        code_challenge_method: "S256",
        scope: "openid offline_access",
        prompt: "consent",
        state: started.body.state
      })
      const account = yield* connected({ name: "Ada's calendar" })
      expect(provider.oauth.calls.at(-1)!.form).toMatchObject({
        grant_type: "authorization_code",
        code_verifier: expect.stringMatching(/^[\w-]{43}$/)
      })
      expect(account).toMatchObject({
        team_id: teams.a.id,
        provider_key: "test_provider",
        name: "Ada's calendar",
        email: "ada@example.com",
        external_account_id: "90071992547409931",
        status: "enabled",
        account_kind: "user",
        connection: "oauth2",
        base_url: provider.api,
        scopes: expect.arrayContaining(["openid", "offline_access"]),
        lifecycle: { state: "active", reconnect_mode: "oauth2", can_revoke: true, can_reconnect: true },
        usage: { sources: 0, actions: 0, workflows: 0, lookups: 0, total: 0 },
        used_by: []
      })
      expect(Date.parse(account.token_expires_at)).toBeGreaterThan(Date.now())
      yield* sourceOf(account.id, 0)
      expect((yield* call("GET", `/provider-accounts/${account.id}`)).body.usage).toMatchObject({
        sources: 1,
        total: 1
      })
      const { access_token, refresh_token } = provider.oauth.given.at(-1)!
      const shown = answered.join() + logged.join() + (yield* rowOf(account.id))
      expect(logged.join()).toContain("/provider-accounts/oauth/callback")
      for (const secret of [access_token, refresh_token!, client.client_secret]) expect(shown).not.toContain(secret)
    })
  )

  it.effect("A state is used once, and a repeated callback returns the same account", () =>
    Effect.gen(function* () {
      const provider = yield* Provider
      const { body: started } = yield* start({ redirect_uri: redirectUri })
      const back = yield* consented(started.authorization_url)
      const first = yield* post("oauth/callback", back)
      const calls = provider.oauth.calls.length
      expect((yield* post("oauth/callback", back)).body.id).toBe(first.body.id)
      expect(provider.oauth.calls.length).toBe(calls)
      for (const other of [
        { ...back, code: "another" },
        { state: back.state, error: "access_denied" }
      ]) {
        expect((yield* post("oauth/callback", other)).body.code).toBe("OAUTH2_STATE_INVALID")
      }
    })
  )

  it.effect("Only the session or key that began a consent may end it", () =>
    Effect.gen(function* () {
      const [ada, bob] = [yield* somebody, yield* somebody]
      const { body: started } = yield* start({ redirect_uri: redirectUri }, ada.token)
      const back = yield* consented(started.authorization_url)
      for (const key of [bob.token, teams.a.key, teams.b.key]) {
        expect((yield* post("oauth/callback", back, key)).body.code).toBe("OAUTH2_STATE_INVALID")
      }
      expect((yield* post("oauth/callback", back, ada.token)).status).toBe(200)
    })
  )

  it.effect("A browser that comes back shows whose account it becomes, and connects it after a confirmation", () =>
    Effect.gen(function* () {
      const { body: started } = yield* start({ name: "Ada <b>" })
      const back = yield* consented(started.authorization_url)
      const page = `/oauth/callback?${new URLSearchParams(back).toString()}`
      const asked = yield* callAs("GET", page, { key: null, headers: { accept: "text/html" } })
      expect(asked.body).toContain("asks to use your account at Test provider")
      expect(asked.body).toContain("Ada &#60;b&#62;")
      const id = started.state.split(".")[0]
      const unconfirmed = yield* callAs("POST", page, { key: null, headers: { accept: "text/html" } })
      expect(unconfirmed.body).toContain("Do you consent?")
      expect((yield* call("GET", `/provider-accounts/${id}`)).status).toBe(404)
      const action = /action="([^"]+)"/.exec(asked.body)![1]!.replaceAll("&#38;", "&")
      const done = yield* callAs("POST", `/oauth/callback${action}`, { key: null })
      expect(done.body).toEqual({ authorized: true, provider_account_id: id, renewable: true })
      expect((yield* call("GET", `/provider-accounts/${id}`)).body.lifecycle.state).toBe("active")
    })
  )

  it.effect("A refused consent connects nothing", () =>
    Effect.gen(function* () {
      const { body: started } = yield* start()
      const refused = yield* post("oauth/callback", { state: started.state, error: "access_denied" })
      expect([refused.status, refused.body.code]).toEqual([502, "OAUTH2_HANDSHAKE_FAILED"])
      expect((yield* post("oauth/callback", { state: started.state, code: "late" })).body.code).toBe(
        "OAUTH2_STATE_INVALID"
      )
    })
  )

  it.effect("Credentials connect an account when the provider accepts them", () =>
    Effect.gen(function* () {
      const provider = yield* Provider
      const { body, status } = yield* withKey({ credentials: { token: AccountProvider.key, workspace: "shop" } })
      expect([status, body]).toMatchObject([
        200,
        { name: "ada", connection: "api_key", account_kind: "service", lifecycle: { reconnect_mode: "credentials" } }
      ])
      const refused = yield* withKey({ credentials: { token: "a-wrong-key-of-ada" } })
      expect([refused.status, refused.body]).toMatchObject([422, { code: "PROVIDER_REFUSED" }])
      expect(JSON.stringify(refused.body)).not.toContain("a-wrong-key")
      provider.instead = (_, response) => void response.writeHead(503).end()
      const failed = yield* withKey()
      expect([failed.status, failed.body.code]).toEqual([502, "PROVIDER_FAILED"])
      provider.instead = null
    })
  )

  it.effect("A body that cannot connect anything names all faults", () =>
    Effect.gen(function* () {
      const faultsOf = (answer: { readonly body: { readonly data?: { readonly fields?: unknown } } }) =>
        answer.body.data?.fields
      expect(faultsOf(yield* withKey({ credentials: { tokne: "x", workspace: 1 } }))).toEqual([
        { path: "credentials.tokne", message: expect.stringContaining("token") },
        { path: "credentials.token", message: "is required" },
        { path: "credentials.workspace", message: "must be a string" }
      ])
      for (const [change, path] of [
        [{ provider_key: "nobody" }, "provider_key"],
        [{ provider_key: "open_provider" }, "provider_key"],
        [{ base_url: "https://api.example.com?x=1" }, "base_url"]
      ] as const) {
        expect(faultsOf(yield* withKey(change))).toMatchObject([{ path }])
        expect(faultsOf(yield* start(change))).toMatchObject([{ path }])
      }
      expect(faultsOf(yield* start({ base_url: "https://other.example.com" }))).toMatchObject([{ path: "base_url" }])
    })
  )

  it.effect("A revocation ends the subscriptions, the token at the provider and the credentials, once", () =>
    Effect.gen(function* () {
      const provider = yield* Provider
      const account = yield* connected()
      const { dueOf, ids } = yield* sourceOf(account.id, 3)
      stubborn.add(ids[1]!)
      // The source has other inputs by now than the first one was created with.
      const state = { subscriptions: { [ids[0]!]: { basis: "old" } }, bases: { old: { inputs: { folder: "old" } } } }
      yield* (yield* SqlClient.SqlClient)`update channels set state = ${JSON.stringify(state)}::json
        where source_id = (select source_id from channel_subscriptions where id = ${ids[0]!})`
      const { access_token, refresh_token } = provider.oauth.given.at(-1)!
      const revoked = yield* call("DELETE", `/provider-accounts/${account.id}`)
      expect(revoked).toMatchObject({
        status: 200,
        body: { id: account.id, status: "disabled", provider_revoked: true, channels_stopped: 2, channels_failed: 1 }
      })
      expect(stops.toSorted()).toEqual([ids[0]!, ids[2]!].toSorted())
      expect(ids.map((id) => endedWith.get(id))).toEqual([{ folder: "old" }, {}, {}])
      expect(yield* Effect.promise(() => provider.oauth.knows(access_token))).toBe(false)
      const row = yield* rowOf(account.id)
      expect(row).toContain('"credentials":null,"held":null')
      for (const secret of [access_token, refresh_token!]) expect(answered.join() + logged.join()).not.toContain(secret)
      expect(yield* dueOf).toBe(true)
      expect((yield* call("DELETE", `/provider-accounts/${account.id}`)).body).toEqual(revoked.body)
      expect((yield* call("GET", `/provider-accounts/${account.id}`)).body).toMatchObject({
        status: "disabled",
        revoked_at: revoked.body.revoked_at,
        token_expires_at: null,
        lifecycle: { state: "revoked", can_revoke: false, can_reconnect: true },
        usage: { sources: 1 }
      })
      const sql = yield* SqlClient.SqlClient
      const left = yield* sql<{ id: string }>`
        select id from channel_subscriptions where account_id = ${account.id} and state = 'active'`
      expect(left.map(({ id }) => id)).toEqual([ids[1]])
    })
  )

  it.effect("A revoked account that is connected again keeps its id, its name and its sources", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const account = yield* connected({ name: "before" })
      const { dueOf } = yield* sourceOf(account.id, 0)
      yield* call("DELETE", `/provider-accounts/${account.id}`)
      yield* sql`update channels set due_at = null`
      const again = yield* connected({ account_id: account.id })
      expect(again).toMatchObject({ id: account.id, name: "before", revoked_at: null, usage: { sources: 1 } })
      expect(yield* dueOf).toBe(true)
      const other = yield* post("credentials/connect", {
        provider_key: "test_provider",
        account_id: "pac_01kak1zb17j9d5n8m3k1h0g2pq",
        credentials: { token: AccountProvider.key }
      })
      expect([other.status, other.body.code]).toEqual([404, "NOT_FOUND"])
      const provider = yield* Provider
      provider.instead = (_, response) => void response.writeHead(200).end('{"id":"somebody else"}')
      expect((yield* withKey({ account_id: account.id })).body).toMatchObject({
        code: "VALIDATION_ERROR",
        data: { fields: [{ path: "account_id" }] }
      })
      provider.instead = null
    })
  )

  it.effect("A list has pages, and shows the accounts of its team only", () =>
    Effect.gen(function* () {
      const all = (yield* call("GET", "/provider-accounts")).body
      expect(all.count).toBeGreaterThan(2)
      const first = (yield* call("GET", "/provider-accounts?limit=2")).body
      const second = (yield* call("GET", `/provider-accounts?limit=2&cursor=${first.next_cursor}`)).body
      const idsOf = ({ models }: { readonly models: ReadonlyArray<{ readonly id: string }> }) =>
        models.map(({ id }) => id)
      expect([...idsOf(first), ...idsOf(second)]).toEqual(idsOf(all).slice(0, 4))
      expect((yield* callAs("GET", "/provider-accounts", { key: teams.b.key })).body.models).toEqual([])
      const [one] = idsOf(all)
      expect((yield* callAs("DELETE", `/provider-accounts/${one}`, { key: teams.b.key })).status).toBe(404)
    })
  )

  it.effect("A team can have as many accounts as its limit says, without revoked ones", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [{ count }] = (yield* sql<{ count: number }>`
        select count(*)::int as count from provider_accounts where revoked_at is null`) as [{ count: number }]
      for (let more = count; more < 12; more++) expect((yield* withKey()).status).toBe(200)
      for (const answer of [yield* withKey(), yield* start()]) {
        expect(answer.body).toMatchObject({
          code: "LIMIT_EXCEEDED",
          data: { limit: 12, resource: "provider_accounts" }
        })
      }
      const [last] = (yield* call("GET", "/provider-accounts?limit=1")).body.models
      yield* call("DELETE", `/provider-accounts/${last.id}`)
      expect((yield* withKey()).status).toBe(200)
    })
  )

  it.effect("An action names a connected account of its provider, and its choices come from that account", () =>
    Effect.gen(function* () {
      const provider = yield* Provider
      const sql = yield* SqlClient.SqlClient
      // Beyond the limit that the test before has reached.
      yield* sql`update provider_accounts set revoked_at = now(), disabled_at = now() where connection = 'api_key'`
      const { body: account } = yield* withKey({ provider_key: "git_host" })
      const action = (change: object) => ({
        name: "Open an issue",
        provider_key: "git_host",
        action_key: "create_issue",
        inputs: { repository: "acme/shop", title: "{{trigger.body.title}}" },
        ...change
      })
      const create = (change: object) => call("POST", "/actions", { body: action(change) })
      const missing = (yield* create({})).body
      expect(missing).toMatchObject({ data: { fields: [{ path: "config.provider_account_id" }] } })
      const strange = (yield* create({ provider_account_id: "pac_01kak1zb17j9d5n8m3k1h0g2pq" })).body
      expect(strange.code).toBe("PROVIDER_ACCOUNT_NOT_CONNECTED")
      const made = yield* create({ provider_account_id: account.id })
      expect([made.status, made.body.config]).toMatchObject([
        201,
        { auth_mode: "account", provider_account_id: account.id, credentials_configured: false }
      ])
      expect((yield* loadAction(teams.a.id, made.body.id))!.credentials).toEqual({
        mode: "account",
        values: { provider_account_id: account.id }
      })
      expect((yield* call("GET", `/provider-accounts/${account.id}`)).body.usage).toMatchObject({
        actions: 1,
        total: 1
      })

      const options = (change: object = {}) =>
        call("POST", "/action-options", {
          body: { provider_key: "git_host", resource: "repositories", provider_account_id: account.id, ...change }
        })
      provider.instead = (_, response) =>
        void response
          .writeHead(200)
          .end('[{"full_name":"acme/shop","description":"The shop"},{"full_name":"acme/blog"},{"id":1}]')
      expect((yield* options()).body).toEqual({
        models: [
          { id: "acme/blog", name: "acme/blog", description: null },
          { id: "acme/shop", name: "acme/shop", description: "The shop" }
        ],
        next_cursor: null
      })
      const page = (yield* options({ limit: 1 })).body
      expect((yield* options({ limit: 1, cursor: page.next_cursor })).body.models[0].id).toBe("acme/shop")
      expect((yield* options({ query: "SHOP" })).body.models.length).toBe(1)
      expect(provider.calls.at(-1)!.path).toBe("/user/repos?per_page=100&limit=100&sort=updated&page=1")
      // The provider has 30 pages of 2. A query reads 10 of them in one call.
      provider.instead = ({ url }, response) => {
        const page = Number(new URL(url!, "http://x").searchParams.get("page"))
        const names = [`acme/b${page}`, `acme/a${page}`]
        const link = page < 30 ? { link: `<https://elsewhere.example/?page=${page + 1}>; rel="next"` } : {}
        response.writeHead(200, link).end(JSON.stringify(names.map((full_name) => ({ full_name }))))
      }
      const all: Array<string> = []
      let cursor: string | null = null
      do {
        const { body }: Effect.Success<ReturnType<typeof options>> = yield* options({ limit: 3, cursor })
        expect(body.models.length).toBeLessThanOrEqual(3)
        all.push(...body.models.map(({ id }: { id: string }) => id))
        cursor = body.next_cursor
      } while (cursor !== null && all.length < 100)
      expect(all).toEqual(Array.from({ length: 30 }, (_, n) => [`acme/a${n + 1}`, `acme/b${n + 1}`]).flat())
      const calls = provider.calls.length
      const searched = (yield* options({ query: "a11" })).body
      expect(searched.models).toEqual([])
      expect(provider.calls.length - calls).toBe(10)
      expect((yield* options({ query: "a11", cursor: searched.next_cursor })).body.models[0].id).toBe("acme/a11")
      expect((yield* options({ cursor: "nonsense" })).body.code).toBe("INVALID_CURSOR")
      provider.instead = (_, response) => void response.writeHead(500).end()
      expect(yield* options()).toMatchObject({ status: 502, body: { code: "PROVIDER_FAILED" } })
      provider.instead = null
      expect(yield* options({ provider_account_id: null })).toMatchObject({
        status: 409,
        body: { code: "PROVIDER_ACCOUNT_NOT_CONNECTED" }
      })
      yield* call("DELETE", `/provider-accounts/${account.id}`)
      expect((yield* options()).body.code).toBe("PROVIDER_ACCOUNT_NOT_CONNECTED")
      // The action keeps its account, which may be connected again.
      expect((yield* call("PATCH", `/actions/${made.body.id}`, { body: { name: "Open" } })).status).toBe(200)
    })
  )

  it.effect("Workflows whose steps name an account count once each as its users, and a revocation names them", () =>
    Effect.gen(function* () {
      const { body: account } = yield* withKey({ provider_key: "git_host" })
      const { body: unused } = yield* withKey({ provider_key: "git_host" })
      const { body: source } = yield* call("POST", "/sources", { body: { name: "orders", type: "WEBHOOK" } })
      const step = (id: string, provider_account_id: string) => ({
        id,
        kind: "action",
        action: { provider_key: "git_host", action_key: "create_issue", version: "1.0.0", provider_account_id },
        invocation_inputs: { repository: "acme/shop", title: "New" }
      })
      const graph = (...steps: ReadonlyArray<{ readonly id: string }>) => ({
        steps,
        edges: steps.map(({ id }) => ({ source_type: "trigger", target_step_id: id }))
      })
      const create = Effect.fnUntraced(function* (name: string, definition: object) {
        const made = yield* call("POST", "/workflows", { body: { name, source_id: source.id, ...definition } })
        expect(made.status, JSON.stringify(made.body)).toBe(200)
        return made.body
      })
      const twice = yield* create("twice", graph(step("first", account.id), step("second", account.id)))
      const drafted = yield* create("drafted", graph())
      const deleted = yield* create("deleted", graph(step("first", account.id)))
      const draft = yield* call("PUT", `/workflows/${drafted.id}/draft`, { body: graph(step("first", account.id)) })
      expect(draft.status, JSON.stringify(draft.body)).toBe(200)
      yield* call("DELETE", `/workflows/${deleted.id}`)
      const used_by = [
        { type: "workflow", id: drafted.id, name: "drafted" },
        { type: "workflow", id: twice.id, name: "twice" }
      ]
      const shown = Effect.map(call("GET", `/provider-accounts/${account.id}`), ({ body }) => body)
      expect(yield* shown).toMatchObject({ usage: { sources: 0, actions: 0, workflows: 2, total: 2 }, used_by })
      const listed = (yield* call("GET", "/provider-accounts")).body.models
      expect(listed.find(({ id }: { id: string }) => id === unused.id)).toMatchObject({
        usage: { total: 0 },
        used_by: []
      })
      const revoked = yield* call("DELETE", `/provider-accounts/${account.id}`)
      expect(revoked.body.used_by).toEqual(used_by)
      yield* call("DELETE", `/provider-accounts/${unused.id}`)
      yield* call("DELETE", `/workflows/${drafted.id}`)
      yield* call("PATCH", `/workflows/${twice.id}`, { body: { steps: [], edges: [] } })
      expect(yield* shown).toMatchObject({ usage: { workflows: 0 }, used_by: [] })
      // What a revocation has answered stays.
      expect((yield* call("DELETE", `/provider-accounts/${account.id}`)).body).toEqual(revoked.body)
    })
  )

  it.effect(
    "A consent to a self-hosted service is asked for at its own server, where the token is got and revoked",
    () =>
      Effect.gen(function* () {
        const { oauth } = yield* Provider
        const wanted = { ...client, provider_key: "hosted_provider", redirect_uri: redirectUri }
        const ownService = yield* post("oauth/start", wanted)
        expect(new URL(ownService.body.authorization_url).origin).toBe("https://hosted.example")
        const { body: started } = yield* post("oauth/start", { ...wanted, base_url: `${oauth.issuer}/api/v1` })
        expect(new URL(started.authorization_url)).toMatchObject({ origin: oauth.issuer, pathname: "/auth" })
        const calls = oauth.calls.length
        const { body: account } = yield* post("oauth/callback", yield* consented(started.authorization_url))
        expect(account, JSON.stringify(account)).toMatchObject({
          base_url: `${oauth.issuer}/api/v1`,
          connection: "oauth2",
          lifecycle: { state: "active" }
        })
        expect(oauth.calls.slice(calls).map(({ form }) => form["grant_type"])).toEqual(["authorization_code"])
        const { access_token } = oauth.given.at(-1)!
        const revoked = yield* call("DELETE", `/provider-accounts/${account.id}`)
        expect(revoked.body).toMatchObject({ provider_revoked: true })
        expect(yield* Effect.promise(() => oauth.knows(access_token))).toBe(false)
      })
  )

  it.effect("An account with a client's secret gets its own token when it is connected, and shows neither", () =>
    Effect.gen(function* () {
      const { oauth } = yield* Provider
      const { client_id, client_secret } = client
      const connect = (credentials: object) =>
        post("credentials/connect", { provider_key: "app_provider", name: "app", credentials })
      for (const credentials of [{ client_id }, { client_id, client_secret, token: AccountProvider.key }]) {
        expect((yield* connect(credentials)).body.data.fields).toEqual([
          { path: "credentials.client_secret", message: "give either it or token" }
        ])
      }
      const refused = yield* connect({ client_id, client_secret: "a-wrong-secret-of-ada" })
      expect([refused.status, refused.body.code]).toEqual([422, "PROVIDER_REFUSED"])
      expect(JSON.stringify(refused.body)).not.toContain("a-wrong-secret")
      const { body: account, status } = yield* connect({ client_id, client_secret })
      expect([status, account]).toMatchObject([
        200,
        { connection: "api_key", account_kind: "service", email: "ada@example.com" }
      ])
      expect(oauth.calls.at(-1)!.form).toMatchObject({ grant_type: "client_credentials" })
      expect(Date.parse(account.token_expires_at)).toBeGreaterThan(Date.now())
      const { access_token } = oauth.given.at(-1)!
      const shown = answered.join() + logged.join() + (yield* rowOf(account.id))
      for (const secret of [access_token, client_secret]) expect(shown).not.toContain(secret)
      const entered = yield* connect({ client_id, token: AccountProvider.key })
      expect(entered.body).toMatchObject({ token_expires_at: null, lifecycle: { state: "active" } })
      yield* call("DELETE", `/provider-accounts/${entered.body.id}`)
      const revoked = yield* call("DELETE", `/provider-accounts/${account.id}`)
      expect(revoked.body).toMatchObject({ provider_revoked: true })
      expect(yield* Effect.promise(() => oauth.knows(access_token))).toBe(false)
    })
  )

  it.effect("The catalog of source providers is made from their rows, and has an ETag", () =>
    Effect.gen(function* () {
      const { api } = yield* Provider
      const answer = yield* call("GET", "/source-providers")
      expect(answer.body).toMatchObject({
        count: 5,
        models: [
          {
            key: "test_provider",
            capabilities: ["sources"],
            auth: {
              type: "oauth2",
              modes: ["oauth2", "api_key"],
              base_url: api,
              credential_fields: [{ key: "token" }, {}]
            },
            definitions: [
              { key: "item.changed", delivery_mode: "instant", pair_key: "test_provider.item.changed" },
              { key: "item.changed_polling", delivery_mode: "polling", pair_key: "test_provider.item.changed" }
            ]
          },
          {
            key: "open_provider",
            auth: { type: "none" },
            definitions: [{ key: "item.changed", delivery_mode: "polling" }]
          },
          { key: "git_host", definitions: [] },
          { key: "hosted_provider", auth: { self_hosted: true } },
          { key: "app_provider", auth: { modes: ["api_key"] } }
        ]
      })
      const headers = { "if-none-match": answer.headers.get("etag")! }
      expect((yield* call("GET", "/source-providers", { headers })).status).toBe(304)
    })
  )

  // The last one: the server does not have the new key.
  it.effect("A rotation of the secret keys encrypts consents and accounts again", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { models } = (yield* call("GET", "/provider-accounts")).body
      const account = models.find(
        ({ connection, provider_key }: { readonly connection: string; readonly provider_key: string }) =>
          connection === "oauth2" && provider_key === "test_provider"
      )
      const { body: started } = yield* start({ account_id: account.id })
      const keys = Result.getOrThrow(parseSecretKeys(`new:${"1".repeat(64)},${"0".repeat(64)}`))
      yield* Effect.provide(
        renewAll(() => Effect.void),
        Secrets.layer({ keys })
      )
      const sealed = yield* sql<{ value: string }>`
        select credentials as value from provider_accounts where credentials is not null
        union all select held from provider_accounts where held is not null
        union all select consent from provider_consents`
      expect(sealed.length).toBeGreaterThan(3)
      for (const { value } of sealed) expect(value).toMatch(/^v1\.new\./)
      const found = yield* Effect.provide(accountConsentOf(started.state, new Date()), Secrets.layer({ keys }))
      expect(found!.consent).toHaveProperty("verifier")
    })
  )
})
