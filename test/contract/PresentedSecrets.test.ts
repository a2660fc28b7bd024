import { describe, expect } from "vitest"
import type { Rules, Source, SourceConfig } from "../support/Contract.ts"
import type { Body } from "../support/Gateway.ts"
import { type Answer, request } from "../support/RawHttp.ts"
import { dumpOf, Planted } from "../support/Planted.ts"
import type { Received } from "../support/Target.ts"
import { ownIt as gatewayIt } from "../support/it.ts"

/**
 * What a sender presents is its credential: the target gets it as it came, and nobody else: no row, no answer, no log. See
 * the contract's additions, "Presented secrets".
 */

const it = gatewayIt
  .extend(
    "send",
    ({ gateway }) =>
      (source: Source, { body = "{}", suffix = "", ...parts }: Sent): Promise<Answer> =>
        request(gateway.port, { ...parts, body, path: `/e/${source.id}${suffix}` })
  )
  /** Sends what has to be accepted; the request's id. */
  .extend("accepted", ({ send }) => async (source: Source, sent: Sent): Promise<string> => {
    const answer = await send(source, sent)
    expect(answer.status).toBe(200)
    return JSON.parse(answer.body).request_id
  })
  /** The stored request of a source that was stored last. */
  .extend(
    "latest",
    ({ gateway }) =>
      async (source: Source): Promise<Body> =>
        (await gateway.requests(source.id)).at(-1)
  )
  /** Everything that the API has to say about a request, as one text. */
  .extend("everythingAbout", ({ gateway }) => async (source: Source, requestId: string): Promise<string> => {
    const list = `source_id=${source.id}&include=data`
    const texts: Array<unknown> = [
      await gateway.api("GET", `/requests/${requestId}`),
      await gateway.api("GET", `/requests/${requestId}/trace`),
      await gateway.api("GET", `/requests?${list}`),
      await gateway.api("GET", `/requests/${requestId}/events`),
      await gateway.api("GET", `/requests/${requestId}/ignored_events`),
      await gateway.api("GET", `/sources/${source.id}`)
    ]
    for (const { id } of (await gateway.api("GET", `/connections?source_id=${source.id}`)).models) {
      texts.push(await gateway.api("GET", `/connections/${id}/latest-input`))
    }
    for (const { id } of (await gateway.api("GET", `/events?${list}`)).models) {
      texts.push(await gateway.api("GET", `/events/${id}`))
      for (const attempt of (await gateway.api("GET", `/attempts?event_id=${id}`)).models) {
        texts.push(await gateway.api("GET", `/attempts/${attempt.id}`))
      }
    }
    texts.push(await gateway.api("GET", `/events?${list}`))
    for (const { id } of (await gateway.api("GET", "/transformations")).models) {
      texts.push(await gateway.api("GET", `/transformations/${id}/executions`))
      for (const { id: execution } of (await gateway.api("GET", `/transformations/${id}/executions`)).models)
        texts.push(await gateway.api("GET", `/transformations/${id}/executions/${execution}`))
    }
    return JSON.stringify(texts)
  })
  /** All rows of all tables as text. */
  .extend(
    "database",
    ({ gateway }) =>
      async (): Promise<string> =>
        [...(await dumpOf(gateway)).values()].join("\n")
  )
  /** An event that waits on a paused connection. */
  .extend("held", ({ accepted, gateway, target }) => async (rules: Rules = []) => {
    const source = await gateway.api("POST", "/sources", {
      name: gateway.name("source"),
      type: "GITLAB",
      config: { auth: { api_key: kept.right } }
    })
    const destination = await gateway.destination({ url: target.origin, forward_credentials: true })
    const connection = await gateway.connection(source, destination, rules)
    await gateway.api("PUT", `/connections/${connection.id}/pause`)
    const id = await accepted(source, keeping)
    const resume = () => gateway.api("PUT", `/connections/${connection.id}/unpause`)
    return { source, connection, id, resume }
  })

const mask = "[PRESENTED]"
const maskedParameter = "%5BPRESENTED%5D"

/** Every secret that any of these tests sends. At the end nothing of them may be anywhere. */
const planted = new Planted()
let plants = 0

