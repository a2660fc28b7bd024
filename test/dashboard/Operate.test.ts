import { describe, expect } from "vitest"
import { differences } from "../support/DashboardActions.ts"
import { FakeProviderServer } from "../support/FakeProviderServer.ts"
import {
  addFilter,
  firstRow,
  hasBrowser,
  heading,
  hostile,
  it as pageIt,
  open,
  settled,
  turnTo,
  usable
} from "../support/DashboardPage.ts"

const it = pageIt
  /** A source with a hostile name, where it is delivered to, and a request with a hostile body. */
  .extend("shop", { scope: "file" }, async ({ gateway, startTarget }) => {
    const target = await startTarget()
    const source = await gateway.api("POST", "/sources", { name: `Orders ${hostile}` })
    const connection = await gateway.connection(source, await gateway.destination({ url: target.origin }))
    const answer = await fetch(source.url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-hostile": hostile },
      body: `{"serial":12345678901234567890,"note":${JSON.stringify(hostile)}}`
    })
    const { request_id: request } = (await answer.json()) as { readonly request_id: string }
    await gateway.traced(request, 1)
    return { source, connection, request, target }
  })

  /** A provider that refuses the first subscription: a source with an account, whose channel does not work and has an alert. */
  .extend("forge", { scope: "file" }, async ({ gateway }, { onCleanup }) => {
    const server = await FakeProviderServer.start("a-token")
    onCleanup(() => server.close())
    const account = await gateway.api("POST", "/provider-accounts/credentials/connect", {
      provider_key: "git_host",
      name: `Bot ${hostile}`,
      base_url: server.address,
      credentials: { token: "a-token" }
    })
    server.provider.refuse(403, { path: /hooks/, times: 1_000 })
    const source = await gateway.api("POST", "/sources", {
      name: `Pushes ${hostile}`,
      type: "PROVIDER",
      config: {
        provider: {
          provider_key: "git_host",
          definition_key: "push",
          provider_account_id: account.id,
          inputs: { repository: "acme/shop" }
        }
      }
    })
    await gateway.eventually("an alert is open", async () => {
      const { models } = await gateway.api("GET", "/sources/channel-alerts")
      return models.length > 0 ? true : null
    })
    return { account, server, source }
  })

