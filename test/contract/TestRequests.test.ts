import { generateKeyPairSync } from "node:crypto"
import { describe, expect } from "vitest"
import { providers } from "@tidegate/verification/Providers"
import { signingSecretOf } from "@tidegate/verification/Signing"
import { it as gatewayIt } from "../support/it.ts"

/** Test requests: what a member of a team sends to a source, as its provider would send it. */

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const publicKey = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "der" }).subarray(-32)

const rows = providers.flatMap(({ authType, settings, types }) =>
  types.map((type) => ({
    type,
    signs: signingSecretOf({ type, auth_type: authType }) !== null,
    auth: Object.fromEntries(settings.map(({ name }) => [name, name === "header_key" ? "x-own-key" : secret]))
  }))
)

const it = gatewayIt
  .extend(
    "make",
    ({ gateway }) =>
      (type: string, config: object = {}) =>
        gateway.api("POST", "/sources", { name: gateway.name(type.toLowerCase()), type, config })
  )
  .extend(
    "send",
    ({ gateway }) =>
      (id: string, body: object = {}) =>
        gateway.call("POST", `/sources/${id}/test-request`, body)
  )

describe("A test request", () => {
  it.for(rows.filter(({ signs }) => signs))(
    "Test request of a source of type $type is signed with its secret, and verified as any sender's",
    async ({ auth, type }, { make, send }) => {
      const { id } = await make(type, { auth })
      const { body, status } = await send(id)
      expect([status, body]).toMatchObject([
        200,
        { source_id: id, signed: true, status: "accepted", verified: true, rejection_cause: null }
      ])
      expect(body.answer.status).toBeLessThan(300)
    }
  )

  it("Test request has the sample's body and the mark of a test, and is delivered", async ({
    gateway,
    make,
    send,
    startTarget
  }) => {
    const target = await startTarget()
    const source = await make("STRIPE", { auth: { webhook_secret_key: secret } })
    const destination = await gateway.api("POST", "/destinations", {
      name: gateway.name("target"),
      type: "HTTP",
      config: { url: target.origin }
    })
    await gateway.connection(source, destination)
    const { body } = await send(source.id, { sample: "invoice.paid", headers: { "X-Trial": "1" } })
    expect(body).toMatchObject({ sample: "invoice.paid", signed: true, verified: true })
    const stored = await gateway.api("GET", `/requests/${body.request_id}`)
    expect(stored).toMatchObject({ source_id: source.id, status: "accepted", verified: true })
    expect(stored.data?.headers).toMatchObject({ "x-gateway-test-request": "true", "x-trial": "1" })
    expect(stored.data?.body).toMatchObject({ type: "invoice.paid", object: "event" })
    const [delivered] = await target.next()
    expect(JSON.parse(String(delivered?.body))).toMatchObject({ type: "invoice.paid" })
    expect(delivered?.headers["x-gateway-test-request"]).toBeUndefined()
  })

  it("Test request with a body, a path and a query of one's own is signed, with all digits of its numbers", async ({
    gateway,
    make,
    send
  }) => {
    const { id } = await make("GITHUB", { auth: { webhook_secret_key: secret } })
    const { body } = await send(id, { body: '{"n":12345678901234567890}', path: "/own", query: "a=1" })
    expect(body).toMatchObject({ sample: null, signed: true, verified: true })
    const stored = await gateway.api("GET", `/requests/${body.request_id}`)
    expect(stored).toMatchObject({ data: { path: "/own" } })
    const answer = await fetch(`${gateway.origin}/v1/requests/${body.request_id}/body`, {
      headers: { authorization: `Bearer ${gateway.key}` }
    })
    expect(await answer.text()).toBe('{"n":12345678901234567890}')
  })

  it("Test request that only the provider can sign is refused, and sent unsigned only if that is asked for", async ({
    make,
    send
  }) => {
    const { id } = await make("DISCORD", { auth: { public_key: publicKey.toString("hex") } })
    const refused = await send(id)
    expect([refused.status, refused.body]).toMatchObject([422, { code: "SIGNATURE_UNAVAILABLE" }])
    const unsigned = await send(id, { signed: false })
    expect([unsigned.status, unsigned.body]).toMatchObject([
      200,
      { signed: false, status: "rejected", verified: false, rejection_cause: "SOURCE_AUTH_FAILED" }
    ])
    expect(unsigned.body.answer.status).toBe(401)
  })

  it("Test request to a source that does not verify is accepted unsigned", async ({ make, send }) => {
    const { id } = await make("WEBHOOK")
    expect((await send(id)).body).toMatchObject({ sample: "test", signed: false, status: "accepted", verified: false })
  })

  it("Test request to a source that is disabled, or has no senders, is refused with the reason", async ({
    gateway,
    make,
    send
  }) => {
    const { id } = await make("WEBHOOK")
    await gateway.api("PUT", `/sources/${id}/disable`)
    const disabled = await send(id)
    expect([disabled.status, disabled.body.code]).toEqual([409, "SOURCE_DISABLED"])
    const scheduled = await make("CRON", { schedule: { cron: "0 0 1 1 *" } })
    const answer = await send(scheduled.id)
    expect([answer.status, answer.body.code]).toEqual([409, "SOURCE_WITHOUT_SENDERS"])
  })

  it("Test request above the source's rate limit is refused and not stored", async ({ gateway, make, send }) => {
    const { id } = await make("WEBHOOK", { rate_limit: 1, rate_limit_period: "hour" })
    expect((await send(id)).status).toBe(200)
    const second = await send(id)
    expect([second.status, second.body.code]).toEqual([429, "RATE_LIMITED"])
    expect((await gateway.api("GET", `/requests?source_id=${id}`)).models).toHaveLength(1)
  })

  it("Test request with invalid members is refused, each with its reason", async ({ make, send }) => {
    const { id } = await make("STRIPE", { auth: { webhook_secret_key: secret } })
    const faultsOf = async (body: object) => {
      const { body: answer, status } = await send(id, body)
      return [status, ...answer.data.fields.map(({ path }: { readonly path: string }) => path)]
    }
    expect(await faultsOf({ sample: "invoice.payd" })).toEqual([400, "sample"])
    expect(await faultsOf({ sample: "invoice.paid", body: {} })).toEqual([400, "sample"])
    expect(await faultsOf({ path: "/../src_other" })).toEqual([400, "path"])
    expect(await faultsOf({ query: "a b" })).toEqual([400, "query"])
    expect(await faultsOf({ headers: { Host: "elsewhere" } })).toEqual([400, "headers.host"])
    expect(await faultsOf({ headers: { "gateway-loop": "x" } })).toEqual([400, "headers.gateway-loop"])
    expect(await faultsOf({ headers: { a: "1\r\nb: 2" } })).toEqual([400, "headers"])
    expect(await faultsOf({ headers: { a: "x".repeat(25_000) } })).toEqual([400, "headers"])
  })

  it("Source takes 60 test requests in a minute, and says when to repeat the next one", async ({
    gateway,
    make,
    send
  }) => {
    const { id } = await make("WEBHOOK")
    // The limit is refilled by one each second: many more calls at once than that always reach it.
    const answers = await Promise.all(Array.from({ length: 200 }, () => send(id)))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    expect(refused[0]?.body).toMatchObject({ code: "RATE_LIMITED" })
    expect(refused[0]?.body.message).toMatch(/a source takes 60 test requests a minute; repeat the call after \d+ s/)
    expect((await send((await make("WEBHOOK")).id)).status).toBe(200)
    expect((await gateway.api("GET", `/requests/count?source_id=${id}`)).count).toBe(200 - refused.length)
  })

  it("Source types are listed with their names, what to do and their samples", async ({ gateway }) => {
    const { models } = await gateway.api("GET", "/source-types")
    const find = (type: string) => models.find((one) => one.type === type)
    expect(find("GITHUB")).toMatchObject({ name: "GitHub", group: "webhooks", signs_test_requests: true })
    expect(find("STRIPE")?.samples).toContain("payment_intent.succeeded")
    expect(find("PAYPAL")).toMatchObject({ name: "PayPal", signs_test_requests: false })
    expect(find("RABBITMQ")).toMatchObject({ group: "brokers", samples: [] })
  })
})
