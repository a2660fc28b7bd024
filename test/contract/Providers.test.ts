import { createHash, createHmac, generateKeyPairSync, sign as signBytes } from "node:crypto"
import { sign as signGithub, verify as verifyGithub } from "@octokit/webhooks-methods"
import { EventWebhook } from "@sendgrid/eventwebhook"
import { isValidSlackRequest } from "@slack/bolt"
import { verifyKey } from "discord-interactions"
import { SignJWT } from "jose"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { Stripe } from "stripe"
import { Webhook as SvixWebhook } from "svix"
import twilio from "twilio"
import { getExpectedTwilioSignature } from "twilio/lib/webhooks/webhooks.js"
import { describe, expect } from "vitest"
import type { Source, SourceConfig } from "../support/Contract.ts"
import { request } from "../support/RawHttp.ts"
import { ownIt as gatewayIt } from "../support/it.ts"

/**
 * Requests of providers, signed by what the provider or the standard publishes, sent to a source of the provider's type.
 * Where a library verifies too, it has to agree about the genuine and about the forged request.
 */

type HeaderLines = ReadonlyArray<readonly [name: string, value: string]>

interface Signed {
  readonly headers: HeaderLines
  readonly body: string
  /** What follows the source's URL. */
  readonly suffix: string
}

interface Provider {
  readonly type: string
  readonly auth: Readonly<Record<string, string>>
  /** What `config.auth_type` and `config.auth` read. */
  readonly read: { readonly auth_type: string; readonly auth: Readonly<Record<string, string>> }
  /** Signs `body` as the provider would, for a source at `url`. */
  readonly sign: (body: string, url: string) => Promise<Signed> | Signed
  /** The request that must be refused, made from a genuine one; by default, its body with a digit changed. */
  readonly forge?: (genuine: Signed) => Signed
  /** Whether a library that we did not write takes it. */
  readonly library?: (sent: Signed, url: string) => unknown
  readonly body?: string
}

const seconds = (): number => Math.floor(Date.now() / 1000)
const jsonType = ["Content-Type", "application/json"] as const
const posted = (body: string, ...headers: HeaderLines): Signed => ({
  headers: [jsonType, ...headers],
  body,
  suffix: "/hooks?v=1"
})
const headersOf = ({ headers }: Signed): Record<string, string> =>
  Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
const masked = (secret: string): string => `****${secret.slice(-4)}`
const hmacOf = (secret: string) => ({ auth_type: "HMAC", auth: { webhook_secret_key: masked(secret) } })

const stripe = new Stripe("sk_test_none")
const svixSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const slackSecret = "8f742231b10e8888abcd99yyyzzz85a5"
const twilioToken = "2f3c7f5b8a9d4e6f8a9b0c1d2e3f4a5b"
const discordKeys = generateKeyPairSync("ed25519")
const discordPublic = discordKeys.publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("hex")
const sendgridKeys = generateKeyPairSync("ec", { namedCurve: "prime256v1" })
const sendgridPublic = sendgridKeys.publicKey.export({ type: "spki", format: "der" }).toString("base64")
const fusionKeys = generateKeyPairSync("rsa", { modulusLength: 2048 })
const fusionPublic = fusionKeys.publicKey.export({ type: "spki", format: "pem" })

const otherToken =
  (name: string, value: string) =>
  (genuine: Signed): Signed => ({
    ...genuine,
    headers: genuine.headers.map((line) => (line[0] === name ? ([name, value] as const) : line))
  })

