import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { AccountCall } from "@tidegate/actions/Call"
import { callOf } from "@tidegate/actions/Providers"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import type { ProviderRequest } from "@tidegate/channels/Adapter"
import { Egress } from "@tidegate/egress/Egress"
import { newId, prefixes } from "@tidegate/model/Ids"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { writeChain } from "@tidegate/outbound-auth/LoopMark"
import { sealedColumn } from "../../storage/src/secrets/SealedColumn.ts"
import { Secrets } from "@tidegate/storage/secrets/Secrets"
import { loopbackOnly } from "../../egress/src/Guard.ts"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { clientOf, redirectUri, type TokenProviderOptions } from "../../../test/support/TokenProvider.ts"
import { accountCredential } from "../src/accounts/AccountCredential.ts"
import { ProviderCalls } from "../src/accounts/ProviderCalls.ts"
import { heldFor, obtained } from "../src/tokens/Held.ts"
import { askForTokens } from "../src/tokens/TokenEndpoint.ts"
import { makeAccountCall } from "../src/Workflow/effects/AccountCall.ts"
import { loopLimits, Loops, makeLoops } from "../src/Loops.ts"
import { AccountProvider } from "./AccountProvider.ts"

/** Calls with the credentials of accounts, to a provider with a real OAuth server, by a clock of the test's. */

const world = Layer.provideMerge(
  ProviderCalls.layer,
  ControlPlane.layer.pipe(
    Layer.provideMerge(Egress.layer({ allow: loopbackOnly })),
    Layer.provide(Layer.effectDiscard(TestClock.setTime(Date.now())))
  )
)

const team_id = ControlPlane.team
const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
const client = clientOf("client_secret_basic")

const provided = (options?: TokenProviderOptions) =>
  Effect.acquireRelease(
    Effect.promise(() => AccountProvider.start(options)),
    (provider) => Effect.promise(() => provider.close())
  )

const insert = Effect.fnUntraced(function* (
  provider: AccountProvider,
  connection: "oauth2" | "api_key",
  fields: object
) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.providerAccount, Date.now())
  const owner = { id, team_id }
  const secrets = yield* Secrets
  const sealed = yield* sealedColumn(secrets, "provider_accounts", "credentials").seal(owner, fields as {})
  yield* sql`insert into provider_accounts (id, team_id, provider_key, name, connection, base_url, credentials, created_at, updated_at)
    values (${id}, ${team_id}, 'test_provider', 'ada', ${connection}, ${provider.api}, ${sealed}, now(), now())`
  return id
})

/** An account that somebody has consented to, and a call of it. */
const consented = Effect.fnUntraced(function* (provider: AccountProvider) {
  const fields = { ...client }
  const id = yield* insert(provider, "oauth2", fields)
  const credential = accountCredential(
    { id, team_id },
    provider.row().account!,
    { base_url: provider.api, fields },
    (origin) => origin
  )!
  const asked = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: redirectUri,
    response_type: "code",
    scope: "openid offline_access events:write",
    prompt: "consent",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256"
  })
  const back = yield* Effect.promise(() =>
    provider.oauth.consent(`${provider.oauth.authorizationUrl}?${asked.toString()}`, "ada")
  )
  const ask = { kind: "code", code: back.searchParams.get("code")!, verifier, redirectUri } as const
  const answer = yield* askForTokens(yield* Egress, credential, ask, () => true)
  const held = obtained(heldFor(credential, null), ask, answer, Date.now())
  const sql = yield* SqlClient.SqlClient
  const sealed = yield* sealedColumn(yield* Secrets, "provider_accounts", "held").seal({ id, team_id }, held)
  yield* sql`update provider_accounts set held = ${sealed} where id = ${id}`
  provider.oauth.calls.length = 0
  return id
})

const get = (provider: AccountProvider, change: Partial<ProviderRequest> = {}): ProviderRequest => ({
  method: "GET",
  url: `${provider.api}/items`,
  authorized: true,
  ...change
})

const callsOf = (provider: AccountProvider, account_id: string | null) =>
  Effect.map(ProviderCalls, ({ of }) => of({ team_id, provider: provider.row(), account_id }))

const rowOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ failed_at: Date | null; last_error: string | null; row: string }>`
    select failed_at, last_error, row_to_json(a)::text as row from provider_accounts a where id = ${id}`
  return row!
})

