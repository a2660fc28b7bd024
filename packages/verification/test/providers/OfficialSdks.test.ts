import { describe, expect, it, vi } from "@effect/vitest"
import { validateSignature } from "@line/bot-sdk"
import Mux from "@mux/mux-node"
import { sign as signGithub, verify as verifyGithub } from "@octokit/webhooks-methods"
import { Paddle } from "@paddle/paddle-node-sdk"
import { isValidSlackRequest } from "@slack/bolt"
import { createWorkOS } from "@workos-inc/node"
import OpenAI from "openai"
import Razorpay from "razorpay"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { Stripe } from "stripe"
import { Webhook as SvixWebhook } from "svix"
import { nameOf, signatureOf, vectors, verdict } from "./Vectors.ts"
import type { Vector } from "./Vectors.ts"

interface Sent {
  readonly secret: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** Whether the provider's own library takes the request. The clock is the vector's. */
type Accepts = (sent: Sent) => unknown

const stripe = new Stripe("sk_test_none")
const workos = createWorkOS({ apiKey: "sk_test_none", clientId: "client_none" })
const openai = new OpenAI({ apiKey: "none" })
const mux = new Mux({ tokenId: "none", tokenSecret: "none" })
const paddle = new Paddle("none")

const accepts: Readonly<Record<string, Accepts>> = {
  STRIPE: ({ body, headers, secret }) =>
    stripe.webhooks.constructEvent(body, headers["stripe-signature"]!, secret, 300, undefined, Date.now()),
  GITHUB: ({ body, headers, secret }) => verifyGithub(secret, body, headers["x-hub-signature-256"]!),
  SLACK: ({ body, headers, secret }) =>
    isValidSlackRequest({
      signingSecret: secret,
      body,
      headers: {
        "x-slack-signature": headers["x-slack-signature"]!,
        "x-slack-request-timestamp": Number(headers["x-slack-request-timestamp"])
      }
    }),
  SVIX: ({ body, headers, secret }) => new SvixWebhook(secret).verify(body, headers),
  CLERK: ({ body, headers, secret }) => new SvixWebhook(secret).verify(body, headers),
  RESEND: ({ body, headers, secret }) => new SvixWebhook(secret).verify(body, headers),
  STANDARD: ({ body, headers, secret }) => new StandardWebhook(secret).verify(body, headers),
  STANDARD_WEBHOOKS: ({ body, headers, secret }) => new StandardWebhook(secret).verify(body, headers),
  REPLICATE: ({ body, headers, secret }) => new StandardWebhook(secret).verify(body, headers),
  OPENAI: ({ body, headers, secret }) => openai.webhooks.verifySignature(body, headers, secret),
  PADDLE: ({ body, headers, secret }) => paddle.webhooks.isSignatureValid(body, secret, headers["paddle-signature"]!),
  RAZORPAY: ({ body, headers, secret }) =>
    Razorpay.validateWebhookSignature(body, headers["x-razorpay-signature"]!, secret),
  LINE: ({ body, headers, secret }) => validateSignature(body, secret, headers["x-line-signature"]!),
  WORKOS: ({ body, headers, secret }) =>
    workos.webhooks.verifyHeader({
      payload: body,
      sigHeader: headers["workos-signature"]!,
      secret,
      tolerance: 300_000
    }),
  MUX: ({ body, headers, secret }) => mux.webhooks.verifySignature(body, headers, secret)
}

const library = async (type: string, sent: Sent, now: number): Promise<boolean> => {
  vi.useFakeTimers({ toFake: ["Date"], now: now * 1000 })
  try {
    const result = await accepts[type]!(sent)
    return result !== false
  } catch {
    return false
  } finally {
    vi.useRealTimers()
  }
}

const known = vectors.filter((vector) => Object.hasOwn(accepts, vector.type))

it("Every official library has a request to verify", () => {
  expect(Object.keys(accepts).filter((type) => !known.some((vector) => vector.type === type))).toStrictEqual([])
})

const sentOf = ({ auth, request }: Vector): Sent => ({
  secret: auth["webhook_secret_key"]!,
  body: request.body,
  headers: request.headers
})

/** What the library and we say about the same request. */
const both = async (vector: Vector, changed: Partial<Sent>, seconds = 0) => {
  const sent = { ...sentOf(vector), ...changed }
  const now = vector.request.now + seconds
  const ours = verdict(
    vector,
    { body: Buffer.from(sent.body), headers: sent.headers, nowSeconds: now },
    { webhook_secret_key: sent.secret }
  )
  return { library: await library(vector.type, sent, now), ours: ours === "verified" }
}

const yes = { library: true, ours: true }
const no = { library: false, ours: false }

describe.each(known.map((vector) => [nameOf(vector), vector] as const))(
  "%s and its provider's library",
  (_, vector) => {
    const { header, scheme, value } = signatureOf(vector)!

    it("The gateway and the provider's library accept the same genuine request", async () => {
      expect(await both(vector, {})).toStrictEqual(yes)
    })

    it("The gateway and the provider's library refuse a changed request and another secret", async () => {
      expect(await both(vector, { body: `${vector.request.body} ` })).toStrictEqual(no)
      expect(await both(vector, { body: vector.request.body.replace(/\w/, "~") })).toStrictEqual(no)
      const other = value.replaceAll(/(?<=[=,]|^)[0-9A-Za-z+/]{20,}/g, (text) =>
        text.replaceAll(/[0-9]/g, (digit) => (digit === "9" ? "0" : "9"))
      )
      expect(other).not.toBe(value)
      expect(await both(vector, { headers: { ...vector.request.headers, [header]: other } })).toStrictEqual(no)
      const secret = sentOf(vector).secret.replace(/^(whsec_)?./, "$1Z")
      expect(await both(vector, { secret })).toStrictEqual(no)
    })

    const { timestamp } = scheme
    // Paddle's library allows 5 seconds by default; ours allows the usual 5 minutes.
    if (timestamp !== null && vector.type !== "PADDLE") {
      it("The gateway and the provider's library refuse a request that is too old", async () => {
        expect(await both(vector, {}, timestamp.toleranceSeconds - 2)).toStrictEqual(yes)
        expect(await both(vector, {}, timestamp.toleranceSeconds + 2)).toStrictEqual(no)
      })
    }
  }
)

describe("Signatures of official libraries", () => {
  const now = 1_700_000_000
  const body = '{"name":"Zoë 🌊","amount":12.50}'
  const verifies = (type: string, secret: string, headers: Record<string, string>) =>
    verdict(
      { ...vectors.find((vector) => vector.type === type)!, auth: { webhook_secret_key: secret } },
      { body: Buffer.from(body), headers, nowSeconds: now }
    )

  it("A signature of the library stripe is verified", () => {
    const secret = "whsec_dGhpcyBpcyBub3QgZGVjb2RlZA=="
    const header = stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp: now })
    expect(verifies("STRIPE", secret, { "stripe-signature": header })).toBe("verified")
  })