const providers: ReadonlyArray<Provider> = [
  {
    type: "STRIPE",
    auth: { webhook_secret_key: "whsec_stripe_secret_1234" },
    read: hmacOf("whsec_stripe_secret_1234"),
    sign: (payload) =>
      posted(payload, [
        "Stripe-Signature",
        stripe.webhooks.generateTestHeaderString({ payload, secret: "whsec_stripe_secret_1234" })
      ]),
    library: (sent) =>
      stripe.webhooks.constructEvent(sent.body, headersOf(sent)["stripe-signature"]!, "whsec_stripe_secret_1234")
  },
  {
    type: "GITHUB",
    auth: { secret: "It's a Secret to Everybody" },
    read: hmacOf("It's a Secret to Everybody"),
    sign: async (body) =>
      posted(
        body,
        ["X-Hub-Signature-256", await signGithub("It's a Secret to Everybody", body)],
        ["X-GitHub-Event", "push"]
      ),
    library: (sent) => verifyGithub("It's a Secret to Everybody", sent.body, headersOf(sent)["x-hub-signature-256"]!)
  },
  {
    type: "SVIX",
    auth: { webhook_secret_key: svixSecret },
    read: hmacOf(svixSecret),
    sign: (body) => {
      const at = seconds()
      const signature = new SvixWebhook(svixSecret).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", new Date(at * 1000), body)
      return posted(
        body,
        ["svix-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"],
        ["svix-timestamp", String(at)],
        ["svix-signature", signature]
      )
    },
    library: (sent) => new SvixWebhook(svixSecret).verify(sent.body, headersOf(sent))
  },
  {
    type: "STANDARD_WEBHOOKS",
    auth: { webhook_secret_key: svixSecret },
    read: hmacOf(svixSecret),
    sign: (body) => {
      const at = seconds()
      const signature = new StandardWebhook(svixSecret).sign("msg_1", new Date(at * 1000), body)
      return posted(body, ["webhook-id", "msg_1"], ["webhook-timestamp", String(at)], ["webhook-signature", signature])
    },
    library: (sent) => new StandardWebhook(svixSecret).verify(sent.body, headersOf(sent))
  },
  {
    type: "SLACK",
    auth: { signing_secret: slackSecret },
    read: hmacOf(slackSecret),
    sign: (body) => {
      const at = String(seconds())
      const digest = createHmac("sha256", slackSecret).update(`v0:${at}:${body}`).digest("hex")
      return posted(body, ["X-Slack-Request-Timestamp", at], ["X-Slack-Signature", `v0=${digest}`])
    },
    library: (sent) =>
      isValidSlackRequest({
        signingSecret: slackSecret,
        body: sent.body,
        headers: {
          "x-slack-signature": headersOf(sent)["x-slack-signature"]!,
          "x-slack-request-timestamp": Number(headersOf(sent)["x-slack-request-timestamp"])
        }
      })
  },
  {
    type: "TWILIO",
    auth: { auth_token: twilioToken },
    read: hmacOf(twilioToken),
    body: "CallSid=CA1234567890ABCDE&Caller=%2B12349013030&Digits=1234&Text=gr%C3%BC%C3%9Fe+%26+more",
    sign: (body, url) => {
      const suffix = "/voice?foo=1&bar=a%20b"
      const signature = getExpectedTwilioSignature(
        twilioToken,
        url + suffix,
        Object.fromEntries(new URLSearchParams(body))
      )
      return {
        headers: [
          ["Content-Type", "application/x-www-form-urlencoded"],
          ["X-Twilio-Signature", signature]
        ],
        body,
        suffix
      }
    },
    library: (sent, url) =>
      twilio.validateRequest(
        twilioToken,
        headersOf(sent)["x-twilio-signature"]!,
        url + sent.suffix,
        Object.fromEntries(new URLSearchParams(sent.body))
      )
  },
  {
    type: "DISCORD",
    auth: { public_key: discordPublic },
    read: { auth_type: "HMAC", auth: { public_key: discordPublic } },
    body: '{"type":2,"id":"7","data":{"name":"größe"}}',
    sign: (body) => {
      const at = String(seconds())
      const signature = signBytes(null, Buffer.from(at + body), discordKeys.privateKey).toString("hex")
      return posted(body, ["X-Signature-Timestamp", at], ["X-Signature-Ed25519", signature])
    },
    library: (sent) =>
      verifyKey(
        sent.body,
        headersOf(sent)["x-signature-ed25519"]!,
        headersOf(sent)["x-signature-timestamp"]!,
        discordPublic
      )
  },
  {
    type: "SENDGRID",
    auth: { public_key: sendgridPublic },
    read: { auth_type: "HMAC", auth: { public_key: sendgridPublic } },
    sign: (body) => {
      const at = String(seconds())
      const signature = signBytes("sha256", Buffer.from(at + body), sendgridKeys.privateKey).toString("base64")
      return posted(
        body,
        ["X-Twilio-Email-Event-Webhook-Timestamp", at],
        ["X-Twilio-Email-Event-Webhook-Signature", signature]
      )
    },
    library: (sent) => {
      const webhook = new EventWebhook()
      return webhook.verifySignature(
        webhook.convertPublicKeyToECDSA(sendgridPublic),
        sent.body,
        headersOf(sent)["x-twilio-email-event-webhook-signature"]!,
        headersOf(sent)["x-twilio-email-event-webhook-timestamp"]!
      )
    }
  },
  {
    type: "FUSIONAUTH",
    auth: { public_key: fusionPublic },
    read: { auth_type: "HMAC", auth: { public_key: fusionPublic } },
    sign: async (body) => {
      const request_body_sha256 = createHash("sha256").update(body).digest("base64")
      const jwt = new SignJWT({ request_body_sha256 }).setProtectedHeader({ alg: "RS256" })
      return posted(body, ["X-FusionAuth-Signature-JWT", await jwt.sign(fusionKeys.privateKey)])
    }
  },
  {
    type: "GITLAB",
    auth: { token: "gitlab-token-1234" },
    read: { auth_type: "API_KEY", auth: { api_key: "****1234" } },
    sign: (body) => posted(body, ["X-Gitlab-Token", "gitlab-token-1234"]),
    forge: otherToken("X-Gitlab-Token", "gitlab-token-1235")
  },
  {
    type: "POSTMARK",
    auth: { username: "postmark", password: "p:ässword1" },
    read: { auth_type: "BASIC_AUTH", auth: { username: "postmark", password: "****ord1" } },
    sign: (body) => posted(body, ["Authorization", `Basic ${Buffer.from("postmark:p:ässword1").toString("base64")}`]),
    forge: otherToken("Authorization", `Basic ${Buffer.from("postmark:p:ässword2").toString("base64")}`)
  }
]