/** A secret that nothing else is; the wrong one differs in its last letter. */
const plant = (kind: string): { readonly right: string; readonly wrong: string } => {
  const stem = `pl4nted-${kind}-${++plants}-s3cr3t-`
  planted.add(kind, `${stem}R`)
  planted.add(kind, `${stem}W`)
  return { right: `${stem}R`, wrong: `${stem}W` }
}

type Line = readonly [name: string, value: string]

interface Sent {
  readonly headers?: ReadonlyArray<Line>
  readonly suffix?: string
  readonly method?: string
  readonly body?: string
}

const basic = (user: string, password: string): string => {
  const encoded = Buffer.from(`${user}:${password}`).toString("base64")
  planted.add("basic", encoded)
  return `Basic ${encoded}`
}

/** One way to present a secret. */
interface Presenting {
  readonly name: string
  readonly type?: string
  readonly config: object
  readonly sent: (secret: string) => Sent
  readonly secret: { readonly right: string; readonly wrong: string }
  /** What is read in place of what was sent. */
  readonly read: { readonly headers?: object; readonly query?: string }
  /** A source that verifies nobody takes the wrong secret too. */
  readonly open?: boolean
}

const presenting = (one: Omit<Presenting, "secret">): Presenting => ({ ...one, secret: plant("way") })

const gitlab = plant("gitlab")
const password = plant("basic")
const apiKey = plant("header")
const queryKey = plant("query")
const telegram = plant("telegram")
const okta = plant("okta")
const ways: ReadonlyArray<Presenting> = [
  {
    name: "the token of GITLAB",
    type: "GITLAB",
    config: { auth: { api_key: gitlab.right } },
    secret: gitlab,
    sent: (secret) => ({ headers: [["X-Gitlab-Token", secret]] }),
    read: { headers: { "x-gitlab-token": mask } }
  },
  {
    name: "Basic credentials",
    config: { auth_type: "BASIC_AUTH", auth: { username: "sender", password: password.right } },
    secret: password,
    sent: (secret) => ({ headers: [["Authorization", basic("sender", secret)]] }),
    read: { headers: { authorization: mask } }
  },
  {
    name: "an API key in a header",
    config: { auth_type: "API_KEY", auth: { header_key: "X-Own-Key", api_key: apiKey.right } },
    secret: apiKey,
    sent: (secret) => ({ headers: [["x-OWN-key", secret]] }),
    read: { headers: { "x-own-key": mask } }
  },
  {
    name: "an API key in the query",
    config: { auth_type: "API_KEY", auth: { query_key: "key", api_key: queryKey.right } },
    secret: queryKey,
    sent: (secret) => ({ suffix: `/p?a=1&k%65y=${secret}&b=%2f` }),
    read: { query: `a=1&k%65y=${maskedParameter}&b=%2f` }
  },
  {
    name: "the secret token of TELEGRAM",
    type: "TELEGRAM",
    config: { auth: { api_key: telegram.right } },
    secret: telegram,
    sent: (secret) => ({ headers: [["X-Telegram-Bot-Api-Secret-Token", secret]] }),
    read: { headers: { "x-telegram-bot-api-secret-token": mask } }
  },
  {
    name: "the configured header of OKTA",
    type: "OKTA",
    config: { auth: { api_key: okta.right, header_key: "x-okta-hook" } },
    secret: okta,
    sent: (secret) => ({ headers: [["X-Okta-Hook", secret]] }),
    read: { headers: { "x-okta-hook": mask } }
  },
  presenting({
    name: "a bearer token and a cookie without verification",
    config: {},
    open: true,
    sent: (secret) => ({
      headers: [
        ["Authorization", `Bearer ${secret}`],
        ["Cookie", `session=${secret}`]
      ]
    }),
    read: { headers: { authorization: mask, cookie: mask } }
  })
]

/** The header lines of a delivery under the names that were sent, as they arrived. */
const linesOf = (delivery: Received, sent: ReadonlyArray<Line>): ReadonlyArray<Line> => {
  const names = new Set(sent.map(([name]) => name.toLowerCase()))
  return delivery.rawHeaders.flatMap((name, i): ReadonlyArray<Line> =>
    i % 2 === 0 && names.has(name.toLowerCase()) ? [[name.toLowerCase(), delivery.rawHeaders[i + 1]!]] : []
  )
}

