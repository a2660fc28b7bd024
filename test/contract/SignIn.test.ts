import { expect } from "vitest"
import { audience, OpenIdProvider } from "../../packages/api/test/OpenIdProvider.ts"
import type { Body } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"

/** People sign in with ID tokens of a real provider, and are in their own teams what they are there. */

const people = {
  ada: { email: "Ada@Example.com", email_verified: true, name: "Ada" },
  eve: { email: "ada@example.com", email_verified: false, name: "Eve" },
  joan: { email: "joan@example.com", email_verified: true, name: "Joan" }
}

const it = gatewayIt
  .extend("provider", { scope: "file" }, async ({}, { onCleanup }) => {
    const provider = await OpenIdProvider.start(people)
    onCleanup(() => provider.close())
    return provider
  })
  .extend("settings", { scope: "file" }, ({ provider }) => ({
    TIDEGATE_OIDC_ISSUER: provider.issuer,
    TIDEGATE_OIDC_AUDIENCE: audience,
    TIDEGATE_SITE_ADMINS: "ops@example.com, ada@example.com",
    TIDEGATE_NEW_USERS: "team",
    TIDEGATE_DEMO_LOGIN: "off"
  }))
  .extend("as", ({ gateway }) => async (token: string, method: string, path: string, body?: object, team?: string) => {
    const answer = await fetch(`${gateway.origin}/v1${path}`, {
      method,
      headers: {
        ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
        "content-type": "application/json",
        ...(team === undefined ? {} : { "x-team-id": team })
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    return { status: answer.status, body: (await answer.json()) as Body }
  })

it("A new user gets a team and returns to it at the next sign-in", async ({ as, provider }) => {
  const first = await as("", "POST", "/auth/idp/login", {
    id_token: await provider.idToken("joan", "n-1"),
    nonce: "n-1"
  })
  expect(first.status).toBe(200)
  const { active_team_id, memberships, session, token, user } = first.body
  expect(user).toMatchObject({ email: "joan@example.com", name: "Joan", picture_url: null })
  expect(memberships).toEqual([{ team_id: active_team_id, role: "owner" }])
  expect((Date.parse(session.expires_at) - Date.now()) / 86_400_000).toBeCloseTo(7, 1)
  const made = await as(token, "POST", "/sources", { name: "joans" })
  expect(made.body.team_id).toBe(active_team_id)
  expect((await as(token, "GET", "/sources", undefined, "tm_demo")).body.code).toBe("TEAM_FORBIDDEN")

  await as(token, "PATCH", "/auth/me", { name: "Johanna" })
  const again = await as("", "POST", "/auth/idp/login", { credential: await provider.idToken("joan", "n-2") })
  expect(again.body).toMatchObject({ active_team_id, user: { id: user.id, name: "Johanna" } })
  expect(again.body.token).not.toBe(token)
})

it("A site admin is recognized by a verified address and may act in every existing team", async ({ as, provider }) => {
  const ada = await as("", "POST", "/auth/idp/login", { id_token: await provider.idToken("ada", "n") })
  expect(ada.body).toMatchObject({ active_team_id: "tm_demo", memberships: [] })
  expect((await as(ada.body.token, "POST", "/sources", { name: "by-an-admin" })).body.team_id).toBe("tm_demo")
  expect((await as(ada.body.token, "GET", "/sources", undefined, "tm_nowhere")).body.code).toBe("TEAM_FORBIDDEN")
  const eve = await as("", "POST", "/auth/idp/login", { id_token: await provider.idToken("eve", "n") })
  expect(eve.body.active_team_id).not.toBe("tm_demo")
  expect((await as(eve.body.token, "GET", "/sources", undefined, "tm_demo")).body.code).toBe("TEAM_FORBIDDEN")
})

it("An invalid ID token, or a request for another team, signs nobody in", async ({ as, gateway, provider }) => {
  const token = await provider.idToken("joan", "n")
  const refused = async (body: object) => {
    const answer = await as("", "POST", "/auth/idp/login", body)
    return [answer.status, answer.body.code]
  }
  expect(await refused({})).toEqual([400, "VALIDATION_ERROR"])
  expect(await refused({ id_token: "nonsense" })).toEqual([401, "INVALID_ID_TOKEN"])
  expect(await refused({ id_token: token, nonce: "another" })).toEqual([401, "INVALID_ID_TOKEN"])
  expect(await refused({ id_token: token, team_id: "tm_demo" })).toEqual([403, "TEAM_FORBIDDEN"])
  expect(await refused({ id_token: await provider.sign({ aud: "others" }) })).toEqual([401, "INVALID_ID_TOKEN"])
  const demo = await as("", "POST", "/auth/demo/login")
  expect([demo.status, demo.body.code]).toEqual([403, "LOGIN_DISABLED"])
  expect(await gateway.logged()).not.toContain(token)
})