const changeDigit = (genuine: Signed): Signed => ({
  ...genuine,
  body: genuine.body.replace("7", "8").replace("1234&", "1235&")
})

const accepts = async (library: NonNullable<Provider["library"]>, sent: Signed, url: string): Promise<boolean> => {
  try {
    return (await library(sent, url)) !== false
  } catch {
    return false
  }
}

const it = gatewayIt
  .extend("send", ({ gateway }) => async (source: Source, { body, headers, suffix }: Signed) => {
    const answer = await request(gateway.port, { path: `/e/${source.id}${suffix}`, headers, body })
    // A form of Twilio's is answered in XML.
    const isJson = answer.headers["content-type"]?.startsWith("application/json") === true
    return { status: answer.status, body: isJson ? JSON.parse(answer.body) : answer.body }
  })
  .extend(
    "create",
    ({ gateway }) =>
      (provider: Pick<Provider, "auth" | "type">, auth_type?: string): Promise<Source> =>
        gateway.api("POST", "/sources", {
          name: gateway.name("source"),
          type: provider.type,
          config: { auth: provider.auth, ...(auth_type === undefined ? {} : { auth_type }) } as SourceConfig
        })
  )

for (const provider of providers) {
  const { body = '{"id":7,"name":"größe","big":1.0e0}', forge = changeDigit, library, read, sign, type } = provider

  describe(type, () => {
    it("A genuine provider request is delivered unchanged, and a forged one is stored as rejected", async ({
      create,
      gateway,
      send,
      target
    }) => {
      const source = await create(provider)
      await gateway.connection(source, await gateway.destination({ url: target.origin }))
      const genuine = await sign(body, source.url)
      const forged = forge(genuine)
      expect(forged).not.toEqual(genuine)
      if (library !== undefined) {
        expect([await accepts(library, genuine, source.url), await accepts(library, forged, source.url)]).toEqual([
          true,
          false
        ])
      }

      const accepted = await send(source, genuine)
      expect(accepted.status).toBe(200)
      const [delivery] = await target.next()
      expect(delivery!.body.toString()).toBe(body)
      expect(delivery!.headers["x-gateway-verified"]).toBe("true")
      expect(delivery!.url).toBe(genuine.suffix)
      const waiting = () =>
        gateway.sql(
          "select event_id from deliveries where connection_id in (select id from connections where source_id = $1)",
          [source.id]
        )
      // Its target has it before its attempt is recorded.
      await gateway.eventually("its attempt is recorded", async () => ((await waiting()).length === 0 ? true : null))

      const refused = await send(source, forged)
      expect([refused.status, refused.body.code]).toEqual([401, "SOURCE_AUTH_FAILED"])
      // Forged, or without any of what proves it.
      const bare = await send(source, { ...genuine, headers: [genuine.headers[0]!] })
      expect([bare.status, bare.body.code]).toEqual([401, "SOURCE_AUTH_FAILED"])

      const stored = await gateway.requests(source.id)
      expect(stored.map((row) => [row.status, row.rejection_cause, row.verified, row.events_count])).toEqual([
        ["accepted", null, true, 1],
        ["rejected", "SOURCE_AUTH_FAILED", false, 0],
        ["rejected", "SOURCE_AUTH_FAILED", false, 0]
      ])
      expect(stored[1].ignored_count).toBe(0)
      expect(Buffer.from(stored[1].body).toString()).toBe(forged.body)
      const detail = await gateway.api("GET", `/requests/${stored[1].id}/trace`)
      expect(detail.request).toMatchObject({
        status: "rejected",
        rejection_cause: "SOURCE_AUTH_FAILED",
        verified: false
      })
      expect(detail.counts).toEqual({
        events: 0,
        ignored_events: 0,
        attempts: 0,
        skipped_connections: 0,
        workflow_runs: 0,
        transformations: 0,
        proxy_exchanges: 0
      })
      expect(await waiting()).toEqual([])
      expect(target.received.length).toBe(1)
    })

    it("A provider's settings are masked when read and can be written back", async ({ create, gateway, send }) => {
      const written = await create(provider)
      const { config } = await gateway.api("GET", `/sources/${written.id}`)
      expect({ auth_type: config.auth_type, auth: config.auth }).toEqual(read)
      await gateway.api("PATCH", `/sources/${written.id}`, {
        config: { auth_type: config.auth_type, auth: config.auth }
      })
      await gateway.api("PATCH", `/sources/${written.id}`, { config: { auth: config.auth } })
      const genuine = await sign(body, written.url)
      expect((await send(written, genuine)).status).toBe(200)
      expect((await send(written, forge(genuine))).status).toBe(401)
    })

    it("A provider's verification can be turned off and on by a change", async ({ create, gateway, send }) => {
      const source = await create(provider)
      const change = (config: object) => gateway.api("PATCH", `/sources/${source.id}`, { config })
      const genuine = await sign(body, source.url)
      const forged = forge(genuine)
      await change({ auth_type: null })
      expect((await send(source, forged)).status).toBe(200)
      const given = await change({ auth_type: read.auth_type, auth: provider.auth })
      expect({ auth_type: given.config.auth_type, auth: given.config.auth }).toEqual(read)
      expect((await send(source, genuine)).status).toBe(200)
      expect((await send(source, forged)).status).toBe(401)
    })

    it("The auth_type of a provider's source may be omitted, PROVIDER_SIGNATURE or the one that it reads", async ({
      create,
      send
    }) => {
      for (const auth_type of ["PROVIDER_SIGNATURE", read.auth_type]) {
        const source = await create(provider, auth_type)
        expect(source.config.auth_type).toBe(read.auth_type)
        expect((await send(source, await sign(body, source.url))).status).toBe(200)
      }
    })
  })
}

