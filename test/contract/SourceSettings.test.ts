import { generateKeyPairSync } from "node:crypto"
import { providerOf, providers } from "@tidegate/verification/Providers"
import { describe, expect } from "vitest"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** Settings of a provider's verification that stand where they have no effect leave no source open; a record read is a record to write. */

const value = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const topic = "arn:aws:sns:eu-central-1:123456789012:orders"
const ed25519 = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "der" }).subarray(-32)
const p256 = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey

/** Settings that every member of the type's `auth` has a value in; of two that exclude each other, the first. */
const authOf = (type: string): Record<string, string> => {
  const settings = providerOf(type)!.settings
  const values: Record<string, string> = {
    webhook_id: "8PT597110X687430LKGECATA",
    topic_arn: topic,
    public_key: type.startsWith("DISCORD")
      ? ed25519.toString("hex")
      : p256.export({ type: "spki", format: "der" }).toString("base64"),
    header_key: "x-okta-secret"
  }
  const named = settings.map(({ name }) => [name, values[name] ?? value] as const)
  return Object.fromEntries(type === "FUSIONAUTH" ? named.slice(0, 1) : named)
}

const types = providers.flatMap((provider) => provider.types)

const it = gatewayIt.extend(
  "create",
  ({ gateway }) =>
    (type: string, fields: object) =>
      gateway.call("POST", "/sources", { name: gateway.name("source"), type, ...fields })
)

describe("Source record written back", () => {
  it("A source of every type accepts its own record by PUT and PATCH and keeps verifying", async ({
    create,
    gateway
  }) => {
    for (const type of types) {
      const { body: made, status } = await create(type, { config: { auth: authOf(type) } })
      expect(status, `${type}: ${JSON.stringify(made)}`).toBe(200)
      const [{ auth: stored }] = await gateway.sql("select auth from sources where id = $1", [made.id])
      for (const [method, written] of [
        ["PUT", made],
        ["PATCH", made],
        ["PATCH", { config: made.config }],
        ["PATCH", { auth: made.config.auth }]
      ] as const) {
        const answer = await gateway.call(method, `/sources/${made.id}`, written)
        expect(answer, `${method} ${type}`).toMatchObject({ status: 200 })
        expect({ ...answer.body, updated_at: "" }, type).toEqual({ ...made, updated_at: "" })
      }
      expect(made.config.auth_type, type).not.toBeNull()
      expect(stored, type).not.toBeNull()
      const sent = await request(gateway.port, { path: `/e/${made.id}`, headers: [], body: '{"forged":true}' })
      expect(sent.status, type).toBe(401)
    }
  })

  it("A source without settings, of a type that needs none, accepts its own record", async ({ create, gateway }) => {
    for (const type of ["ASANA", "NOTION", "AWS_SNS"]) {
      const { body: made } = await create(type, {})
      expect([made.config.auth_type, made.config.auth]).toEqual(["HMAC", {}])
      expect((await gateway.call("PUT", `/sources/${made.id}`, made)).body.config).toEqual(made.config)
    }
  })
})

describe("Setting at a place without effect", () => {
  const cases: ReadonlyArray<readonly [type: string, fields: object, path: string, place: string]> = [
    ["PAYPAL", { config: { webhook_id: "8PT5" } }, "config.webhook_id", "config.auth.webhook_id"],
    ["PAYPAL", { webhook_id: "8PT5" }, "webhook_id", "config.auth.webhook_id"],
    ["AWS_SNS", { config: { topic_arn: topic } }, "config.topic_arn", "config.auth.topic_arn"],
    ["AWS_SNS", { topicArn: topic }, "topicArn", "config.auth.topic_arn"],
    ["AWS_SNS", { config: { auth: { topicArn: topic } } }, "config.auth.topicArn", "config.auth.topic_arn"],
    ["META", { config: { verify_token: value } }, "config.verify_token", "config.auth.verify_token"],
    ["META", { verify_token: value }, "verify_token", "config.auth.verify_token"],
    [
      "ASANA",
      { config: { auth: { webhookSecretKey: value } } },
      "config.auth.webhookSecretKey",
      "config.auth.webhook_secret_key"
    ],
    ["NOTION", { config: { auth: { webhook_secret_key: null } } }, "config.auth.webhook_secret_key", "config.auth"],
    ["GITHUB", { config: { authType: "HMAC" } }, "config.authType", "config.auth_type"],
    ["WEBHOOK", { config: { header_key: "x-s" } }, "config.header_key", "config.auth.header_key"]
  ]
  for (const [type, fields, path, place] of cases) {
    it(`A setting at a place without effect is refused for ${type}: ${path}`, async ({ create, gateway }) => {
      const open = (await create(type, { config: { auth_type: null } })).body
      for (const answer of [
        await create(type, fields),
        await gateway.call("PUT", "/sources", { name: gateway.name("source"), type, ...fields }),
        await gateway.call("PATCH", `/sources/${open.id}`, fields),
        await gateway.call("PUT", `/sources/${open.id}`, { ...open, ...fields })
      ]) {
        expect([answer.status, answer.body.code]).toEqual([400, "VALIDATION_ERROR"])
        const fault = answer.body.data.fields.find((fault: { readonly path: string }) => fault.path === path)
        expect(fault?.message).toContain(place)
      }
    })
  }
})