const lower = (sent: ReadonlyArray<Line>): ReadonlyArray<Line> =>
  sent.map(([name, value]) => [name.toLowerCase(), value])

const queryOf = (text: string): string => (text.includes("?") ? text.slice(text.indexOf("?") + 1) : "")

/** That a target got what was sent, byte for byte. */
const expectForwarded = (delivery: Received, sent: Sent): void => {
  expect(linesOf(delivery, sent.headers ?? [])).toEqual(lower(sent.headers ?? []))
  expect(queryOf(delivery.url)).toBe(queryOf(sent.suffix ?? ""))
}

const found = (text: string): ReadonlyArray<string> => planted.in(text)

const identity = `addHandler("transform", (request) => { console.log(JSON.stringify(request)); return request })`

describe("Presented secrets of requests", () => {
  for (const { config, name, open, read, secret, sent, type = "WEBHOOK" } of ways) {
    it(`A presented secret is masked in records and forwarded only on request: ${name}`, async ({
      accepted,
      everythingAbout,
      gateway,
      latest,
      send,
      target
    }) => {
      const transformation = await gateway.api("POST", "/transformations", {
        name: gateway.name("transformation"),
        code: identity
      })
      const source = await gateway.api("POST", "/sources", { name: gateway.name("source"), type, config })
      const usual = await gateway.destination({ url: `${target.origin}/usual` })
      const forwarding = await gateway.destination({ url: `${target.origin}/plain`, forward_credentials: true })
      const transforming = await gateway.destination({ url: `${target.origin}/transformed`, forward_credentials: true })
      const withholding = await gateway.destination({ url: `${target.origin}/without`, forward_credentials: false })
      const mock = await gateway.destination({}, "MOCK_API")
      const quietMock = await gateway.destination({ forward_credentials: false }, "MOCK_API")
      await gateway.connection(source, usual)
      await gateway.connection(source, forwarding)
      await gateway.connection(source, transforming, [{ type: "transform", transformation_id: transformation.id }])
      await gateway.connection(source, withholding)
      await gateway.connection(source, mock)
      await gateway.connection(source, quietMock)
      await gateway.connection(source, forwarding, [{ type: "filter", body: { never: true } }])

      const right = sent(secret.right)
      const id = await accepted(source, right)
      const deliveries = await target.next(4)
      const at = (path: string): Received => deliveries.find(({ url }) => url.startsWith(path))!
      expectForwarded(at("/plain"), right)
      expectForwarded(at("/transformed"), right)
      const withheld = queryOf(right.suffix ?? "").replace(/k%65y=[^&]*&/, "")
      expect(linesOf(at("/without"), right.headers ?? [])).toEqual([])
      expect(queryOf(at("/without").url)).toBe(withheld)
      // What the source itself verifies by is forwarded only where a destination asks for it.
      if (open === true) expectForwarded(at("/usual"), right)
      else {
        expect(linesOf(at("/usual"), right.headers ?? [])).toEqual([])
        expect(queryOf(at("/usual").url)).toBe(withheld)
      }

      const trace = await gateway.eventually("all is delivered", async () => {
        const found = await gateway.traced(id, 7)
        return found.counts.attempts === 6 ? found : null
      })
      const { data } = await gateway.api("GET", `/requests/${id}`)
      expect(data?.headers).toMatchObject(read.headers ?? {})
      expect(data?.query).toBe(read.query ?? "")
      expect(data?.parsed_query).toEqual(read.query === undefined ? {} : { a: "1", key: mask, b: "/" })
      const { logs } = trace.transformations[0]!
      expect(logs[0]!.message).toContain(read.query ?? mask)
      const mocked = trace.attempts.find(({ destination_id }) => destination_id === mock.id)!
      expect(JSON.parse(mocked.body!).headers).toMatchObject(read.headers ?? {})
      expect(mocked.requested_url).toContain(read.query ?? "")
      const quiet = trace.attempts.find(({ destination_id }) => destination_id === quietMock.id)
      expect(JSON.stringify(quiet)).not.toContain("PRESENTED")

      const rejected = await send(source, sent(secret.wrong))
      expect(rejected.status).toBe(open === true ? 200 : 401)
      const stored = await latest(source)
      expect(stored.status).toBe(open === true ? "accepted" : "rejected")
      expect(JSON.parse(stored.headers)).toMatchObject(read.headers ?? {})
      expect(stored.query).toBe(read.query ?? "")

      expect(found(await everythingAbout(source, id))).toEqual([])
      expect(found(await everythingAbout(source, stored.id))).toEqual([])
    })
  }

  it("Repeated, similar and mask-like headers are masked and forwarded as they came", async ({
    accepted,
    gateway,
    target
  }) => {
    const { right } = plant("twice")
    const { source } = await gateway.route(target)
    const headers: ReadonlyArray<Line> = [
      ["X-Gitlab-Token", right],
      ["x-gitlab-token", `${right}-2`],
      ["Authorization", mask],
      ["X-Other", mask]
    ]
    const id = await accepted(source, { headers })
    const [delivery] = await target.next()
    expectForwarded(delivery!, { headers })
    const { data } = await gateway.api("GET", `/requests/${id}`)
    expect(data?.headers).toMatchObject({ "x-gitlab-token": [mask, mask], "x-other": mask })
  })

  it("A request without presented secrets is stored unchanged and without extra data", async ({
    accepted,
    gateway,
    latest,
    target
  }) => {
    const { source } = await gateway.route(target)
    await accepted(source, { headers: [["X-A", "b"]], suffix: "?key=c" })
    expect(await latest(source)).toMatchObject({ presented: null, query: "key=c" })
    const [delivery] = await target.next()
    expectForwarded(delivery!, { headers: [["X-A", "b"]], suffix: "?key=c" })
  })

  it("A presented secret is not in a custom response and not visible to filters", async ({ gateway, send, target }) => {
    const { right } = plant("response")
    const auth = { header_key: "x-key", query_key: "key", api_key: right }
    const source = await gateway.source({
      auth_type: "API_KEY",
      auth,
      custom_response: { content_type: "text", body: "{{headers.x-key}} {{headers.authorization}} {{query.key}}" }
    })
    const destination = await gateway.destination({ url: target.origin, forward_credentials: true })
    await gateway.connection(source, destination, [{ type: "filter", headers: { "x-key": mask } }])
    const sent = { headers: [["X-Key", right] as const, ["Authorization", right] as const], suffix: `?key=${right}` }
    const answer = await send(source, sent)
    expect([answer.status, answer.body]).toEqual([200, `${mask} ${mask} ${mask}`])
    const [delivery] = await target.next()
    expectForwarded(delivery!, sent)
  })

  it("A mock's echo hides the credential of its destination", async ({ accepted, gateway }) => {
    const { right } = plant("mock")
    const source = await gateway.source()
    const auth = { header_name: "X-Target-Key", value: right }
    await gateway.connection(source, await gateway.destination({ auth_type: "CUSTOM_HEADER", auth }, "MOCK_API"))
    const id = await accepted(source, {})
    const attempt = await gateway.eventually(
      "the attempt is recorded",
      async () => (await gateway.traced(id)).attempts[0]
    )
    expect(JSON.parse(attempt.body!).headers["x-target-key"]).toBe(`****${right.slice(-4)}`)
  })

  it("A secret in a provider's handshake is masked in the record", async ({ gateway, latest, send }) => {
    const announced = plant("asana").right
    const token = plant("meta")
    const asana = await gateway.api("POST", "/sources", {
      name: gateway.name("source"),
      type: "ASANA",
      config: { auth_type: "HMAC" } as SourceConfig
    })
    const hello = await send(asana, { headers: [["X-Hook-Secret", announced]] })
    expect([hello.status, hello.headers["x-hook-secret"]]).toEqual([200, announced])
    const meta = await gateway.api("POST", "/sources", {
      name: gateway.name("source"),
      type: "META",
      config: { auth: { webhook_secret_key: "app secret", verify_token: token.right } }
    })
    for (const [secret, status] of [
      [token.right, 200],
      [token.wrong, 401]
    ] as const) {
      const suffix = `?hub.mode=subscribe&hub.challenge=1234&hub.verify_token=${secret}`
      const subscribed = await request(gateway.port, { method: "GET", path: `/e/${meta.id}${suffix}` })
      expect(subscribed.status).toBe(status)
      expect((await latest(meta)).query).toBe(suffix.slice(1).replace(secret, maskedParameter))
    }
    expect(JSON.parse((await latest(asana)).headers)["x-hook-secret"]).toBe(mask)
  })

  it("A proxy source forwards presented secrets to its upstream and masks them in the record", async ({
    everythingAbout,
    gateway,
    latest,
    send,
    upstream
  }) => {
    const { right } = plant("proxy")
    const source = await gateway.source({
      auth_type: "API_KEY",
      auth: { query_key: "key", api_key: right },
      mode: "proxy",
      proxy: { target_url: `${upstream.origin}/base`, forward_credentials: true }
    })
    const answer = await send(source, {
      headers: [["Authorization", `Bearer ${right}`]],
      suffix: `/p?key=${right}&a=1`
    })
    expect(answer.status).toBe(200)
    const [call] = upstream.received
    expect([call!.url, call!.headers["authorization"]]).toEqual([`/base/p?key=${right}&a=1`, `Bearer ${right}`])
    const { id } = await latest(source)
    const exchange = await gateway.eventually(
      "the exchange is stored",
      async () => (await gateway.api("GET", `/requests/${id}`)).proxy_exchange
    )
    expect(exchange.target_url).toBe(`${upstream.origin}/base/p?key=${maskedParameter}&a=1`)
    expect(found(await everythingAbout(source, id))).toEqual([])
  })

  it("A proxy source withholds its own credentials from the upstream unless it is set to forward them", async ({
    gateway,
    send,
    upstream
  }) => {
    const { right } = plant("proxied-key")
    const other = plant("proxied-token").right
    const source = await gateway.source({
      auth_type: "API_KEY",
      auth: { header_key: "x-own", query_key: "key", api_key: right },
      mode: "proxy",
      proxy: { target_url: `${upstream.origin}/base` }
    })
    const headers: ReadonlyArray<Line> = [
      ["Authorization", `Bearer ${other}`],
      ["X-Own", right]
    ]
    expect((await send(source, { headers, suffix: `/p?key=${right}&a=1` })).status).toBe(200)
    const [call] = upstream.received
    expect(call!.url).toBe("/base/p?a=1")
    expect([call!.headers["authorization"], call!.headers["x-own"]]).toEqual([`Bearer ${other}`, undefined])
  })
})

