import type { ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import { describe, expect } from "vitest"
import { dashboard, OpenIdProvider } from "../../packages/api/test/OpenIdProvider.ts"
import { Browser } from "../support/Browser.ts"
import type { Body } from "../support/Gateway.ts"
import { hasBrowser, heading, it as pageIt } from "../support/DashboardPage.ts"
import { request } from "../support/RawHttp.ts"
import { eventually } from "../support/Waiting.ts"

/** People sign in to the dashboard with a real identity provider, which is another site than the gateway. */

const people = {
  ada: { email: "ada@example.com", email_verified: true, name: "Ada" },
  eve: { email: "eve@example.com", email_verified: false, name: "Eve" },
  joan: { email: "joan@example.com", email_verified: true, name: "Joan" }
}

interface Answer {
  readonly status: number
  readonly code?: string
  readonly url?: string
  readonly cookies: ReadonlyArray<string>
}

const it = pageIt
  .extend("provider", { scope: "file" }, async ({}, { onCleanup }) => {
    const provider = await OpenIdProvider.start(people)
    onCleanup(() => provider.close())
    return provider
  })
  .extend("settings", { scope: "file" }, ({ provider }) => ({
    TIDEGATE_OIDC_ISSUER: provider.issuer,
    TIDEGATE_OIDC_AUDIENCE: dashboard.id,
    TIDEGATE_OIDC_CLIENT_SECRET: dashboard.secret
  }))
  /** The gateway by the name of its public URL, which the provider knows. */
  .extend("site", { scope: "file" }, ({ gateway, provider }) => {
    const site = `http://localhost:${gateway.port}`
    provider.register(`${site}/dashboard/signed-in`)
    return site
  })
  /** A member of the team who has not signed in yet, as an owner adds them. */
  .extend("invite", ({ gateway }) => async (email: string) => {
    const owner = await gateway.session("owner")
    const added = await gateway.call("POST", "/team/members", { email, role: "member" }, owner)
    expect(added.status).toBe(200)
    return owner
  })
  /** Calls the gateway as its page does, with a cookie. */
  .extend("post", ({ site }) => async (path: string, body: object, cookie = ""): Promise<Answer> => {
    const answer = await fetch(`${site}/dashboard/${path}`, {
      method: "POST",
      headers: { "x-tidegate-dashboard": "1", "content-type": "application/json", origin: site, cookie },
      body: JSON.stringify(body)
    })
    return {
      status: answer.status,
      cookies: answer.headers.getSetCookie(),
      ...((await answer.json()) as Pick<Answer, "code" | "url">)
    }
  })
  /** Starts a sign-in: its cookie, and the URL at the provider. */
  .extend("begin", ({ post }) => async () => {
    const { cookies, url } = await post("sign-in/begin", {})
    return { cookie: cookies[0]!.split(";", 1)[0]!, attributes: cookies[0]!, url: new URL(url!) }
  })
  /** Signs somebody in at the provider: the answer that the browser brings back. */
  .extend("consent", ({ provider }) => async (url: URL, login: string): Promise<URLSearchParams> => {
    const back = await new Browser().consent(provider.issuer, url.href, login)
    expect(back.pathname).toBe("/dashboard/signed-in")
    return back.searchParams
  })
  .extend(
    "finish",
    ({ post }) =>
      (answer: URLSearchParams, cookie?: string) =>
        post("sign-in/finish", { answer: answer.toString() }, cookie)
  )

/** Nobody is signed in, and this sign-in is over in the browser. */
const refused = ({ code, cookies, status }: Answer) => {
  expect(cookies).toEqual([expect.stringMatching(/^tidegate_sign_in=; Max-Age=0;/)])
  return [status, code]
}

describe("Sign-in to the dashboard with an identity provider", () => {
  it.skipIf(!hasBrowser)("A member signs in with the provider", async ({ invite, site, stranger }) => {
    await invite("ada@example.com")
    const page = await stranger(`${site}/dashboard/`)
    await page.getByRole("button", { name: "Sign in with your organization" }).click()
    await page.locator('input[name="login"]').fill("ada")
    await page.locator('input[name="password"]').fill("any")
    await page.getByRole("button", { name: "Sign-in" }).click()
    await page.getByRole("button", { name: "Continue" }).click()
    await heading(page, "Overview").waitFor()
    expect(page.url()).toBe(`${site}/dashboard/`)
    expect(await page.context().cookies(`${site}/v1/auth/me`)).toMatchObject([
      { name: "tidegate_session", httpOnly: true, sameSite: "Strict" }
    ])
    expect(await page.context().cookies(`${site}/dashboard/sign-in/finish`)).toEqual([])
  })

  it.skipIf(!hasBrowser)("A stranger's sign-in fails, and the page says why", async ({ site, stranger }) => {
    const page = await stranger(`${site}/dashboard/signed-in?error=access_denied&state=none`)
    await page.getByRole("alert").getByText("no sign-in was started in this browser").waitFor()
    expect(page.url()).toBe(`${site}/dashboard/`)
  })

  it("A removed member is out at once, and cannot sign in again", async ({ begin, consent, finish, invite, site }) => {
    const owner = await invite("joan@example.com")
    const { attributes, cookie, url } = await begin()
    expect(attributes).toMatch(/; Max-Age=600; Path=\/dashboard\/sign-in; HttpOnly; SameSite=Strict$/)
    const { cookies, status } = await finish(await consent(url, "joan"), cookie)
    expect(status).toBe(200)
    const session = cookies.find((one) => one.startsWith("tidegate_session="))?.split(";", 1)[0] ?? ""
    const call = async (path: string, headers: Record<string, string>, method = "GET") => {
      const answer = await fetch(`${site}/v1${path}`, { method, headers })
      return { status: answer.status, body: (await answer.json()) as Body }
    }
    const asJoan = { "x-tidegate-dashboard": "1", cookie: session }
    expect((await call("/auth/me", asJoan)).body.user).toMatchObject({ email: "joan@example.com", name: "Joan" })
    expect((await call("/sources", asJoan)).status).toBe(200)

    const asOwner = { authorization: `Bearer ${owner}` }
    const { data } = (await call("/team/members", asOwner)).body
    const { id } = data.find(({ email }: { readonly email: string }) => email === "joan@example.com")
    expect((await call(`/team/members/${id}`, asOwner, "DELETE")).status).toBe(200)
    expect((await call("/sources", asJoan)).body.code).toBe("TEAM_FORBIDDEN")
    const again = await begin()
    expect(refused(await finish(await consent(again.url, "joan"), again.cookie))).toEqual([403, "TEAM_FORBIDDEN"])
  })

  it("An address that the provider has not verified lets nobody in", async ({ begin, consent, finish, invite }) => {
    await invite("eve@example.com")
    const { cookie, url } = await begin()
    expect(refused(await finish(await consent(url, "eve"), cookie))).toEqual([403, "TEAM_FORBIDDEN"])
  })

  it("Answers that do not belong to the browser's own sign-in are refused", async ({
    begin,
    consent,
    finish,
    invite
  }) => {
    await invite("ada@example.com")
    const other = await begin()
    const theirs = await consent(other.url, "ada")
    // Without a sign-in of one's own, and with somebody else's answer, as a link of another site brings it.
    expect(refused(await finish(theirs))).toEqual([400, "OAUTH2_STATE_INVALID"])
    expect(refused(await finish(theirs, (await begin()).cookie))).toEqual([400, "OAUTH2_STATE_INVALID"])
    // With one's own state, but the code of somebody else: it was asked for with another verifier.
    const own = await begin()
    const mixed = new URLSearchParams(theirs)
    mixed.set("state", own.url.searchParams.get("state")!)
    expect(refused(await finish(mixed, own.cookie))).toEqual([502, "OAUTH2_HANDSHAKE_FAILED"])
    // From another issuer, or from nobody.
    for (const [change, code] of [
      [{ iss: "https://issuer.example" }, "OAUTH2_STATE_INVALID"],
      [{ iss: "" }, "OAUTH2_STATE_INVALID"],
      [{ code: "" }, "OAUTH2_STATE_INVALID"],
      [{ error: "access_denied" }, "OAUTH2_HANDSHAKE_FAILED"]
    ] as const) {
      const { cookie, url } = await begin()
      const answer = new URLSearchParams({ ...Object.fromEntries(await consent(url, "ada")), ...change })
      expect([change, refused(await finish(answer, cookie))[1]]).toEqual([change, code])
    }
  })

  it("A sign-in is good for one answer", async ({ begin, consent, finish, invite }) => {
    await invite("ada@example.com")
    const { cookie, url } = await begin()
    const answer = await consent(url, "ada")
    expect((await finish(answer, cookie)).status).toBe(200)
    expect(refused(await finish(answer, cookie))).toEqual([400, "OAUTH2_STATE_INVALID"])
    // A wrong answer ends it, too: nobody can try several.
    const tried = await begin()
    expect(refused(await finish(new URLSearchParams({ state: "guessed" }), tried.cookie))[0]).toBe(400)
    const right = await consent(tried.url, "ada")
    expect(refused(await finish(right, tried.cookie))).toEqual([400, "OAUTH2_STATE_INVALID"])
  })

  it("An ID token of another issuer, or for another sign-in, lets nobody in", async ({
    begin,
    finish,
    onTestFinished,
    provider,
    site
  }) => {
    const stranger = await OpenIdProvider.start(people)
    onTestFinished(async () => {
      provider.register(`${site}/dashboard/signed-in`)
      await stranger.close()
    })
    const claims = { iss: provider.issuer, aud: dashboard.id, ...people.ada }
    for (const [signer, nonceOf] of [
      [stranger, (nonce: string) => nonce],
      [provider, () => "of another sign-in"]
    ] as const) {
      const { cookie, url } = await begin()
      const id_token = await signer.sign({ ...claims, nonce: nonceOf(url.searchParams.get("nonce")!) })
      provider.answerWith((_, response) => {
        response.setHeader("content-type", "application/json").end(JSON.stringify({ id_token }))
      })
      const state = url.searchParams.get("state")!
      const answer = new URLSearchParams({ state, code: "any", iss: provider.issuer })
      expect(refused(await finish(answer, cookie))).toEqual([401, "INVALID_ID_TOKEN"])
    }
  })

  it("An address whose sign-ins all wait for the provider keeps nobody else from signing in", async ({
    begin,
    finish,
    gateway,
    invite,
    onTestFinished,
    provider,
    site
  }) => {
    await invite("ada@example.com")
    const [own, others] = [await begin(), await Promise.all(Array.from({ length: 80 }, begin))]
    const answerOf = ({ url }: typeof own, code: string): URLSearchParams =>
      new URLSearchParams({ state: url.searchParams.get("state")!, code, iss: provider.issuer })
    const nonce = own.url.searchParams.get("nonce")!
    const id_token = await provider.sign({ aud: dashboard.id, ...people.ada, nonce })
    const held: Array<ServerResponse> = []
    provider.answerWith((request, response) => {
      void text(request).then((asked) => {
        if (asked.includes("code=stuck")) held.push(response)
        else response.setHeader("content-type", "application/json").end(JSON.stringify({ id_token }))
      })
    })
    onTestFinished(() => provider.register(`${site}/dashboard/signed-in`))
    let refusals = 0
    const theirs = others.map(async (one) => {
      const headers = { host: new URL(site).host, "x-tidegate-dashboard": "1", origin: site, cookie: one.cookie }
      const { status } = await request(gateway.port, {
        path: "/dashboard/sign-in/finish",
        headers: [...Object.entries(headers), ["content-type", "application/json"]],
        body: JSON.stringify({ answer: answerOf(one, "stuck").toString() }),
        from: "127.0.0.2"
      })
      if (status === 503) refusals++
    })
    // No more of them may wait than that: the others are refused at once.
    await eventually("others are refused", () => (held.length > 0 && refusals >= 8) || null)
    expect((await finish(answerOf(own, "mine"), own.cookie)).status).toBe(200)
    provider.answerWith((_, response) => void response.writeHead(500).end())
    for (const response of held) response.writeHead(500).end()
    await Promise.all(theirs)
  })

  it("Only the dashboard's page begins a sign-in, at the gateway's public address", async ({ gateway, post, site }) => {
    const foreign = await fetch(`${site}/dashboard/sign-in/begin`, { method: "POST" })
    expect([foreign.status, foreign.headers.getSetCookie()]).toEqual([404, []])
    const byAddress = await fetch(`${gateway.origin}/dashboard/sign-in/begin`, {
      method: "POST",
      headers: { "x-tidegate-dashboard": "1", origin: gateway.origin }
    })
    expect([byAddress.status, ((await byAddress.json()) as Body).message]).toEqual([
      403,
      `the identity provider leads back to ${site}/dashboard/: sign in there`
    ])
    expect((await post("sign-in/finish", {}, "tidegate_sign_in=AAAA")).status).toBe(400)
    expect(await gateway.logged()).not.toContain(dashboard.secret)
  })
})