describe.skipIf(!hasBrowser)("Pages for operators", () => {
  it.for(["light", "dark"] as const)(
    "Everybody can use them in the %s theme",
    async (theme, { forge, gateway, page, shop }) => {
      const fixture = await gateway.api("POST", "/request-fixtures", {
        request_id: shop.request,
        name: `A ${theme} order`
      })
      const share = await gateway.api("POST", `/requests/${shop.request}/share`, { title: hostile })
      await usable(page, theme, [
        "",
        "team",
        "bins",
        "fixtures",
        `fixtures/${fixture.id}`,
        "shares",
        `shared/${share.token}`,
        "accounts",
        "accounts/new",
        `accounts/${forge.account.id}`,
        "channels",
        `channels/${forge.source.id}`,
        "alerts"
      ])
      expect(await page.title()).toBe("Tidegate")
    }
  )

  it("A bin shows what arrives while it is open, runs nothing of it, and is kept as a source", async ({ page }) => {
    await open(page, "Bins")
    await page.getByText("This browser has no bin.").waitFor()
    await page.getByRole("button", { name: "New bin" }).click()
    await heading(page, "Bin").waitFor()
    await page.getByText("Live", { exact: true }).waitFor()
    const url = await page.locator("dd code").first().textContent()
    await fetch(`${url}/first`, { method: "POST", body: `{"serial":12345678901234567890,"a":1.50}` })
    await page.getByText("POST /first").click()
    await page.getByText("12345678901234567890").waitFor()
    await page.getByText("1.50").waitFor()
    await fetch(`${url}/second`, { method: "POST", body: hostile })
    await page.getByText("POST /second").click()
    await page.getByText("document.title='run'").waitFor()
    expect([await page.title(), await page.locator("main img, main script").count()]).toEqual(["Tidegate", 0])
    await page.reload()
    await page.getByText("POST /second").waitFor()
    await page.getByRole("button", { name: "Keep it" }).click()
    await page.getByRole("button", { name: "Make it a source of the team?" }).click()
    await page.getByRole("heading", { level: 1, name: /^bin-/ }).waitFor()
    await open(page, "Bins")
    await page.getByText("This browser has no bin.").waitFor()
  })

  it("A request is kept as a fixture, renamed, sent through a connection, and deleted", async ({
    gateway,
    page,
    shop
  }) => {
    await turnTo(page, `requests/${shop.request}`)
    await page.getByRole("button", { name: "Keep as fixture…" }).click()
    const name = gateway.name("fixture")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByRole("button", { name: "Keep it" }).click()
    await page.getByRole("link", { name: "Open the fixture" }).click()
    await heading(page, name).waitFor()
    await page.getByText("12345678901234567890").waitFor()
    await page.getByRole("button", { name: "Edit as JSON" }).click()
    const field = page.getByLabel("Name and description as JSON")
    await field.fill((await field.inputValue()).replace('"description": null', '"description": "Sent by hand"'))
    await page.getByRole("button", { name: "Save" }).click()
    await field.waitFor({ state: "detached" })
    await page.getByLabel("Connection", { exact: true }).selectOption(shop.connection.id)
    await page.getByRole("button", { name: "Send", exact: true }).click()
    const sent = await page.getByRole("link", { name: /^req_/ }).last().textContent()
    await gateway.traced(sent!, 1)
    await open(page, "Fixtures")
    await page.locator(".row", { hasText: name }).filter({ hasText: "Sent by hand" }).click()
    await page.getByRole("button", { name: "Delete" }).click()
    await page.getByRole("button", { name: "Delete it for ever?" }).click()
    await heading(page, "Fixtures").waitFor()
    const { models } = await gateway.api("GET", `/request-fixtures?q=${encodeURIComponent(name)}`)
    expect(models).toEqual([])
  })

  it("A request is shared by a link that is shown once, and the share is ended", async ({
    gateway,
    page,
    shop,
    stranger
  }) => {
    await turnTo(page, `requests/${shop.request}`)
    await page.getByRole("button", { name: "Share…" }).click()
    const title = gateway.name("share")
    await page.getByLabel("Title", { exact: true }).fill(title)
    await page.getByLabel("Members to leave out").fill("serial, x-hostile")
    await page.getByRole("button", { name: "Make the link" }).click()
    const link = await page.getByLabel("Link", { exact: true }).inputValue()
    const forPrograms = await page.getByLabel("Link for programs").inputValue()
    expect(await (await fetch(forPrograms)).text()).not.toContain("12345678901234567890")
    const reader = await stranger(link)
    await heading(reader, title).waitFor()
    await reader.getByText("document.title='run'").first().waitFor()
    const seen = await reader.content()
    expect(seen).not.toContain("12345678901234567890")
    expect([await reader.title(), await reader.locator("main img, main script").count()]).toEqual(["Tidegate", 0])
    await open(page, "Shares")
    const row = page.getByRole("row").filter({ hasText: title })
    await row.getByRole("button", { name: "Revoke" }).click()
    await row.getByRole("button", { name: "End this share?" }).click()
    await row.getByText("Revoked").waitFor()
    expect((await fetch(forPrograms)).status).toBeGreaterThanOrEqual(404)
    await reader.reload()
    await reader.getByText("its share has ended").waitFor()
  })

  it("A channel that does not work says what it needs, is tried again, and its alert is resolved", async ({
    forge,
    gateway,
    page
  }) => {
    // The page may have been opened before the alert.
    await page.reload()
    await page.getByText("does not work").waitFor()
    await open(page, "Alerts")
    const alert = page.locator(".row", { hasText: "Provision failed" })
    await alert.getByText("Open", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Acknowledge" }).click()
    await alert.getByText("Acknowledged", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Acknowledge" }).waitFor({ state: "detached" })
    await open(page, "Channels")
    await page.locator(".row", { hasText: "Repair what the error says" }).click()
    await page
      .getByRole("link", { name: `Pushes ${hostile}` })
      .first()
      .click()
    // Nobody can post to a provider source, so its page offers no URL.
    await page.getByRole("link", { name: "Show how its items arrive" }).waitFor()
    expect(await page.getByText("curl").count()).toBe(0)
    await page.getByRole("link", { name: "Show how its items arrive" }).click()
    await page.locator("header .badge", { hasText: "Error" }).waitFor()
    forge.server.provider.recover()
    await page.getByRole("button", { name: "Try again" }).click()
    await gateway.eventually("the channel is active, and its alert is resolved", async () => {
      await forge.server.flush()
      const { channel } = await gateway.api("GET", `/sources/${forge.source.id}`)
      const { models } = await gateway.api("GET", "/sources/channel-alerts")
      return channel?.status === "active" && models.length === 0 ? true : null
    })
    await page.reload()
    await page.locator("header .badge", { hasText: "Active" }).waitFor()
    await page.getByRole("button", { name: "Poll now" }).click()
    await page.getByRole("table", { name: "Polls" }).getByText("Manual").first().waitFor()
    await open(page, "Alerts")
    await addFilter(page, "status:resolved")
    await page.locator(".row", { hasText: "Provision failed" }).waitFor()
  })

  it("An account is connected with its credentials, a refusal keeps what was written, and it is revoked and connected again", async ({
    forge,
    gateway,
    page
  }) => {
    await open(page, "Provider accounts")
    await page.getByRole("link", { name: "Connect an account" }).click()
    await page.getByLabel("Provider", { exact: true }).selectOption("git_host")
    const name = gateway.name("account")
    const fill = async (token: string) => {
      await page.getByLabel("How", { exact: true }).selectOption("api_key")
      await page.getByLabel("Base URL", { exact: true }).fill(forge.server.address)
      await page.locator('input[name="credential.token"]').fill(token)
    }
    await fill("wrong")
    await page.getByLabel("Name", { exact: true }).fill(name)
    forge.server.provider.refuse(401, { path: /user/ })
    await page.getByRole("button", { name: "Connect", exact: true }).click()
    await page.getByRole("alert").waitFor()
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe(name)
    await page.locator('input[name="credential.token"]').fill("a-token")
    await page.getByRole("button", { name: "Connect", exact: true }).click()
    await heading(page, name).waitFor()
    await page.getByRole("button", { name: "Revoke" }).click()
    await page.getByRole("button", { name: "Revoke it?" }).click()
    await page.getByText("It was revoked.").waitFor()
    await page.getByRole("button", { name: "Connect again…" }).click()
    await page.locator('input[name="credential.token"]').fill("a-token")
    await page.getByRole("button", { name: "Connect again", exact: true }).click()
    await page.locator("header .badge", { hasText: "Active" }).waitFor()
  })

  it("A consent begins at the provider's own page, with the client that was named", async ({ page }) => {
    await turnTo(page, "accounts/new")
    await page.getByLabel("Provider", { exact: true }).selectOption("git_host")
    await page.getByLabel("How", { exact: true }).selectOption("oauth2")
    await page.getByLabel("Client id", { exact: true }).fill("my-client")
    await page.getByRole("button", { name: "Ask for the consent" }).click()
    const link = page.getByRole("link", { name: "Give the consent at the provider" })
    const url = new URL((await link.getAttribute("href")) ?? "")
    expect([url.origin, url.searchParams.get("client_id")]).toEqual(["https://github.com", "my-client"])
  })

  it("The chat of alerts is set, never shown, and removed", async ({ gateway, page }) => {
    await open(page, "Alerts")
    await page.getByLabel("Incoming webhook of the chat").fill("https://chat.example.com/hooks/s3cret-of-the-chat")
    await page.getByRole("button", { name: "Set the chat" }).click()
    await page.getByRole("heading", { name: "Chat (set)" }).waitFor()
    expect(await page.content()).not.toContain("s3cret-of-the-chat")
    await page.getByRole("button", { name: "Remove the chat" }).click()
    await page.getByRole("button", { name: "Send nothing more to the chat?" }).click()
    await page.getByRole("heading", { name: "Chat (not set)" }).waitFor()
    const { chat_configured, chat_enabled } = await gateway.api("GET", "/sources/channel-settings")
    expect({ chat_configured, chat_enabled }).toEqual({ chat_configured: false, chat_enabled: false })
  })

  it("An owner makes a key that is shown once, sees what it called, and disables it", async ({
    gateway,
    shop,
    signedIn
  }) => {
    const page = await signedIn(await gateway.session("owner"))
    await open(page, "Team")
    await page.getByRole("button", { name: "New key…" }).click()
    const name = gateway.name("key")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByLabel("Hold a tunnel open").check()
    await page.getByLabel("Calls that it may execute").fill("POST:/v1/no-such-route")
    await page.getByRole("button", { name: "Make the key" }).click()
    await page.getByRole("alert").waitFor()
    await page.getByLabel("Calls that it may execute").fill("")
    await page.getByRole("button", { name: "Make the key" }).click()
    const key = await page.getByLabel("The new key").inputValue()
    expect((await gateway.call("GET", "/sources", undefined, key)).status).toBe(200)
    expect((await gateway.call("DELETE", `/sources/${shop.source.id}`, undefined, key)).status).toBe(403)
    await page.reload()
    await page.getByRole("link", { name }).click()
    await heading(page, name).waitFor()
    expect(await page.content()).not.toContain(key)
    await gateway.eventually("the calls are shown", async () => {
      await page.reload()
      await heading(page, name).waitFor()
      const calls = page.getByRole("table", { name: "Calls" })
      await settled(page)
      return (await calls.getByRole("row").filter({ hasText: "Scope missing" }).count()) === 1 ? true : null
    })
    await page.getByRole("button", { name: "Disable" }).click()
    await page.getByRole("button", { name: "Refuse all its calls?" }).click()
    await page.locator("header .badge", { hasText: "Disabled" }).waitFor()
    expect((await gateway.call("GET", "/sources", undefined, key)).status).toBe(401)
  })

  it("An owner adds a member and changes the role, and a member is not offered what only owners may do", async ({
    forge,
    gateway,
    signedIn
  }) => {
    const page = await signedIn(await gateway.session("owner"))
    await open(page, "Team")
    await page.getByRole("button", { name: "New member…" }).click()
    await page.getByLabel("E-mail address").fill("nobody@example.com")
    await page.getByRole("button", { name: "Add the member" }).click()
    // Without an issuer nobody new can sign in.
    await page.getByRole("alert").waitFor()
    const { email, name } = (await gateway.call("GET", "/auth/me", undefined, await gateway.session(null))).body.user
    await page.getByLabel("E-mail address").fill(email)
    await page.getByRole("button", { name: "Add the member" }).click()
    const row = page.getByRole("row").filter({ hasText: name })
    await row.getByRole("button", { name: "Make an owner" }).click()
    await row.getByRole("button", { name: "Make an owner?" }).click()
    await row.getByRole("button", { name: "Make a member" }).waitFor()
    const { data } = await gateway.api("GET", "/team/members")
    expect(data.find((one) => one.email === email)).toMatchObject({ role: "owner" })
    await row.getByRole("button", { name: "Make a member" }).click()
    await row.getByRole("button", { name: "Make a member?" }).click()
    await row.getByRole("button", { name: "Make an owner" }).waitFor()
    await row.getByRole("button", { name: "Remove" }).click()
    await row.getByRole("button", { name: "Remove this member?" }).click()
    await row.waitFor({ state: "detached" })

    const member = await signedIn(await gateway.session("member"))
    for (const [path, reason] of [
      ["team", "Only an owner who is signed in can change members."],
      ["team/keys/key_1", "Only an owner who is signed in can see project keys."],
      ["filters/new", "Only an owner who is signed in can change filters."],
      ["accounts/new", "Only an owner of the team can connect and revoke accounts."],
      [`accounts/${forge.account.id}`, "Only an owner of the team can connect and revoke accounts."],
      [`channels/${forge.source.id}`, "Only an owner of the team can try a channel again, poll, or change it."],
      ["alerts", "Only an owner of the team can change this."]
    ] as const) {
      await member.goto(`./${path}`)
      await member.getByText(reason).first().waitFor()
      await settled(member)
      expect([path, await member.locator("main").getByRole("button").count()]).toEqual([path, 0])
    }
  })

  it("A stored filter is made, tried on a request, changed with all its digits, and deleted", async ({
    gateway,
    shop,
    signedIn
  }) => {
    const page = await signedIn(await gateway.session("owner"))
    await open(page, "Filters")
    await page.getByRole("link", { name: "New filter" }).click()
    const name = gateway.name("filter").replaceAll(/[^\w-]/g, "-")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByLabel("Conditions as JSON").fill('{"body":{"serial":12345678901234567891}}')
    await page.getByRole("button", { name: "Create the filter" }).click()
    await heading(page, name).waitFor()
    await page.getByLabel("Id of the request").fill(shop.request)
    await page.getByRole("button", { name: "Try it" }).click()
    await page.getByText("It does not match").waitFor()
    await page.getByRole("cell", { name: "12345678901234567890" }).waitFor()
    await page.getByRole("button", { name: "Edit as JSON" }).click()
    const field = page.getByLabel("Name and conditions as JSON")
    await field.fill((await field.inputValue()).replace("12345678901234567891", "12345678901234567890"))
    await page.getByRole("button", { name: "Save" }).click()
    await field.waitFor({ state: "detached" })
    await page.getByRole("button", { name: "Try it" }).click()
    await page.getByText("It matches").waitFor()
    await open(page, "Filters")
    await page.locator(".row", { hasText: name }).click()
    await page.getByRole("button", { name: "Delete" }).click()
    await page.getByRole("button", { name: "Delete it?" }).click()
    await heading(page, "Filters").waitFor()
    expect((await gateway.api("GET", `/filters?name=${name}`)).models).toEqual([])
  })

  it("All runs that match a filter are cancelled after their number was shown, and the operation is listed", async ({
    gateway,
    page,
    shop
  }) => {
    const { id } = await gateway.api("POST", "/workflows", {
      name: gateway.name("waiting"),
      source_id: shop.source.id,
      steps: [{ id: "step_ask", kind: "wait", config: { for: "approval", amount: 1, unit: "hours" } }],
      edges: [{ source_type: "trigger", target_step_id: "step_ask" }]
    })
    const runs = [1, 2].map(async (): Promise<string> => (await gateway.api("POST", `/workflows/${id}/runs`, {})).id)
    const statusOf = async (run: string) => (await gateway.api("GET", `/workflows/${id}/runs/${run}`)).status as string
    await gateway.eventually("both wait", async () => {
      const statuses = await Promise.all((await Promise.all(runs)).map(statusOf))
      return statuses.every((status) => status === "running") ? true : null
    })
    await turnTo(page, "runs?status=running")
    await page.getByRole("button", { name: "Cancel all of them…" }).click()
    await page.getByRole("button", { name: "Cancel 2 runs" }).click()
    await page.locator("header .badge", { hasText: "Completed" }).waitFor()
    await gateway.eventually("both have ended", async () => {
      const statuses = await Promise.all((await Promise.all(runs)).map(statusOf))
      return statuses.every((status) => status === "failed") ? true : null
    })
    await open(page, "Bulk operations")
    await page.getByText("There is none of events yet.").waitFor()
    await page.getByLabel("Records", { exact: true }).selectOption("workflow_runs")
    await firstRow(page).click()
    await page.getByRole("link", { name: "Show runs" }).waitFor()
  })

  it("A project key sees what it may read, and one that may not read can sign out again", async ({
    gateway,
    signedIn,
    stranger
  }) => {
    const owner = await gateway.session("owner")
    const keyWith = async (...scopes: ReadonlyArray<string>): Promise<string> =>
      (await gateway.call("POST", "/project-api-keys", { name: gateway.name("key"), scopes }, owner)).body.data.api_key
    const page = await signedIn(await keyWith("control:read"))
    await open(page, "Sources")
    await open(page, "Alerts")
    // No project key may read them.
    await page.getByRole("alert").first().waitFor()
    const other = await stranger(`${gateway.origin}/dashboard/`)
    await other.getByLabel("API key").fill(await keyWith("tunnel:connect"))
    await other.getByRole("button", { name: "Sign in" }).click()
    await other.getByRole("alert").first().waitFor()
    await other.getByText("You may read none of what this is made of.").waitFor()
    await other.getByRole("button", { name: "Sign out" }).click()
    await other.getByLabel("API key").waitFor()
  })

  it("They carry out every action that the table names them for, and none that it does not have", ({ carried }) => {
    expect(differences("Operate", carried)).toEqual({ missing: [], unknown: [] })
  })
})
