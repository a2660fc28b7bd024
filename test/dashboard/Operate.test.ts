import { describe, expect } from "vitest"
import { hasBrowser, heading, hostile, it as pageIt, open, usable } from "../support/DashboardPage.ts"

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

describe.skipIf(!hasBrowser)("Pages for operators", () => {
  it.for(["light", "dark"] as const)(
    "Everybody can use them in the %s theme",
    async (theme, { gateway, page, shop }) => {
      const fixture = await gateway.api("POST", "/request-fixtures", {
        request_id: shop.request,
        name: `A ${theme} order`
      })
      await gateway.api("POST", `/requests/${shop.request}/share`, { title: hostile })
      await usable(page, theme, ["team", "bins", "bins/src_none", "fixtures", `fixtures/${fixture.id}`, "shares"])
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
    await page.goto(`./requests/${shop.request}`)
    await page.getByRole("button", { name: "Keep as fixture…" }).click()
    const name = gateway.name("fixture")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByRole("button", { name: "Keep it" }).click()
    await page.getByRole("link", { name: "Open the fixture" }).click()
    await heading(page, name).waitFor()
    await page.getByText("12345678901234567890").waitFor()
    await page.getByRole("button", { name: "Change" }).click()
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

  it("A request is shared by a link that is shown once, and the share is ended", async ({ gateway, page, shop }) => {
    await page.goto(`./requests/${shop.request}`)
    await page.getByRole("button", { name: "Share…" }).click()
    const title = gateway.name("share")
    await page.getByLabel("Title", { exact: true }).fill(title)
    await page.getByLabel("Members to leave out").fill("serial, x-hostile")
    await page.getByRole("button", { name: "Make the link" }).click()
    const link = await page.getByLabel("Link", { exact: true }).inputValue()
    const shared = await (await fetch(link)).text()
    expect(shared).toContain(title)
    expect(shared).not.toContain("12345678901234567890")
    await open(page, "Shares")
    const row = page.getByRole("row").filter({ hasText: title })
    await row.getByRole("button", { name: "Revoke" }).click()
    await row.getByRole("button", { name: "End this share?" }).click()
    await row.getByText("Revoked").waitFor()
    expect((await fetch(link)).status).toBeGreaterThanOrEqual(404)
  })
})
