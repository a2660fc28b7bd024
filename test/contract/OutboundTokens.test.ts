import { expect } from "vitest"
import { it as base } from "../support/it.ts"
import type { DestinationConfig } from "../support/Contract.ts"
import type { Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import type { Target } from "../support/Target.ts"
import { accountFile, clientOf, TokenProvider } from "../support/TokenProvider.ts"

/** Deliveries that carry a token, which the gateway obtains from a real provider. */

/** The address of a gateway that has no public URL configured. */
/** What the page at `url` sends when somebody says yes there, by its own address or another one. */
const yesOf = async (url: URL): Promise<URL> => {
  const text = await (await fetch(url)).text()
  const [, action = ""] = /<form method="post" action="([^"]+)">/.exec(text) ?? []
  expect(action, text).not.toBe("")
  return new URL(action.replaceAll("&#38;", "&"), url)
}
const agreed = async (url: URL, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(await yesOf(url), { method: "POST", headers })

const callbackOf = ({ origin }: Gateway): string => `${origin.replace("127.0.0.1", "localhost")}/v1/oauth/callback`

const it = base.extend("provider", { scope: "file" }, async ({ gateway }, { onCleanup }) => {
  const provider = await TokenProvider.start({ redirectUris: [callbackOf(gateway)] })
  onCleanup(() => provider.close())
  return provider
})

const basic = clientOf("client_secret_basic")

/** A source and a destination of its own, that authenticates like this. */
const routed = async (gateway: Gateway, target: Target, auth_type: string, auth: object, rules = retried) => {
  const source = await gateway.source()
  const config = { url: target.origin, auth_type, auth } as DestinationConfig
  const destination = await gateway.destination(config)
  await gateway.connection(source, destination, rules)
  const post = async (): Promise<string> => {
    const answer = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: "{}" })
    return ((await answer.json()) as { readonly request_id: string }).request_id
  }
  const ended = (requestId: string) =>
    gateway.eventually("the end of an attempt", async () => {
      const { attempts } = await gateway.traced(requestId)
      return attempts.at(-1) ?? null
    })
  return { destination, post, ended }
}
const retried = [{ type: "retry", strategy: "linear", interval: 3_600_000, count: 3 }] as const

const bearers = (target: Target): ReadonlyArray<string> =>
  target.received.map(({ headers }) => String(headers["authorization"]).replace(/^Bearer /, ""))

/** The target of a test, and what is in it is nobody else's. */
const fresh = (provider: TokenProvider, target: Target): void => {
  target.reset()
  provider.calls.length = 0
  provider.given.length = 0
  provider.instead = null
}

const secretsOf = (provider: TokenProvider): ReadonlyArray<string> => [
  basic.client_secret,
  ...provider.given.flatMap(({ access_token, refresh_token }) => [access_token, refresh_token ?? access_token])
]

it.for(["client_secret_basic", "client_secret_post"] as const)(
  "OAUTH2_CLIENT_CREDENTIALS by %s uses one hidden token for a hundred deliveries at once",
  async (method, { gateway, provider, target }) => {
    fresh(provider, target)
    const auth = { token_url: provider.tokenUrl, ...clientOf(method), scope: "events:write" }
    const { destination, ended, post } = await routed(gateway, target, "OAUTH2_CLIENT_CREDENTIALS", auth)
    const requests = await Promise.all(Array.from({ length: 100 }, post))
    await target.next(100)
    expect(provider.calls.length).toBe(1)
    expect(new Set(bearers(target))).toEqual(new Set([provider.given[0]!.access_token]))
    expect(await provider.knows(provider.given[0]!.access_token)).toBe(true)
    const answers = JSON.stringify([
      await Promise.all(requests.map(ended)),
      await gateway.call("GET", `/destinations/${destination.id}`)
    ])
    const rows = await gateway.sql("select row_to_json(t)::text as row from destination_tokens t")
    const all = answers + JSON.stringify(rows) + (await gateway.logged())
    for (const secret of [...secretsOf(provider), clientOf(method).client_secret]) expect(all).not.toContain(secret)
  }
)