describe("Scope of a provider signature", () => {
  it("A signature is valid only near its timestamp", async ({ create, send }) => {
    const source = await create({ type: "STRIPE", auth: { webhook_secret_key: "whsec_old" } })
    const at = async (timestamp: number) => {
      const header = stripe.webhooks.generateTestHeaderString({ payload: "{}", secret: "whsec_old", timestamp })
      return (await send(source, posted("{}", ["Stripe-Signature", header]))).status
    }
    expect([await at(seconds() - 290), await at(seconds() - 310), await at(seconds() + 310)]).toEqual([200, 401, 401])
  })

  it("A Twilio signature covers the called URL with its query and the path behind the source", async ({
    create,
    send
  }) => {
    const source = await create({ type: "TWILIO", auth: { auth_token: twilioToken } })
    const genuine = await providers.find(({ type }) => type === "TWILIO")!.sign("A=7", source.url)
    expect((await send(source, genuine)).status).toBe(200)
    for (const suffix of ["/voice", "/voice?foo=1&bar=c", "/other?foo=1&bar=a%20b", "/voice?foo=1&bar=a%20b&x="]) {
      expect([suffix, (await send(source, { ...genuine, suffix })).status]).toEqual([suffix, 401])
    }
  })

  it("A signature with one source's secret is not valid for another source", async ({ create, send }) => {
    const mine = await create({ type: "GITHUB", auth: { secret: "the secret of mine" } })
    const other = await create({ type: "GITHUB", auth: { secret: "the secret of the other" } })
    const genuine = posted("{}", ["X-Hub-Signature-256", await signGithub("the secret of mine", "{}")])
    expect([(await send(mine, genuine)).status, (await send(other, genuine)).status]).toEqual([200, 401])
  })

  it("A repeated signature header is refused", async ({ create, send }) => {
    const source = await create({ type: "GITHUB", auth: { secret: "the secret of mine" } })
    const signature = ["X-Hub-Signature-256", await signGithub("the secret of mine", "{}")] as const
    expect((await send(source, posted("{}", signature, signature))).status).toBe(401)
  })

  it("A changed provider secret applies from the next request on", async ({ create, gateway, send }) => {
    const source = await create({ type: "GITHUB", auth: { secret: "the first secret" } })
    const signed = async (secret: string) =>
      (await send(source, posted("{}", ["X-Hub-Signature-256", await signGithub(secret, "{}")]))).status
    expect(await signed("the first secret")).toBe(200)
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { auth: { secret: "the second secret" } } })
    expect([await signed("the first secret"), await signed("the second secret")]).toEqual([401, 200])
  })

  it("A source whose type changes to another provider is verified as that provider", async ({
    create,
    gateway,
    send
  }) => {
    const source = await create({ type: "GITHUB", auth: { secret: "one secret for both" } })
    await gateway.api("PATCH", `/sources/${source.id}`, { type: "STRIPE" })
    const asGithub = posted("{}", ["X-Hub-Signature-256", await signGithub("one secret for both", "{}")])
    const header = stripe.webhooks.generateTestHeaderString({ payload: "{}", secret: "one secret for both" })
    const asStripe = posted("{}", ["Stripe-Signature", header])
    expect([(await send(source, asGithub)).status, (await send(source, asStripe)).status]).toEqual([401, 200])
  })

  it("A provider's type with a generic verification accepts only that verification", async ({ create, send }) => {
    const source = await create({ type: "GITHUB", auth: { api_key: "a key in its place" } }, "API_KEY")
    expect(source.config.auth_type).toBe("API_KEY")
    const signature = await signGithub("a key in its place", "{}")
    expect((await send(source, posted("{}", ["X-Api-Key", "a key in its place"]))).status).toBe(200)
    expect((await send(source, posted("{}", ["X-Hub-Signature-256", signature]))).status).toBe(401)
  })

  it("A source of an unknown type is verified by its settings", async ({ gateway, send }) => {
    const source = await gateway.api("POST", "/sources", {
      name: gateway.name("source"),
      type: "SOME_NEW_PROVIDER",
      config: { auth_type: "API_KEY", auth: { header_key: "x-new", api_key: "new-provider-key" } }
    })
    expect((await send(source, posted("{}", ["X-New", "new-provider-key"]))).status).toBe(200)
    expect((await send(source, posted("{}", ["X-New", "another-key"]))).status).toBe(401)
  })
})