const kept = plant("kept")
const keeping: Sent = { headers: [["X-Gitlab-Token", kept.right]], suffix: "?a=b" }

describe("Presented secrets through failures and changes", () => {
  it("A waiting event forwards presented secrets after the process is killed", async ({ gateway, held, target }) => {
    const { resume } = await held()
    await gateway.restart("SIGKILL")
    await resume()
    const [delivery] = await target.next()
    expectForwarded(delivery!, keeping)
  })

  it("A transformed event forwards presented secrets after the process is killed", async ({
    gateway,
    held,
    target
  }) => {
    const code = `addHandler("transform", (request) => {
      request.body = { changed: true }
      request.headers["x-more"] = request.headers["x-gitlab-token"]
      return request
    })`
    const transformation = { name: gateway.name("transformation"), code }
    const { id, resume } = await held([{ type: "transform", transformation }])
    await gateway.traced(id)
    await gateway.restart("SIGKILL")
    await resume()
    const [delivery] = await target.next()
    expectForwarded(delivery!, keeping)
    expect([delivery!.body.toString(), delivery!.headers["x-more"]]).toEqual(['{"changed":true}', mask])
  })

  it("Every attempt and a retry by hand forward the presented secrets", async ({ gateway, held, target }) => {
    target.reply = (response) => void response.writeHead(target.received.length < 2 ? 503 : 200).end()
    const { id, resume, source } = await held()
    await gateway.api("PUT", `/connections/${(await gateway.traced(id)).events[0]!.connection_id}`, {
      name: gateway.name("connection"),
      source_id: source.id,
      destination_id: (await gateway.traced(id)).events[0]!.destination_id,
      rules: [{ type: "retry", strategy: "linear", count: 2, interval: 1_000 }]
    })
    await resume()
    const event = await gateway.eventually("the second attempt succeeds", async () => {
      const [found] = (await gateway.traced(id)).events
      return found?.status === "SUCCESSFUL" ? found : null
    })
    await gateway.api("POST", `/events/${event.id}/retry`)
    const deliveries = await target.next(3)
    for (const delivery of deliveries) expectForwarded(delivery, keeping)
    expect(deliveries.map(({ headers }) => headers["x-gateway-attempt-trigger"])).toEqual([
      "UNPAUSE",
      "AUTOMATIC",
      "MANUAL"
    ])
  })

  it("A destination stops and resumes forwarding of presented secrets when its setting changes", async ({
    accepted,
    gateway,
    held,
    target
  }) => {
    const { source } = await held()
    const destination = await gateway.destination({ url: target.origin, forward_credentials: true })
    expect(destination.config.forward_credentials).toBe(true)
    await gateway.connection(source, destination)
    await accepted(source, keeping)
    // Each change comes after the delivery before it: a delivery is made by the settings of its own time.
    await target.next(1)
    const path = `/destinations/${destination.id}` as const
    const changed = await gateway.api("PATCH", path, { config: { forward_credentials: false } })
    expect(changed.config.forward_credentials).toBe(false)
    await accepted(source, keeping)
    await target.next(2)
    await gateway.api("PATCH", path, { config: { forward_credentials: true } })
    await accepted(source, keeping)
    await target.next(3)
    // By default the source's own verification secret stays with the gateway.
    const usual = await gateway.api("PATCH", path, { config: { forward_credentials: null } })
    expect(usual.config.forward_credentials).toBe(null)
    await accepted(source, keeping)
    const deliveries = await target.next(4)
    expect(deliveries.map(({ headers }) => headers["x-gitlab-token"])).toEqual([
      kept.right,
      undefined,
      kept.right,
      undefined
    ])
  })

  it("An event whose presented secrets cannot be decrypted is not delivered, and its attempt fails", async ({
    gateway,
    held,
    target
  }) => {
    const one = await held()
    const other = await held()
    // A value opens in its own row alone: moved to another, it is as good as a lost key's.
    await gateway.sql("update requests set presented = (select presented from requests where id = $1) where id = $2", [
      one.id,
      other.id
    ])
    await gateway.restart("SIGKILL")
    await other.resume()
    const failed = await gateway.eventually("the attempt has failed", async () => {
      const [attempt] = (await gateway.traced(other.id)).attempts
      return attempt
    })
    expect(failed).toMatchObject({ status: "FAILED", error_code: "INTERNAL_ERROR", response_status: null })
    expect(target.received).toEqual([])
    await one.resume()
    const [delivery] = await target.next()
    expectForwarded(delivery!, keeping)
  })

  it("A source with unreadable settings encrypts every header and query value", async ({ gateway, latest, send }) => {
    const { right } = plant("unreadable")
    const source = await gateway.source({ auth_type: "API_KEY", auth: { header_key: "x-own", api_key: right } })
    await gateway.sql("update sources set auth = 'v1.gone.gone.gone', version = version + 1 where id = $1", [source.id])
    const answer = await send(source, { headers: [["X-Own", right]], suffix: `?a=${right}` })
    expect(answer.status).toBe(401)
    const stored = await latest(source)
    expect(new Set(Object.values(JSON.parse(stored.headers)))).toEqual(new Set([mask]))
    expect(stored).toMatchObject({ query: `a=${maskedParameter}`, external_id: null })
  })

  it("Secrets that older versions stored unmasked are shown masked", async ({ accepted, gateway }) => {
    const { right } = plant("older")
    const source = await gateway.source()
    const id = await accepted(source, {})
    await gateway.sql("update requests set headers = $1 where id = $2", [
      JSON.stringify({ authorization: `Bearer ${right}`, "x-gitlab-token": [right, right], a: "b" }),
      id
    ])
    const { data } = await gateway.api("GET", `/requests/${id}`)
    expect(data?.headers).toEqual({ authorization: mask, "x-gitlab-token": [mask, mask], a: "b" })
    await gateway.sql("delete from requests where id = $1", [id])
  })
})

it("No presented secret is in any table or in the log", async ({ database, gateway }) => {
  expect(planted.size).toBeGreaterThan(30)
  expect(found(await database())).toEqual([])
  expect(found(await gateway.logged())).toEqual([])
})