it("SERVICE_ACCOUNT proves its identity with a signed assertion", async ({ gateway, provider, target }) => {
  fresh(provider, target)
  const auth = { service_account_key: JSON.stringify(accountFile(provider.tokenUrl)), scope: "events:write" }
  const { destination, post } = await routed(gateway, target, "SERVICE_ACCOUNT", auth)
  await post()
  await target.next()
  expect(bearers(target)).toEqual([provider.given[0]!.access_token])
  expect(provider.given[0]!.scope).toBe("events:write")
  expect(destination.config.auth).toMatchObject({ client_email: "gateway@project.example" })
  expect(JSON.stringify(destination)).not.toContain("PRIVATE KEY")
})

it("OAUTH2_AUTHORIZATION_CODE stores each new refresh token, and OAUTH_REFRESH_TOKEN continues with one", async ({
  gateway,
  provider,
  target
}) => {
  fresh(provider, target)
  const auth = {
    token_url: provider.tokenUrl,
    authorization_url: `${provider.authorizationUrl}?prompt=consent`,
    ...basic,
    scope: "openid offline_access events:write"
  }
  const { destination, ended, post } = await routed(gateway, target, "OAUTH2_AUTHORIZATION_CODE", auth)
  const before = await ended(await post())
  expect(before).toMatchObject({ error_code: "OAUTH2_HANDSHAKE_FAILED", response_status: null })
  expect(target.received.length + provider.calls.length).toBe(0)

  const start = () => gateway.call("POST", `/destinations/${destination.id}/oauth/start`)
  const started = await start()
  expect(started).toMatchObject({ status: 200, body: { redirect_uri: callbackOf(gateway) } })
  const back = await provider.consent(started.body.authorization_url, "ada")
  expect(back.searchParams.get("state")).toMatch(new RegExp(`^${destination.id}\\.[\\w-]{43}$`))

  // A second beginning takes the place of the first.
  const again = await provider.consent((await start()).body.authorization_url, "ada")
  expect((await fetch(back)).status).toBe(400)
  // Whoever knows the destination and not the state has nothing.
  const guessed = new URL(again)
  guessed.searchParams.set("state", `${destination.id}.${"A".repeat(43)}`)
  const refused = await fetch(guessed)
  expect([refused.status, await refused.json()]).toMatchObject([400, { code: "OAUTH2_STATE_INVALID" }])
  const answer = await agreed(again)
  expect([answer.status, await answer.json()]).toEqual([
    200,
    { authorized: true, destination_id: destination.id, renewable: true }
  ])
  expect(provider.calls.at(-1)!.form["code_verifier"]).toMatch(/^[\w-]{43}$/)
  // The state is good for once: the same call again returns the same result and asks the provider nothing; another code is nothing.
  const calls = provider.calls.length
  const repeated = await agreed(again)
  expect([repeated.status, await repeated.json()]).toMatchObject([200, { authorized: true, renewable: true }])
  const other = new URL(again)
  other.searchParams.set("code", "another")
  expect((await agreed(other)).status).toBe(400)
  expect(provider.calls).toHaveLength(calls)

  await post()
  await target.next()
  expect(bearers(target)).toEqual([provider.given[0]!.access_token])

  // A token that is revoked is renewed within the attempt, by the refresh token.
  target.reply = async (response, { headers }) => {
    const isKnown = await provider.knows(String(headers["authorization"]).replace(/^Bearer /, ""))
    response.writeHead(isKnown ? 200 : 401).end()
  }
  for (let round = 1; round <= 3; round++) {
    await provider.forget(provider.given.at(-1)!.access_token)
    // What was obtained lately is not renewed at once; the process forgets when, as it goes.
    await gateway.restart("SIGKILL")
    const attempt = await ended(await post())
    expect(attempt).toMatchObject({ response_status: 200, error_code: null, attempt_number: 1 })
    expect(provider.given.length).toBe(1 + round)
  }
  const refreshed = provider.calls.filter(({ form }) => form["grant_type"] === "refresh_token")
  expect(new Set(refreshed.map(({ form }) => form["refresh_token"])).size).toBe(3)

  fresh(provider, target)
  const consent = await provider.consent((await start()).body.authorization_url, "ada")
  await agreed(consent)
  const { refresh_token } = provider.given.at(-1)!
  const own = await routed(gateway, target, "OAUTH_REFRESH_TOKEN", {
    token_url: provider.tokenUrl,
    ...basic,
    refresh_token
  })
  await own.post()
  await target.next()
  expect(bearers(target)).toEqual([provider.given.at(-1)!.access_token])

  const all = (await gateway.logged()) + JSON.stringify(await gateway.call("GET", `/destinations/${destination.id}`))
  for (const secret of secretsOf(provider)) expect(all).not.toContain(secret)
})