describe("Invalid provider settings", () => {
  const wrong: ReadonlyArray<readonly [name: string, type: string, config: object, path: string]> = [
    ["no secret", "STRIPE", { auth_type: "PROVIDER_SIGNATURE", auth: {} }, "config.auth.webhook_secret_key"],
    ["an empty secret", "GITHUB", { auth: { webhook_secret_key: "" } }, "config.auth.webhook_secret_key"],
    ["a blank secret", "SLACK", { auth: { webhook_secret_key: "  " } }, "config.auth.webhook_secret_key"],
    ["a secret that is not text", "SLACK", { auth: { webhook_secret_key: 1 } }, "config.auth.webhook_secret_key"],
    [
      "a secret that is not base64",
      "SVIX",
      { auth: { webhook_secret_key: "whsec_!" } },
      "config.auth.webhook_secret_key"
    ],
    ["an invalid key", "DISCORD", { auth: { public_key: "00".repeat(31) } }, "config.auth.public_key"],
    ["a key of small order", "DISCORD", { auth: { public_key: "00".repeat(32) } }, "config.auth.public_key"],
    ["a key on another curve", "SENDGRID", { auth: { public_key: fusionPublic } }, "config.auth.public_key"],
    ["a header name", "GITHUB", { auth: { secret: "a secret", header_key: "x-mine" } }, "config.auth.header_key"],
    ["an algorithm", "GITHUB", { auth: { secret: "a secret", algorithm: "md5" } }, "config.auth.algorithm"],
    ["another provider's name", "GITHUB", { auth: { secret: "a secret", provider: "STRIPE" } }, "config.auth.provider"],
    ["a mask without a stored secret", "GITHUB", { auth: { secret: "****abcd" } }, "config.auth.secret"],
    ["a user name with a colon", "POSTMARK", { auth: { username: "a:b", password: "c" } }, "config.auth.username"],
    ["a missing password", "POSTMARK", { auth: { username: "a" } }, "config.auth.password"],
    ["a public key as the secret", "FUSIONAUTH", { auth: { secret: fusionPublic } }, "config.auth.secret"],
    [
      "PROVIDER_SIGNATURE without a provider",
      "WEBHOOK",
      { auth_type: "PROVIDER_SIGNATURE", auth: {} },
      "config.auth_type"
    ]
  ]
  for (const [name, type, config, path] of wrong) {
    it(`Provider settings of ${type} are refused: ${name}`, async ({ gateway }) => {
      const { body, status } = await gateway.call("POST", "/sources", { name: gateway.name("source"), type, config })
      expect([status, body.code]).toEqual([400, "VALIDATION_ERROR"])
      expect(body.data.fields).toContainEqual(expect.objectContaining({ path }))
    })
  }

  it("A refused change of a source changes nothing", async ({ create, gateway }) => {
    const source = await create({ type: "GITHUB", auth: { secret: "the secret that stays" } })
    const before = await gateway.state(["sources"])
    for (const config of [{ auth: {} }, { auth: { secret: "****xxxx" } }, { auth_type: "BASIC_AUTH" }]) {
      expect((await gateway.call("PATCH", `/sources/${source.id}`, { config })).status).toBe(400)
    }
    expect(await gateway.state(["sources"])).toEqual(before)
  })

  it("No API answer and no stored row contains a provider secret", async ({ create, gateway }) => {
    const secret = "a-secret-that-nobody-may-read"
    const source = await create({ type: "GITHUB", auth: { secret } })
    const answers = [
      source,
      await gateway.api("GET", `/sources/${source.id}`),
      await gateway.api("GET", "/sources"),
      await gateway.api("PUT", `/sources/${source.id}/disable`),
      await gateway.sql("select row_to_json(s)::text as row from sources s")
    ]
    expect(JSON.stringify(answers)).not.toContain(secret)
    expect(JSON.stringify(answers[1])).toContain("****read")
  })
})
