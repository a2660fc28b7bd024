import { describe, expect } from "vitest"
import { differences } from "../support/DashboardActions.ts"
import { hasBrowser, heading, it, turnTo, violations } from "../support/DashboardPage.ts"
import { patience } from "../support/Waiting.ts"

/** Sources, destinations and connections are changed in the forms in which they are made. */

describe.skipIf(!hasBrowser)("Forms of resources", () => {
  it("A new destination is tried before it is stored: it fails, is corrected, and works", async ({
    gateway,
    page,
    target
  }) => {
    target.reply = (response, { headers }) =>
      void (headers["x-token"] === "right" ? response.end("welcome") : response.writeHead(401).end("who are you"))
    const name = gateway.name("tried")
    await turnTo(page, "destinations/new")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByLabel("url (required)", { exact: true }).fill(target.origin)
    await page.getByLabel("auth_type", { exact: true }).selectOption("CUSTOM_HEADER")
    await page.getByLabel("header_name", { exact: true }).fill("x-token")
    await page.getByLabel("value", { exact: true }).fill("wrong")
    await page.getByLabel("Body to send", { exact: true }).fill('{"order":7}')
    const result = page.getByRole("status", { name: "Result of the test delivery" })
    const trying = page.getByRole("button", { name: "Try it", exact: true })
    await trying.click()
    await result.getByText("Failed", { exact: true }).waitFor()
    await result.getByText("who are you").waitFor()
    await page.getByLabel("value", { exact: true }).fill("right")
    await trying.click()
    await result.getByText("Delivered", { exact: true }).waitFor()
    await result.getByText("welcome").waitFor()
    expect(target.received.map(({ body }) => body.toString())).toEqual(['{"order":7}', '{"order":7}'])
    const named = async () => (await gateway.api("GET", `/destinations?name=${name}`)).models
    expect(await named()).toEqual([])
    await page.getByRole("button", { name: "Create the destination" }).click()
    await expect.poll(named, { timeout: patience }).toMatchObject([{ config: { auth_type: "CUSTOM_HEADER" } }])
  })

  it("A destination's URL, rate and header are changed in its form, which sends only what was changed", async ({
    gateway,
    page,
    target
  }) => {
    const stored = await gateway.destination({ url: "https://api.example.com/hooks", timeout_ms: 9_000 })
    const config = async () => (await gateway.api("GET", `/destinations/${stored.id}`)).config
    await turnTo(page, `destinations/${stored.id}`)
    await page.getByRole("button", { name: "Change", exact: true }).click()
    const url = page.getByLabel("url (required)", { exact: true })
    expect(await url.inputValue()).toBe("https://api.example.com/hooks")
    const rate = page.getByLabel("rate_limit", { exact: true })
    await rate.fill("-1")
    const save = page.getByRole("button", { name: "Save", exact: true })
    await save.click()
    // What the gateway refuses stands at its field.
    await expect.poll(() => rate.getAttribute("aria-invalid"), { timeout: patience }).toBe("true")
    await rate.fill("7")
    await url.fill(target.origin)
    await page.getByLabel("auth_type", { exact: true }).selectOption("CUSTOM_HEADER")
    await page.getByLabel("header_name", { exact: true }).fill("x-token")
    await page.getByLabel("value", { exact: true }).fill("known-to-the-api")
    // Somebody else changes another member meanwhile: it stays.
    await gateway.api("PATCH", `/destinations/${stored.id}`, { config: { max_concurrency: 3 } })
    await save.click()
    await save.waitFor({ state: "detached" })
    expect(await config()).toMatchObject({
      url: target.origin,
      rate_limit: 7,
      timeout_ms: 9_000,
      max_concurrency: 3,
      auth_type: "CUSTOM_HEADER",
      auth: { header_name: "x-token", value: "****-api" }
    })

    // The secret stays, and a test delivery has it.
    await page.getByRole("button", { name: "Change", exact: true }).click()
    expect(await page.getByLabel("value", { exact: true }).inputValue()).toBe("****-api")
    await page.getByLabel("http_method", { exact: true }).selectOption("PUT")
    await page.getByRole("button", { name: "Try it", exact: true }).click()
    await page.getByRole("status", { name: "Result of the test delivery" }).getByText("Delivered").waitFor()
    const [tried] = target.received
    expect([tried!.method, tried!.headers["x-token"]]).toEqual(["PUT", "known-to-the-api"])
    expect(await config()).toMatchObject({ http_method: null })
    await page.getByRole("button", { name: "Cancel", exact: true }).click()
    await save.waitFor({ state: "detached" })
  })

  it("A refusal of a test delivery stands at its field, and is gone when the next one works", async ({
    gateway,
    page,
    target
  }) => {
    const stored = await gateway.destination({ url: target.origin })
    await turnTo(page, `destinations/${stored.id}`)
    await page.getByRole("button", { name: "Change", exact: true }).click()
    const rate = page.getByLabel("rate_limit", { exact: true })
    await rate.fill("-1")
    const trying = page.getByRole("button", { name: "Try it", exact: true })
    await trying.click()
    await expect.poll(() => rate.getAttribute("aria-invalid"), { timeout: patience }).toBe("true")
    await expect
      .poll(() => rate.evaluate("document.activeElement.name"), { timeout: patience })
      .toBe("config.rate_limit")
    // It is said once: at the field, and not beside the button as well.
    expect(await page.getByRole("alert").count()).toBe(1)
    await rate.fill("9")
    await trying.click()
    await page.getByRole("status", { name: "Result of the test delivery" }).getByText("Delivered").waitFor()
    expect(await rate.getAttribute("aria-invalid")).toBe("false")
    expect(target.received).toHaveLength(1)
  })

  it("A name that another destination has is refused at its field", async ({ gateway, page }) => {
    const [first, second] = [
      await gateway.destination({ url: "https://api.example.com" }),
      await gateway.destination({ url: "https://api.example.com" })
    ]
    await turnTo(page, `destinations/${first.id}`)
    await page.getByRole("button", { name: "Change", exact: true }).click()
    const name = page.getByLabel("Name", { exact: true })
    await name.fill(second.name)
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await expect.poll(() => name.getAttribute("aria-invalid"), { timeout: patience }).toBe("true")
    expect((await gateway.api("GET", `/destinations/${first.id}`)).name).toBe(first.name)
  })

  it("A number beyond 2^53 keeps its digits when the member around it is written, shown, changed, and read again", async ({
    gateway,
    page
  }) => {
    const name = gateway.name("numbered")
    const stored = async (id: string) =>
      (
        await fetch(`${gateway.origin}/v1/sources/${id}`, { headers: { authorization: `Bearer ${gateway.key}` } })
      ).text()
    await turnTo(page, "sources/new")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByLabel("Type", { exact: true }).selectOption("CRON")
    await page.getByLabel("cron (required)").fill("0 3 * * *")
    const body = page.getByLabel("body", { exact: true })
    await body.fill('{"order":12345678901234567891}')
    await page.getByRole("button", { name: "Create the source" }).click()
    await page.getByText('"order": 12345678901234567891').waitFor()
    const id = new URL(page.url()).pathname.split("/").at(-1)!
    await page.getByRole("button", { name: "Change", exact: true }).click()
    expect(JSON.stringify(await body.inputValue())).toContain("12345678901234567891")
    await body.fill('{"order":12345678901234567892,"rate":0.1234567890123456789}')
    await page.getByRole("button", { name: "Save", exact: true }).click()
    // The page reads it again over what it had read before.
    await page.getByText('"order": 12345678901234567892').waitFor()
    await page.getByText('"rate": 0.1234567890123456789').waitFor()
    expect(await stored(id)).toContain('"order":12345678901234567892')
    await page.getByRole("button", { name: "Change", exact: true }).click()
    await page.getByLabel("Description", { exact: true }).fill("Only this is changed")
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByText("Only this is changed").waitFor()
    expect(await stored(id)).toContain('"order":12345678901234567892')
  })

  it("A source and a connection are changed in their forms, and a NATS source offers its kinds of authentication", async ({
    gateway,
    page
  }) => {
    const source = await gateway.source()
    const other = await gateway.destination({ url: "https://api.example.com" })
    const connection = await gateway.connection(source, await gateway.destination({ url: "https://api.example.com" }))
    await turnTo(page, `sources/${source.id}`)
    await page.getByRole("button", { name: "Change", exact: true }).click()
    await page.getByLabel("Description", { exact: true }).fill("Orders of the shop")
    const save = page.getByRole("button", { name: "Save", exact: true })
    await save.click()
    await save.waitFor({ state: "detached" })
    expect(await gateway.api("GET", `/sources/${source.id}`)).toMatchObject({ description: "Orders of the shop" })

    await turnTo(page, `connections/${connection.id}`)
    await page.getByRole("button", { name: "Change", exact: true }).click()
    await page.getByLabel("Destination", { exact: true }).selectOption(other.id)
    await save.click()
    await save.waitFor({ state: "detached" })
    expect(await gateway.api("GET", `/connections/${connection.id}`)).toMatchObject({
      source_id: source.id,
      destination_id: other.id,
      name: connection.name
    })

    await turnTo(page, "sources/new")
    await page.getByLabel("Type", { exact: true }).selectOption("NATS_JETSTREAM")
    const kinds = page.getByLabel("auth_type", { exact: true })
    await expect
      .poll(() => kinds.locator("option").allTextContents(), { timeout: patience })
      .toEqual(["–", "BASIC_AUTH", "NATS_TOKEN", "NATS_NKEY"])
    await kinds.selectOption("NATS_TOKEN")
    await page
      .getByRole("group", { name: "auth (required)" })
      .getByLabel(/^token/)
      .waitFor()
    await kinds.selectOption("BASIC_AUTH")
    await page
      .getByRole("group", { name: "auth (required)" })
      .getByLabel(/^username/)
      .waitFor()
  })

  it("The type of a destination is found by the name that people search, and lists and pages show that name", async ({
    gateway,
    page
  }) => {
    await turnTo(page, "destinations/new")
    const search = page.getByLabel("Search the type by name")
    const type = page.getByLabel("Type", { exact: true })
    const sought = {
      slack: "CHAT_BOT",
      discord: "CHAT_WEBHOOK",
      telegram: "MESSENGER_MESSAGE",
      whatsapp: "MESSAGING_CHAT",
      s3: "OBJECT_STORE_S",
      postgres: "SQL_DATABASE",
      mariadb: "MYSQL",
      "google sheets": "SPREADSHEET",
      gmail: "MAILBOX_EMAIL",
      "pub/sub": "GCP_PUBSUB"
    }
    for (const [text, found] of Object.entries(sought)) {
      await search.fill(text)
      expect([text, await type.inputValue()]).toEqual([text, found])
    }
    await search.fill("no such service")
    await page.getByText("No type has this name: all are offered.").waitFor()
    const names = await type.locator("option").allInnerTexts()
    expect([names[0], new Set(names).size]).toEqual(["HTTP", names.length])
    await search.fill("tele")
    await page.getByRole("heading", { name: "Settings of Telegram" }).waitFor()
    await page.getByText("Sends a message to a chat as a bot (Telegram).").waitFor()
    expect(await violations(page)).toEqual([])

    const { id } = await gateway.destination({ url: "https://api.example.com" })
    const name = gateway.name("team chat")
    await gateway.api("PATCH", `/destinations/${id}`, {
      name,
      type: "MESSENGER_MESSAGE",
      config: { chat_id: "1", text_template: "Paid", auth_type: "CHAT_BOT_TOKEN", auth: { bot_token: "1:a-token" } }
    })
    await turnTo(page, `destinations?id=${id}`)
    await page.locator(".list .row").getByText("Telegram", { exact: true }).waitFor()
    await page.locator(".list .row").click()
    await page.getByText("Telegram (MESSENGER_MESSAGE)").waitFor()
    await page.getByRole("link", { name: "Show its charts" }).click()
    await heading(page, "Overview").waitFor()
    await page.getByRole("button", { name: /^Remove the filter Destination: / }).waitFor()
    await page.getByRole("link", { name: "Events delivered" }).click()
    await page.waitForURL(new RegExp(`destination_id=${id}`))
  })

  it("They carry out every action that the table names them for, and none that it does not have", ({ carried }) => {
    expect(differences("ResourceForms", carried)).toEqual({ missing: [], unknown: [] })
  })
})