it("The consent page shows the destination, and nothing happens before the user confirms", async ({
  gateway,
  provider,
  target
}) => {
  fresh(provider, target)
  const auth = {
    token_url: provider.tokenUrl,
    authorization_url: `${provider.authorizationUrl}?prompt=consent`,
    ...basic,
    scope: "openid offline_access events:write"
  }
  const { destination } = await routed(gateway, target, "OAUTH2_AUTHORIZATION_CODE", auth)
  const name = '<b>"orders" & co</b>'
  await gateway.api("PATCH", `/destinations/${destination.id}`, { name: `${name} ${destination.id}` })
  const start = async () => {
    const { body } = await gateway.call("POST", `/destinations/${destination.id}/oauth/start`)
    return provider.consent(body.authorization_url, "ada")
  }
  const open = async (url: URL) => {
    const answer = await fetch(url, { headers: { accept: "text/html,*/*;q=0.8" } })
    return { answer, text: await answer.text() }
  }
  const back = await start()
  // A link that says yes for them would have to know the code.
  back.searchParams.set("confirmed", "yes")
  const { answer, text } = await open(back)
  expect([answer.status, provider.calls.length]).toEqual([200, 0])
  expect(answer.headers.get("content-type")).toContain("text/html")
  const policy = answer.headers.get("content-security-policy")!
  for (const part of ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'"])
    expect(policy).toContain(part)
  expect(policy).not.toMatch(/script-src|unsafe/)
  expect(answer.headers.get("referrer-policy")).toBe("no-referrer")
  expect(text).toContain("&#60;b&#62;&#34;orders&#34; &#38; co&#60;/b&#62;")
  expect(text).not.toMatch(/<script|<b>/)
  for (const shown of [destination.id, gateway.team, destination.type]) expect(text).toContain(shown)

  const done = await agreed(back, { accept: "text/html" })
  expect([done.status, provider.calls.length]).toEqual([200, 1])
  expect(await done.text()).toContain(destination.id)

  // What goes wrong is a page, too.
  const gone = await open(back)
  const refused = await start()
  refused.searchParams.delete("code")
  refused.searchParams.set("error", "access_denied")
  const denied = await open(refused)
  expect([gone.answer.status, denied.answer.status]).toEqual([200, 502])
  expect(denied.text).toContain("access_denied")
  expect(denied.answer.headers.get("content-security-policy")).toBe(policy)
})

it("A consent cannot be completed by a request that another page makes a browser send", async ({
  gateway,
  provider,
  target
}) => {
  fresh(provider, target)
  const auth = {
    token_url: provider.tokenUrl,
    authorization_url: `${provider.authorizationUrl}?prompt=consent`,
    ...basic
  }
  const { destination } = await routed(gateway, target, "OAUTH2_AUTHORIZATION_CODE", {
    ...auth,
    scope: "openid offline_access events:write"
  })
  const start = async () => {
    const { body } = await gateway.call("POST", `/destinations/${destination.id}/oauth/start`)
    return provider.consent(body.authorization_url, "ada")
  }
  const first = await yesOf(await start())
  const back = await start()
  const yes = await yesOf(back)
  const tampered = (change: (url: URL) => void): URL => {
    const url = new URL(yes)
    change(url)
    return url
  }
  const confirmed = yes.searchParams.get("confirmed")!
  const late = `${Number(confirmed.slice(0, 13)) + 60_000}${confirmed.slice(13)}`
  const tries: ReadonlyArray<readonly [what: string, url: URL, init: RequestInit]> = [
    ["an image", back, { headers: { accept: "image/avif,image/webp,*/*" } }],
    ["a program", back, { headers: { accept: "application/json" } }],
    ["a prefetch", back, { headers: { "sec-purpose": "prefetch" } }],
    ["a link that says yes", yes, {}],
    ["a form of a provider, that it sends by itself", back, { method: "POST" }],
    ["a form of another page", yes, { method: "POST", headers: { "sec-fetch-site": "cross-site" } }],
    [
      "the yes of another consent",
      tampered((url) => url.searchParams.set("confirmed", first.searchParams.get("confirmed")!)),
      { method: "POST" }
    ],
    ["a yes for longer", tampered((url) => url.searchParams.set("confirmed", late)), { method: "POST" }],
    ["a yes to another code", tampered((url) => url.searchParams.set("code", "another")), { method: "POST" }]
  ]
  for (const [what, url, init] of tries) {
    const answer = await fetch(url, init)
    expect([what, answer.status, provider.calls.length]).toEqual([what, 200, 0])
    expect(answer.headers.get("content-type")).toContain("text/html")
    expect(await answer.text()).toContain("Do you consent?")
  }
  const answer = await fetch(yes, { method: "POST", headers: { "sec-fetch-site": "same-origin" } })
  expect([answer.status, provider.calls.length]).toEqual([200, 1])
})

it("A refused or pointless consent is answered with an error", async ({ gateway, provider, target }) => {
  fresh(provider, target)
  const client = { token_url: provider.tokenUrl, ...basic }
  const none = await routed(gateway, target, "OAUTH2_CLIENT_CREDENTIALS", client)
  const without = await gateway.call("POST", `/destinations/${none.destination.id}/oauth/start`)
  expect(without).toMatchObject({ status: 400, body: { code: "VALIDATION_ERROR" } })
  expect((await gateway.call("POST", "/destinations/des_none/oauth/start")).status).toBe(404)
  const auth = { ...client, authorization_url: provider.authorizationUrl }
  const { destination } = await routed(gateway, target, "OAUTH2_AUTHORIZATION_CODE", auth)
  const start = async () => {
    const { body } = await gateway.call("POST", `/destinations/${destination.id}/oauth/start`)
    return new URL(body.authorization_url).searchParams.get("state")!
  }
  const callback = async (query: Record<string, string>) => {
    const url = new URL(`${gateway.origin}/oauth/callback?${new URLSearchParams(query).toString()}`)
    const answer = await fetch(url)
    return [answer.status, ((await answer.json()) as { readonly message: string }).message]
  }
  expect(await callback({ state: await start(), error: "access_denied", error_description: "<b>" })).toEqual([
    502,
    "the provider was not consented to: access_denied"
  ])
  const garbage = new URLSearchParams({ state: await start(), code: "g4rbage" })
  const answer = await agreed(new URL(`${gateway.origin}/oauth/callback?${garbage.toString()}`))
  expect([answer.status, await answer.json()]).toMatchObject([
    502,
    { message: "the token endpoint gives no token: HTTP 400 (invalid_grant): grant request is invalid" }
  ])
  // Begun with settings that have changed since.
  const state = await start()
  await gateway.call("PATCH", `/destinations/${destination.id}`, {
    config: { auth: { ...auth, client_secret: "an0ther-secret" } }
  })
  const changed = new URL(`${gateway.origin}/oauth/callback?${new URLSearchParams({ state, code: "c" }).toString()}`)
  expect((await agreed(changed)).status).toBe(400)
  expect((await callback({}))[0]).toBe(400)
})

it("A target that refuses every token is called twice, and its answer is recorded", async ({
  gateway,
  provider,
  target
}) => {
  fresh(provider, target)
  target.reply = (response) => void response.writeHead(401).end("who are you?")
  const auth = { token_url: provider.tokenUrl, ...basic }
  const { ended, post } = await routed(gateway, target, "OAUTH2_CLIENT_CREDENTIALS", auth)
  const first = await ended(await post())
  expect(first).toMatchObject({ response_status: 401, error_code: "BAD_RESPONSE" })
  expect(target.received.length).toBe(2)
  expect(new Set(bearers(target)).size).toBe(2)
  for (let i = 0; i < 5; i++) await ended(await post())
  expect(provider.calls.length).toBe(2)
})

it("A call of several events is repeated once with another token when the target refuses its token", async ({
  gateway,
  provider,
  target
}) => {
  fresh(provider, target)
  const known = new Set<string>()
  target.reply = (response, { headers }) => {
    const token = String(headers["authorization"])
    const isKnown = known.size > 0 && !known.has(token)
    known.add(token)
    response.writeHead(isKnown ? 201 : 401).end()
  }
  const source = await gateway.source()
  const destination = await gateway.api("POST", "/destinations", {
    name: gateway.name("queue"),
    type: "AZURE_SERVICE_BUS",
    config: {
      endpoint: target.origin,
      entity: "orders",
      batch: { max_count: 2, max_wait_ms: 5_000 },
      auth_type: "OAUTH2_CLIENT_CREDENTIALS",
      auth: { token_url: provider.tokenUrl, ...basic, scope: "events:write" }
    }
  })
  await gateway.connection(source, destination, retried)
  const post = async () => JSON.parse((await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })).body)
  for (const { request_id } of await Promise.all([post(), post()])) {
    const attempts = await gateway.eventually("the end of an attempt", async () => {
      const { attempts } = await gateway.traced(request_id)
      return attempts.length === 0 ? null : attempts
    })
    expect(attempts).toMatchObject([{ response_status: 201, attempt_number: 1 }])
  }
  const sent = target.received.map(({ body }) => (JSON.parse(body.toString()) as ReadonlyArray<unknown>).length)
  expect(sent).toEqual([2, 2])
  expect(new Set(bearers(target)).size).toBe(2)
  expect(provider.calls.length).toBe(2)
})