/** A provider source that uses the account. */
const sourceOf = Effect.fnUntraced(function* (account: string) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.source, Date.now())
  yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
    values (${id}, ${team_id}, ${id}, 'PROVIDER', ${JSON.stringify({ provider: { provider_account_id: account } })}::text::jsonb, now(), now())`
  yield* sql`insert into channels (source_id, team_id, created_at, updated_at) values (${id}, ${team_id}, now(), now())`
  const isDue = Effect.map(
    sql<{ due: boolean }>`
      with before as (select due_at is not null as due from channels where source_id = ${id}),
      reset as (update channels set due_at = null where source_id = ${id})
      select due from before`,
    ([row]) => row!.due
  )
  return { id, isDue }
})

layer(world)("Calls to providers", (it) => {
  it.effect("A call carries the account's key, and the provider's answer comes back whole", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const call = yield* callsOf(provider, yield* insert(provider, "api_key", { token: AccountProvider.key }))
      const answer = yield* call(get(provider))
      expect(answer.status).toBe(200)
      expect(Buffer.from(answer.body).toString()).toContain('"id":90071992547409931,')
      expect(provider.calls[0]!.headers).toMatchObject({
        authorization: `Bearer ${AccountProvider.key}`,
        "gateway-loop": expect.stringMatching(/^tidegate;r=req_/)
      })
      const cut = yield* call(get(provider, { maxAnswerBytes: 5 }))
      expect([Buffer.from(cut.body).toString(), cut.truncated]).toEqual(['{"id"', true])
    })
  )

  it.effect("Credentials are sent to the account's origin only, and to no place that it redirects to", () =>
    Effect.gen(function* () {
      const [provider, other] = [yield* provided(), yield* provided()]
      const call = yield* callsOf(provider, yield* insert(provider, "api_key", { token: AccountProvider.key }))
      const refusal = yield* Effect.flip(call(get(other)))
      expect(refusal).toMatchObject({ code: "ACCOUNT_ORIGIN_REFUSED", permanent: true })
      expect(other.calls).toEqual([])
      provider.instead = (_, response) => void response.writeHead(302, { location: `${other.api}/items` }).end()
      expect((yield* call(get(provider))).status).toBe(302)
      expect(other.calls).toEqual([])
    })
  )

  it.effect("A request without credentials follows three redirects, and another origin gets no other headers", () =>
    Effect.gen(function* () {
      const [provider, other] = [yield* provided(), yield* provided()]
      const call = yield* callsOf(provider, null)
      provider.instead = (request, response) => {
        const step = Number(request.url!.slice(1))
        const location = step === 2 ? `${other.api}/3` : `/${step + 1}`
        response.writeHead(302, { location }).end()
      }
      other.instead = (_, response) => void response.writeHead(200).end("found")
      const headers = { "if-none-match": '"1"', "x-own": "secret" }
      const request = get(provider, { url: `${provider.api}/0`, authorized: false, headers })
      const answer = yield* call(request)
      expect(Buffer.from(answer.body).toString()).toBe("found")
      expect(provider.calls.map(({ path }) => path)).toEqual(["/0", "/1", "/2"])
      expect(other.calls[0]!.headers).toMatchObject({ "if-none-match": '"1"' })
      expect(other.calls[0]!.headers["x-own"]).toBeUndefined()
      other.instead = (_, response) => void response.writeHead(302, { location: "/again" }).end()
      expect((yield* call(request)).status).toBe(302)
    })
  )

  it.effect("A redirect to an address that the guard refuses is not followed", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      provider.instead = (_, response) => void response.writeHead(302, { location: "http://10.0.0.1/" }).end()
      const call = yield* callsOf(provider, null)
      expect(yield* Effect.flip(call(get(provider, { authorized: false })))).toMatchObject({
        code: "PROVIDER_REFUSED",
        permanent: true
      })
    })
  )

  it.effect("A refused key is noted with the account and wakes its channels, and an accepted one takes that back", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const account = yield* insert(provider, "api_key", { token: "a-wrong-key-of-the-test" })
      const source = yield* sourceOf(account)
      const call = yield* callsOf(provider, account)
      const answer = yield* call(get(provider))
      expect(answer.status).toBe(401)
      expect(Buffer.from(answer.body).toString()).not.toContain("a-wrong-key-of-the-test")
      expect(yield* rowOf(account)).toMatchObject({ last_error: "the provider refuses the credentials: HTTP 401" })
      expect(yield* source.isDue).toBe(true)
      yield* call(get(provider))
      expect(yield* source.isDue).toBe(false)
      provider.instead = (_, response) => void response.writeHead(200).end("{}")
      yield* call(get(provider))
      expect(yield* rowOf(account)).toMatchObject({ failed_at: null, last_error: null })
      expect(yield* source.isDue).toBe(true)
    })
  )

  it.effect("A token that the provider refuses is renewed once, and the new one is stored", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const account = yield* consented(provider)
      const call = yield* callsOf(provider, account)
      expect((yield* call(get(provider))).status).toBe(200)
      yield* Effect.promise(() => provider.oauth.forget(provider.oauth.given.at(-1)!.access_token))
      expect((yield* call(get(provider))).status).toBe(200)
      expect(provider.oauth.calls.map(({ form }) => form["grant_type"])).toEqual(["refresh_token"])
      const { failed_at, row } = yield* rowOf(account)
      expect(failed_at).toBeNull()
      const { access_token, refresh_token } = provider.oauth.given.at(-1)!
      for (const secret of [access_token, refresh_token!, client.client_secret]) expect(row).not.toContain(secret)
    })
  )

  it.effect("An account with a client's secret gets its tokens itself, and renews one that the provider refuses", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const { client_id, client_secret } = clientOf("client_secret_post")
      const account = yield* insert(provider, "api_key", { client_id, client_secret })
      const { issuer } = provider.oauth
      const row = provider.row()
      const appTokens = { tokenUrl: `${issuer}/token`, revocationUrl: null }
      const { of } = yield* ProviderCalls
      const call = of({ team_id, provider: { ...row, account: { ...row.account!, appTokens } }, account_id: account })
      expect((yield* call(get(provider))).status).toBe(200)
      expect((yield* call(get(provider))).status).toBe(200)
      expect(provider.oauth.calls.map(({ form }) => form["grant_type"])).toEqual(["client_credentials"])
      yield* Effect.promise(() => provider.oauth.forget(provider.oauth.given.at(-1)!.access_token))
      expect((yield* call(get(provider))).status).toBe(200)
      expect(provider.oauth.calls.length).toBe(2)
      const stored = (yield* rowOf(account)).row
      for (const secret of [provider.oauth.given.at(-1)!.access_token, client_secret])
        expect(stored).not.toContain(secret)
    })
  )

  it.effect("Two processes that need a new token at the same time ask the provider once", () =>
    TestClock.withLive(
      Effect.gen(function* () {
        const provider = yield* provided({ life: 1 })
        const account = yield* consented(provider)
        const owner = { team_id, provider: provider.row(), account_id: account }
        const processes = yield* Effect.all([
          Layer.build(Layer.fresh(ProviderCalls.layer)),
          Layer.build(Layer.fresh(ProviderCalls.layer))
        ])
        const sql = yield* SqlClient.SqlClient
        const { held } = (yield* sql<{ held: string }>`select held from provider_accounts where id = ${account}`)[0]!
        const before = yield* sealedColumn(yield* Secrets, "provider_accounts", "held").open(
          { id: account, team_id },
          held
        )
        const access = { ...(before["access"] as object), obtained_at: 0, expires_at: 1 }
        const sealed = yield* sealedColumn(yield* Secrets, "provider_accounts", "held").seal(
          { id: account, team_id },
          Object.assign({}, before, { access })
        )
        yield* sql`update provider_accounts set held = ${sealed} where id = ${account}`
        const answers = yield* Effect.all(
          processes.map((services) =>
            Effect.flatMap(ProviderCalls, ({ of }) => of(owner)(get(provider))).pipe(Effect.provideContext(services))
          ),
          { concurrency: 2 }
        )
        expect(answers.map(({ status }) => status)).toEqual([200, 200])
        expect(provider.oauth.calls.map(({ form }) => form["grant_type"])).toEqual(["refresh_token"])
      })
    )
  )

  it.effect("A refused refresh token is noted with the account, and the provider is not asked again at once", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const account = yield* consented(provider)
      const call = yield* callsOf(provider, account)
      yield* Effect.promise(() => provider.oauth.forget(provider.oauth.given.at(-1)!.access_token))
      provider.oauth.instead = (_, response) =>
        void response.writeHead(400, { "content-type": "application/json" }).end('{"error":"invalid_grant"}')
      for (let i = 0; i < 3; i++) {
        expect(yield* Effect.flip(call(get(provider)))).toMatchObject({ code: "ACCOUNT_UNAUTHORIZED", permanent: true })
      }
      expect(provider.oauth.calls.length).toBe(1)
      expect((yield* rowOf(account)).last_error).toContain("invalid_grant")
    })
  )

  it.effect("Nothing is sent for an account that is revoked, of another team, or of another provider", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const sql = yield* SqlClient.SqlClient
      const account = yield* insert(provider, "api_key", { token: AccountProvider.key })
      const { of } = yield* ProviderCalls
      const owner = { team_id, provider: provider.row(), account_id: account }
      for (const changed of [{ team_id: ControlPlane.otherTeam }, { provider: { ...provider.row(), key: "other" } }]) {
        expect((yield* Effect.flip(of({ ...owner, ...changed })(get(provider)))).code).toBe("ACCOUNT_UNAUTHORIZED")
      }
      yield* sql`update provider_accounts set disabled_at = now() where id = ${account}`
      expect((yield* Effect.flip(of(owner)(get(provider)))).code).toBe("ACCOUNT_UNAUTHORIZED")
      expect(provider.calls).toEqual([])
      expect((yield* of({ ...owner, isEnding: true })(get(provider))).status).toBe(200)
    })
  )
})

layer(world)("Action with a provider account", (it) => {
  const request_id = "req_11111111111111111111111111"
  const keys = ["a key of the test"] as const
  const loops = makeLoops(keys, loopLimits)
  const mark = writeChain(keys, { root: "req_00000000000000000000000000", hops: 1, others: [] })

  /** Makes the call of an action with this account. */
  const carried = Effect.fnUntraced(function* (provider: AccountProvider, account_id: string) {
    const name = { provider_key: "git_host", action_key: "create_issue", version: "1.0.0" }
    const inputs = { repository: "acme/a%b", title: "Order 1" }
    const call = Result.getOrThrow(
      callOf(name, inputs, { mode: "account", values: { provider_account_id: account_id } })
    )
    const heard: Array<unknown> = []
    const of = {
      run: { id: "wfr_1", team_id, request_id, headers: JSON.stringify({ [loopHeader]: mark }) },
      effect: { context: { workflow: { id: "wfl_1" } }, step: { step: { id: "call" } } },
      key: "wse_1",
      heard: (_: unknown, verdict: unknown) => Effect.sync(() => void heard.push(verdict))
    } as never
    const known = [{ ...provider.row(), key: "git_host" }]
    const carry = yield* makeAccountCall.pipe(
      Effect.provideService(KnownProviders, known),
      Effect.provideService(Loops, loops)
    )
    return { heard, outcome: yield* Effect.result(carry(call as AccountCall, of)) }
  })

  const account = Effect.fnUntraced(function* (provider: AccountProvider, token: string) {
    const sql = yield* SqlClient.SqlClient
    const id = yield* insert(provider, "api_key", { token })
    yield* sql`update provider_accounts set provider_key = 'git_host' where id = ${id}`
    return id
  })

  it.effect("An action calls its provider with the account's credentials and the step's idempotency key", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const { heard, outcome } = yield* carried(provider, yield* account(provider, AccountProvider.key))
      expect(Result.getOrThrow(outcome)).toMatchObject({ data: { login: "ada" } })
      expect(heard).toEqual(["successful"])
      expect(provider.calls).toMatchObject([
        {
          method: "POST",
          path: "/repos/acme/a%25b/issues",
          headers: {
            authorization: `Bearer ${AccountProvider.key}`,
            "idempotency-key": "wse_1",
            "x-gateway-run-id": "wfr_1",
            // The chain of the run's request goes on, so that its depth stays limited.
            [loopHeader]: expect.stringContaining("r=req_00000000000000000000000000;n=3;")
          }
        }
      ])
    })
  )

  it.effect("A step of a revoked or refused account fails for good, and says what to do", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      const sql = yield* SqlClient.SqlClient
      const refused = yield* carried(provider, yield* account(provider, "a-wrong-key-of-the-test"))
      const revoked = yield* account(provider, AccountProvider.key)
      yield* sql`update provider_accounts set disabled_at = now(), revoked_at = now() where id = ${revoked}`
      for (const { outcome } of [refused, yield* carried(provider, revoked)]) {
        expect(Result.isFailure(outcome) && outcome.failure).toMatchObject({
          code: "PROVIDER_ACCOUNT_NOT_CONNECTED",
          message: expect.stringContaining("connect it again"),
          final: true
        })
      }
      expect(provider.calls.length).toBe(1)
    })
  )

  it.effect("A step whose provider is overloaded waits as long as it says", () =>
    Effect.gen(function* () {
      const provider = yield* provided()
      provider.instead = (_, response) => void response.writeHead(503, { "retry-after": "7" }).end()
      const { outcome } = yield* carried(provider, yield* account(provider, AccountProvider.key))
      expect(Result.isFailure(outcome) && outcome.failure).toMatchObject({
        code: "BAD_RESPONSE",
        retry_after_ms: 7_000
      })
    })
  )
})
