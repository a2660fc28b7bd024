import { createHmac, generateKeyPairSync, sign as signBytes } from "node:crypto"
import { describe, expect } from "vitest"
import type { Source } from "../support/Contract.ts"
import { type Answer, request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** The first requests of providers: answered as the provider wants it, stored, and for nobody behind the gateway. */

type HeaderLines = ReadonlyArray<readonly [name: string, value: string]>

interface Sent {
  readonly method?: string
  readonly suffix?: string
  readonly headers?: HeaderLines
  readonly body?: string
}

const seconds = (): number => Math.floor(Date.now() / 1000)
const hex = (secret: string, text: string): string => createHmac("sha256", secret).update(text).digest("hex")

const slack = (secret: string, body: string, at = seconds()): Sent => ({
  headers: [
    ["Content-Type", "application/json"],
    ["X-Slack-Request-Timestamp", String(at)],
    ["X-Slack-Signature", `v0=${hex(secret, `v0:${at}:${body}`)}`]
  ],
  body
})

const zoom = (secret: string, body: string, at = seconds()): Sent => ({
  headers: [
    ["x-zm-request-timestamp", String(at)],
    ["x-zm-signature", `v0=${hex(secret, `v0:${at}:${body}`)}`]
  ],
  body
})

const twitch = (secret: string, body: string, type = "webhook_callback_verification"): Sent => {
  const at = new Date().toISOString()
  return {
    headers: [
      ["Content-Type", "application/json"],
      ["Twitch-Eventsub-Message-Id", "84c1e79a"],
      ["Twitch-Eventsub-Message-Timestamp", at],
      ["Twitch-Eventsub-Message-Type", type],
      ["Twitch-Eventsub-Message-Signature", `sha256=${hex(secret, `84c1e79a${at}${body}`)}`]
    ],
    body
  }
}

const discordKeys = generateKeyPairSync("ed25519")
const discordPublic = discordKeys.publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("hex")
const discord = (body: string): Sent => {
  const at = String(seconds())
  return {
    headers: [
      ["X-Signature-Timestamp", at],
      ["X-Signature-Ed25519", signBytes(null, Buffer.from(at + body), discordKeys.privateKey).toString("hex")]
    ],
    body
  }
}

interface Greeting {
  readonly type: string
  readonly auth: Readonly<Record<string, string>>
  readonly kind: string
  readonly hello: () => Sent
  readonly answer: { readonly status: number; readonly body: string; readonly contentType?: string }
  readonly verified: boolean
  /** The same from somebody who cannot prove that it is the provider; null where the provider gives no proof. */
  readonly impostor: (() => Sent) | null
  /** The headers that the answer must have. */
  readonly headers?: Readonly<Record<string, string>>
}

const json = "application/json; charset=utf-8"
const text = "text/plain; charset=utf-8"
const secret = "the secret of the provider"
const challenge = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"
const asanaSecret = "b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81"
const slackHello = JSON.stringify({ token: "Jhj5dZrVaK7ZwHHjRyZWjbDl", challenge, type: "url_verification" })
const zoomHello = JSON.stringify({
  event: "endpoint.url_validation",
  event_ts: 1_654_503_849_680,
  payload: { plainToken: "qgg8vlvZRS6UYooatFL8Aw" }
})
const twitchHello = JSON.stringify({ challenge, subscription: { status: "webhook_callback_verification_pending" } })

const greetings: ReadonlyArray<Greeting> = [
  {
    type: "SLACK",
    auth: { secret },
    kind: "url_verification",
    hello: () => slack(secret, slackHello),
    answer: { status: 200, contentType: json, body: JSON.stringify({ challenge }) },
    verified: true,
    impostor: () => slack("another secret", slackHello)
  },
  {
    type: "META",
    auth: { app_secret: secret, verify_token: "meatyhamhock" },
    kind: "subscribe",
    hello: () => ({
      method: "GET",
      suffix: "?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=meatyhamhock"
    }),
    answer: { status: 200, contentType: text, body: "1158201444" },
    verified: false,
    impostor: () => ({ method: "GET", suffix: "?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=guess" })
  },
  {
    type: "DISCORD",
    auth: { public_key: discordPublic },
    kind: "ping",
    hello: () => discord('{"id":"1","type":1,"version":1}'),
    answer: { status: 200, contentType: json, body: '{"type":1}' },
    verified: true,
    impostor: () => ({ ...discord('{"id":"1","type":1}'), body: '{"id":"2","type":1}' })
  },
  {
    type: "DISCORD_EVENTS",
    auth: { public_key: discordPublic },
    kind: "ping",
    hello: () => discord('{"version":1,"application_id":"1","type":0}'),
    answer: { status: 204, body: "" },
    verified: true,
    impostor: () => ({ ...discord('{"type":0,"a":1}'), body: '{"type":0,"a":2}' })
  },
  {
    type: "ZOOM",
    auth: { secret },
    kind: "endpoint.url_validation",
    hello: () => zoom(secret, zoomHello),
    answer: {
      status: 200,
      contentType: json,
      body: JSON.stringify({
        plainToken: "qgg8vlvZRS6UYooatFL8Aw",
        encryptedToken: hex(secret, "qgg8vlvZRS6UYooatFL8Aw")
      })
    },
    verified: true,
    impostor: () => zoom("another secret", zoomHello)
  },
  {
    type: "DROPBOX",
    auth: { secret },
    kind: "challenge",
    hello: () => ({ method: "GET", suffix: `?challenge=${challenge}` }),
    answer: { status: 200, contentType: text, body: challenge },
    headers: { "x-content-type-options": "nosniff" },
    verified: false,
    impostor: null
  },
  {
    type: "TWITCH",
    auth: { secret },
    kind: "webhook_callback_verification",
    hello: () => twitch(secret, twitchHello),
    answer: { status: 200, contentType: text, body: challenge },
    verified: true,
    impostor: () => twitch("another secret", twitchHello)
  },
  {
    type: "TRELLO",
    auth: { secret },
    kind: "head",
    hello: () => ({ method: "HEAD" }),
    answer: { status: 200, body: "" },
    verified: false,
    impostor: null
  },
  {
    type: "MICROSOFT_GRAPH",
    auth: { client_state: secret },
    kind: "validationToken",
    hello: () => ({ suffix: "?validationToken=Validation%3A%20Testing%20client%20application", body: "" }),
    answer: { status: 200, contentType: text, body: "Validation: Testing client application" },
    verified: false,
    impostor: null
  },
  {
    type: "OKTA",
    auth: { secret, header_key: "authorization" },
    kind: "verification",
    hello: () => ({
      method: "GET",
      headers: [
        ["Authorization", secret],
        ["x-okta-verification-challenge", challenge]
      ]
    }),
    answer: { status: 200, contentType: json, body: JSON.stringify({ verification: challenge }) },
    verified: true,
    impostor: () => ({
      method: "GET",
      headers: [
        ["Authorization", "guess"],
        ["x-okta-verification-challenge", challenge]
      ]
    })
  },
  {
    type: "WOO_COMMERCE",
    auth: { secret },
    kind: "ping",
    hello: () => ({ headers: [["Content-Type", "application/x-www-form-urlencoded"]], body: "webhook_id=17" }),
    answer: { status: 200, body: "" },
    verified: false,
    impostor: null
  },
  {
    type: "ASANA",
    auth: {},
    kind: "hook_secret",
    hello: () => ({ headers: [["X-Hook-Secret", asanaSecret]], body: "{}" }),
    answer: { status: 200, body: "" },
    headers: { "x-hook-secret": asanaSecret },
    verified: false,
    impostor: () => ({ headers: [["X-Hook-Secret", "short"]], body: "{}" })
  },
  {
    type: "NOTION",
    auth: {},
    kind: "verification_token",
    hello: () => ({
      body: JSON.stringify({ verification_token: "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl" })
    }),
    answer: { status: 200, body: "" },
    verified: false,
    impostor: () => ({ body: JSON.stringify({ verification_token: "short" }) })
  }
]

const it = gatewayIt
  .extend(
    "send",
    ({ gateway }) =>
      (source: Source, { suffix = "", ...parts }: Sent): Promise<Answer> =>
        request(gateway.port, { ...parts, path: `/e/${source.id}${suffix}` })
  )
  /** A source of `type` that verifies as the type says, with two connections. */
  .extend("greeted", ({ gateway, target }) => async (type: string, auth: object) => {
    const config: Record<string, unknown> = { auth_type: "PROVIDER_SIGNATURE", auth }
    const source = await gateway.api("POST", "/sources", { name: gateway.name("source"), type, config })
    const destination = await gateway.destination({ url: target.origin })
    const filter = { type: "filter", path: "/nowhere" } as const
    const deduplicate = { type: "deduplicate", window: 60_000 } as const
    const connections = [
      await gateway.connection(source, destination),
      await gateway.connection(source, destination, [deduplicate, filter])
    ]
    return { source, connections: connections.map(({ id }) => id) }
  })

for (const { answer, auth, headers = {}, hello, impostor, kind, type, verified } of greetings) {
  describe(type, () => {
    it("A provider's handshake is answered, stored and not delivered", async ({ gateway, greeted, send, target }) => {
      const { connections, source } = await greeted(type, auth)
      const said = hello()
      const answered = await send(source, said)
      expect([answered.status, answered.body]).toEqual([answer.status, answer.body])
      expect(answered.headers["content-type"]).toBe(answer.contentType)
      expect(answered.headers).toMatchObject(headers)

      const [row, ...more] = await gateway.requests(source.id)
      expect(more).toEqual([])
      expect(row).toMatchObject({ status: "accepted", verified, rejection_cause: null, method: said.method ?? "POST" })
      expect(Buffer.from(row.body).toString()).toBe(said.body ?? "")
      const trace = await gateway.api("GET", `/requests/${row.id}/trace`)
      expect(trace.counts).toMatchObject({ events: 0, ignored_events: 2, attempts: 0 })
      expect(trace.request).toMatchObject({ events_count: 0, ignored_count: 2 })
      expect(new Set(trace.ignored_events.map((ignored) => ignored.connection_id))).toEqual(new Set(connections))
      for (const ignored of trace.ignored_events) {
        expect(ignored).toMatchObject({ cause: "HANDSHAKE", meta: [kind], request_id: row.id })
      }
      expect(await gateway.sql("select request_id from pending_routes where request_id = $1", [row.id])).toEqual([])
      expect(await gateway.sql("select event_id from deliveries where connection_id = any($1)", [connections])).toEqual(
        []
      )
      expect(target.received).toEqual([])
    })

    if (impostor === null) return
    it("A handshake with a wrong proof is refused", async ({ gateway, greeted, send }) => {
      const { source } = await greeted(type, auth)
      const refused = await send(source, impostor())
      expect([refused.status, JSON.parse(refused.body).code]).toEqual([401, "SOURCE_AUTH_FAILED"])
      expect(refused.body).not.toContain(challenge)
      const [row] = await gateway.requests(source.id)
      expect(row).toMatchObject({ status: "rejected", rejection_cause: "SOURCE_AUTH_FAILED", verified: false })
    })
  })
}

describe("Announced secret", () => {
  const signed = (body: string, key: string): Sent => ({ headers: [["X-Hook-Signature", hex(key, body)]], body })
  const announce = (key: string): Sent => ({ headers: [["X-Hook-Secret", key]], body: "{}" })
  const events = JSON.stringify({ events: [{ action: "added" }] })

  it("An Asana source verifies by the announced secret from the next request on and refuses another", async ({
    gateway,
    greeted,
    send,
    target
  }) => {
    const { source } = await greeted("ASANA", {})
    expect((await send(source, signed(events, ""))).status).toBe(401)
    expect((await send(source, { body: events })).status).toBe(401)
    expect((await send(source, announce(asanaSecret))).status).toBe(200)

    expect((await send(source, signed(events, asanaSecret))).status).toBe(200)
    const [delivery] = await target.next()
    expect(delivery!.body.toString()).toBe(events)
    expect((await gateway.requests(source.id)).at(-1)).toMatchObject({ status: "accepted", verified: true })

    const another = "0".repeat(64)
    expect((await send(source, announce(another))).status).toBe(401)
    expect((await send(source, signed(events, another))).status).toBe(401)
    expect((await send(source, signed(events, asanaSecret))).status).toBe(200)
    // The provider may not have seen the answer, and say it again.
    const again = await send(source, announce(asanaSecret))
    expect([again.status, again.headers["x-hook-secret"]]).toEqual([200, asanaSecret])
  })

  it("An announced secret is encrypted at rest and masked when read", async ({ gateway, greeted, send }) => {
    const { source } = await greeted("ASANA", {})
    await send(source, announce(asanaSecret))
    const { config } = await gateway.api("GET", `/sources/${source.id}`)
    expect([config.auth_type, config.auth]).toEqual(["HMAC", { webhook_secret_key: "****3e81" }])
    const [row] = await gateway.sql("select row_to_json(s)::text as row from sources s where id = $1", [source.id])
    expect(row.row).not.toContain(asanaSecret)
  })

  it("When two secrets are announced at once, one is stored and only its request is answered", async ({
    greeted,
    send
  }) => {
    const { source } = await greeted("ASANA", {})
    const keys = ["1".repeat(64), "2".repeat(64)]
    const answers = await Promise.all(keys.map((key) => send(source, announce(key))))
    const winners = keys.filter((_, index) => answers[index]!.status === 200)
    expect(winners).toHaveLength(1)
    for (const key of keys) {
      expect((await send(source, signed(events, key))).status).toBe(winners.includes(key) ? 200 : 401)
    }
  })

  it("An announced secret survives a killed process", async ({ gateway, greeted, send }) => {
    const { source } = await greeted("ASANA", {})
    await send(source, announce(asanaSecret))
    await gateway.restart("SIGKILL")
    expect((await send(source, signed(events, asanaSecret))).status).toBe(200)
  })

  it("Requests to a Notion source are verified with the announced token", async ({ greeted, send }) => {
    const { source } = await greeted("NOTION", {})
    const verification_token = "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"
    expect((await send(source, { body: JSON.stringify({ verification_token }) })).status).toBe(200)
    const event = JSON.stringify({ type: "page.created" })
    const from = (key: string) =>
      send(source, { headers: [["X-Notion-Signature", `sha256=${hex(key, event)}`]], body: event })
    expect([(await from(verification_token)).status, (await from("another")).status]).toEqual([200, 401])
  })
})

describe("Requests that are not handshakes", () => {
  it("A GET or HEAD request without a handshake is refused with 405", async ({ greeted, send }) => {
    for (const [type, auth] of [
      ["DROPBOX", { secret }],
      ["OKTA", { secret }],
      ["SLACK", { secret }]
    ] as const) {
      const { source } = await greeted(type, auth)
      expect((await send(source, { method: "GET" })).status).toBe(405)
      expect((await send(source, { method: "HEAD" })).status).toBe(405)
    }
  })

  it("A handshake on a source of another type is an ordinary request", async ({ gateway, greeted, send, target }) => {
    const { source } = await gateway.route(target)
    const answered = await send(source, { headers: [["Content-Type", "application/json"]], body: slackHello })
    expect(JSON.parse(answered.body)).toMatchObject({ ok: true })
    await target.next()
    const { source: zoomed } = await greeted("ZOOM", { secret })
    expect((await send(zoomed, { body: slackHello })).status).toBe(401)
  })

  it("A challenge that could be a page is not echoed", async ({ greeted, send }) => {
    const { source } = await greeted("DROPBOX", { secret })
    for (const page of ["<script>alert(1)</script>", "a\r\nSet-Cookie: a=1", "x".repeat(1025), "ü"]) {
      const answered = await send(source, { method: "GET", suffix: `?challenge=${encodeURIComponent(page)}` })
      expect(answered.status).toBe(405)
      expect(answered.body).not.toContain(page)
      expect(answered.headers).not.toHaveProperty("set-cookie")
    }
  })

  it("A source without verification answers handshakes, but stores no secret and fetches no URL", async ({
    gateway,
    send
  }) => {
    const nobody = { auth_type: null }
    const asana = await gateway.api("POST", "/sources", {
      name: gateway.name("source"),
      type: "ASANA",
      config: nobody
    })
    const answered = await send(asana, { headers: [["X-Hook-Secret", asanaSecret]], body: "{}" })
    expect([answered.status, answered.headers["x-hook-secret"]]).toEqual([200, asanaSecret])
    const { config } = await gateway.api("GET", `/sources/${asana.id}`)
    expect([config.auth_type, config.auth]).toEqual([null, {}])
    expect((await gateway.requests(asana.id)).map((row) => [row.status, row.verified])).toEqual([["accepted", false]])

    const slacked = await gateway.api("POST", "/sources", { name: gateway.name("source"), type: "SLACK" })
    const hello = await send(slacked, { body: slackHello })
    expect([hello.status, hello.body]).toEqual([200, JSON.stringify({ challenge })])
  })

  it("A source whose provider announces its secret waits for it, even without settings", async ({ gateway, send }) => {
    const asana = await gateway.api("POST", "/sources", { name: gateway.name("source"), type: "ASANA" })
    expect((await send(asana, { body: "{}" })).status).toBe(401)
    expect((await send(asana, { headers: [["X-Hook-Secret", asanaSecret]], body: "{}" })).status).toBe(200)
    const { config } = await gateway.api("GET", `/sources/${asana.id}`)
    expect([config.auth_type, Object.keys(config.auth)]).toEqual(["HMAC", ["webhook_secret_key"]])
  })

  it("A disabled source answers no handshake", async ({ gateway, greeted, send }) => {
    const { source } = await greeted("DROPBOX", { secret })
    await gateway.api("PUT", `/sources/${source.id}/disable`)
    const answered = await send(source, { method: "GET", suffix: `?challenge=${challenge}` })
    expect([answered.status, JSON.parse(answered.body).code]).toEqual([403, "SOURCE_DISABLED"])
  })
})

describe("AWS_SNS", () => {
  const topic = "arn:aws:sns:us-west-2:123456789012:MyTopic"
  const message = {
    MessageId: "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
    TopicArn: topic,
    Message: "You have chosen to subscribe to the topic",
    Timestamp: new Date().toISOString(),
    SignatureVersion: "2",
    Signature: Buffer.alloc(256, 1).toString("base64"),
    // A host that is SNS's by name, in a region that does not exist: it resolves to nothing anywhere.
    SigningCertURL: "https://sns.zz-nowhere-9.amazonaws.com/SimpleNotificationService-1.pem"
  }
  const confirmation = {
    ...message,
    Type: "SubscriptionConfirmation",
    Token: "2336412f37",
    SubscribeURL: `https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${topic}&Token=2336412f37`
  }

  for (const [name, body] of [
    ["a subscription", confirmation],
    ["a notification", { ...message, Type: "Notification" }]
  ] as const) {
    it(`Without its certificate ${name} of SNS is answered with 503 and not stored`, async ({
      gateway,
      greeted,
      send
    }) => {
      const { source } = await greeted("AWS_SNS", {})
      const answered = await send(source, { headers: [["Content-Type", "text/plain"]], body: JSON.stringify(body) })
      expect([answered.status, JSON.parse(answered.body).code]).toEqual([503, "QUEUE_UNAVAILABLE"])
      expect(Number(answered.headers["retry-after"])).toBeGreaterThanOrEqual(1)
      expect(await gateway.requests(source.id)).toEqual([])
    })
  }

  it("A certificate URL that is not on a host of SNS is not fetched, and the request is refused", async ({
    greeted,
    send,
    target
  }) => {
    const { source } = await greeted("AWS_SNS", {})
    for (const SigningCertURL of [`${target.origin}/SimpleNotificationService-1.pem`, "https://sns.evil.test/x.pem"]) {
      const answered = await send(source, {
        body: JSON.stringify({ ...message, Type: "Notification", SigningCertURL })
      })
      expect(answered.status).toBe(401)
    }
    expect(target.received).toEqual([])
  })
})