it("A failed token provider fails the attempts, which are retried when it may be asked again", async ({
  gateway,
  provider,
  target
}) => {
  fresh(provider, target)
  provider.instead = (_, response) => void response.writeHead(503, { "retry-after": "1800" }).end()
  const auth = { token_url: provider.tokenUrl, ...basic }
  const rules = [{ type: "retry", strategy: "linear", interval: 1_000, count: 3 }] as const
  const { destination, ended, post } = await routed(gateway, target, "OAUTH2_CLIENT_CREDENTIALS", auth, rules as never)
  const requests = await Promise.all(Array.from({ length: 50 }, post))
  for (const attempt of await Promise.all(requests.map(ended))) {
    expect(attempt).toMatchObject({ error_code: "OAUTH2_HANDSHAKE_FAILED", response_status: null })
  }
  expect([provider.calls.length, target.received.length]).toEqual([1, 0])
  const [event] = (await gateway.traced(requests[0]!)).events
  const wait = Date.parse(String(event!.next_attempt_at)) - Date.parse(String(event!.last_attempt_at))
  expect(wait).toBeGreaterThan(1_700_000)
  // Other settings are another question.
  provider.instead = null
  await gateway.call("PATCH", `/destinations/${destination.id}`, {
    config: { auth: { ...auth, scope: "events:write" } }
  })
  await post()
  await target.next()
  expect(bearers(target)).toEqual([provider.given[0]!.access_token])
  // A wrong one is refused, and the provider not asked for each event.
  fresh(provider, target)
  await gateway.call("PATCH", `/destinations/${destination.id}`, {
    config: { auth: { ...auth, client_secret: "wr0ng-secret" } }
  })
  const attempt = await ended(await post())
  expect(attempt.error_code).toBe("OAUTH2_HANDSHAKE_FAILED")
  await ended(await post())
  expect(provider.calls.length).toBe(1)
})

