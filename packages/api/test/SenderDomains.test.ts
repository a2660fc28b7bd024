import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { SenderDomains } from "@tidegate/connectors/SenderDomains"
import { newId, prefixes } from "@tidegate/model/Ids"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { SignInSettings } from "../src/SignInSettings.ts"
import { call, layer as server, teams } from "./ControlServer.ts"

/** Who may have e-mail sent from the domains of the service itself. */

const own = "notify.service.example"
const admin = "root@service.example"

const settings = Layer.mergeAll(
  Layer.succeed(SenderDomains, new Set([own, "bücher.example"].map((one) => URL.parse(`http://${one}`)!.hostname))),
  Layer.succeed(SignInSettings, {
    demo: true,
    demoHosts: new Set(["127.0.0.1"]),
    demoThroughProxies: false,
    siteAdmins: new Set([admin]),
    foundsTeams: false,
    issuer: null,
    clientSecret: null
  })
)

const siteAdmin = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.user, Date.now())
  const token = `ses_${"a".repeat(64)}`
  yield* sql`insert into users (id, issuer, subject, name, email, email_verified, created_at, updated_at)
    values (${id}, 'https://issuer.test', ${id}, 'Root', ${admin}, true, now(), now())`
  yield* sql`insert into memberships values (${teams.a.id}, ${id}, 'owner', now())`
  yield* sql`insert into sessions values (${hashToken(token)}, ${id}, ${teams.a.id}, now(), now() + interval '1 hour')`
  return token
})

const mail = (name: string, from: string) => ({
  name,
  type: "EMAIL_API_EMAIL",
  config: { from, to: "ops@example.com", auth_type: "EMAIL_API_KEY", auth: { api_key: "SG.0000" } }
})

layer(Layer.provide(server, settings), { excludeTestServices: true })("Sender domains of the service", (it) => {
  it.effect.each([
    `orders@${own}`,
    `orders@${own.toUpperCase()}`,
    `orders@mail.${own}`,
    `orders@${own}.`,
    "orders@notify。service.example",
    "{{payload.who}}@bücher.example",
    "a@xn--bcher-kva.example"
  ])("Team may not send mail from a domain of the service: %s", (from) =>
    Effect.gen(function* () {
      const { body, status } = yield* call("POST", "/v1/destinations", { body: mail("mail", from) })
      expect([status, body.code]).toEqual([403, "ROLE_REQUIRED"])
      const flat = { ...mail("mail", from), config: { to: "ops@example.com" }, from }
      expect((yield* call("PUT", "/v1/destinations", { body: flat })).status).toBe(403)
    })
  )

  it.effect("Action may not send mail from a domain of the service, whoever saves it", () =>
    Effect.gen(function* () {
      const saved = (from: string) => ({
        name: "mail",
        provider_key: "email_api_email",
        action_key: "send",
        credentials: { api_key: "SG.0000" },
        inputs: { from, to: "ops@example.com" }
      })
      const { inputs, ...rest } = saved(`orders@${own}`)
      for (const body of [saved(`orders@${own}`), { ...rest, config: { inputs } }]) {
        expect((yield* call("POST", "/actions", { body })).body.code).toBe("ROLE_REQUIRED")
      }
      const created = yield* call("POST", "/actions", { body: saved("orders@example.com") })
      expect([created.status, created.body.code]).toEqual([201, undefined])
      expect((yield* call("PATCH", `/actions/${created.body.id}`, { body: { inputs } })).status).toBe(403)
    })
  )

  it.effect("Domain that only ends like a domain of the service is allowed", () =>
    Effect.gen(function* () {
      for (const [i, from] of [`orders@not${own}`, `${own}@example.com`, `orders@${own}.example.com`].entries()) {
        expect((yield* call("POST", "/v1/destinations", { body: mail(`own-${i}`, from) })).status).toBe(200)
      }
    })
  )

  it.effect("Site admin may send mail from a domain of the service, and nobody else changes that destination", () =>
    Effect.gen(function* () {
      const key = yield* siteAdmin
      const created = yield* call("POST", "/v1/destinations", { key, body: mail("service", `orders@${own}`) })
      expect(created.status).toBe(200)
      const at = `/v1/destinations/${created.body.id}`
      const change = { config: { to: "everybody@example.com" } }
      for (const method of ["PATCH", "PUT"] as const) {
        expect((yield* call(method, at, { body: change })).body.code).toBe("ROLE_REQUIRED")
      }
      expect((yield* call("PUT", "/v1/destinations", { body: { name: "service", ...change } })).status).toBe(403)
      expect((yield* call("GET", at)).body.config.to).toBe("ops@example.com")
      expect((yield* call("PATCH", at, { key, body: change })).status).toBe(200)
      // Another sender, and it is a team's own.
      expect((yield* call("PATCH", at, { body: { config: { from: "orders@example.com" } } })).status).toBe(200)
      expect((yield* call("PATCH", at, { body: change })).status).toBe(200)
      expect((yield* call("PATCH", at, { body: { config: { from: `orders@${own}` } } })).status).toBe(403)
    })
  )
})