  it("A signature of the library @octokit/webhooks-methods is verified", async () => {
    const signature = await signGithub("a secret, é", body)
    expect(verifies("GITHUB", "a secret, é", { "x-hub-signature-256": signature })).toBe("verified")
  })

  it("Signatures of the libraries svix and standardwebhooks are verified, with and without whsec_", () => {
    const bare = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    for (const secret of [bare, `whsec_${bare}`]) {
      const at = new Date(now * 1000)
      for (const [types, name, signature] of [
        [["SVIX", "CLERK", "RESEND"], "svix", new SvixWebhook(secret).sign("msg_1", at, body)],
        [["STANDARD", "REPLICATE"], "webhook", new StandardWebhook(secret).sign("msg_1", at, body)]
      ] as const) {
        const headers = {
          [`${name}-id`]: "msg_1",
          [`${name}-timestamp`]: String(now),
          [`${name}-signature`]: signature
        }
        for (const type of types) expect(verifies(type, secret, headers), type).toBe("verified")
      }
    }
  })

  it("A signature of the library workos is verified", async () => {
    const signature = await workos.webhooks.computeSignature(now * 1000, body, "workos-secret")
    const headers = { "workos-signature": `t=${now * 1000}, v1=${signature}` }
    expect(verifies("WORKOS", "workos-secret", headers)).toBe("verified")
  })
})