it("Deliveries that wait for a token follow changed settings, and stop if the destination is disabled", async ({
  gateway,
  provider,
  target
}) => {
  fresh(provider, target)
  const auth = { token_url: provider.tokenUrl, ...basic }
  const { destination, ended, post } = await routed(gateway, target, "OAUTH2_CLIENT_CREDENTIALS", auth)
  const heldBack = () => {
    const asked = Promise.withResolvers<() => void>()
    provider.instead = (_, response) =>
      asked.resolve(
        () => void response.writeHead(200, { "content-type": "application/json" }).end('{"access_token":"t0ken"}')
      )
    return asked.promise
  }
  let asked = heldBack()
  const first = await post()
  let answer = await asked
  await gateway.call("PATCH", `/destinations/${destination.id}`, { config: { url: `${target.origin}/new` } })
  answer()
  await target.next()
  expect(target.received.map(({ url }) => url)).toEqual(["/new"])
  expect(await ended(first)).toMatchObject({ attempt_number: 1, response_status: 200 })

  await gateway.call("PATCH", `/destinations/${destination.id}`, {
    config: { auth: { ...auth, scope: "events:write" } }
  })
  asked = heldBack()
  const second = await post()
  answer = await asked
  await gateway.call("PUT", `/destinations/${destination.id}/disable`)
  answer()
  await gateway.eventually("the end of an event", async () => {
    const [event] = (await gateway.traced(second)).events
    return event?.status === "CANCELLED" ? event : null
  })
  await gateway.call("PUT", `/destinations/${destination.id}/enable`)
  await ended(await post())
  expect(target.received.length).toBe(2)
  expect((await gateway.traced(second)).attempts).toEqual([])
})
