import { describe, expect } from "vitest"
import { differences } from "../support/DashboardActions.ts"
import { hasBrowser, heading, it, turnTo } from "../support/DashboardPage.ts"

/** Sources in the dashboard: found by the name of their provider, set up step by step, and tried. */

const secret = "whsec_of_the_shop"

describe.skipIf(!hasBrowser)("Sources in the dashboard", () => {
  it("A Stripe source is found by its name, shows its steps, and takes a test request, which is verified", async ({
    gateway,
    page
  }) => {
    await turnTo(page, "sources/new")
    const name = gateway.name("payments")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByLabel("Search the type by name").fill("strip")
    const type = page.getByLabel("Type", { exact: true })
    expect(await type.inputValue()).toBe("STRIPE")
    await page.getByText("Payments, subscriptions, invoices and payouts.").waitFor()
    await page.locator('input[name="config.auth.webhook_secret_key"]').fill(secret)
    await page.getByRole("button", { name: "Create the source" }).click()
    await heading(page, name).waitFor()

    await page.getByRole("heading", { name: "How to set up Stripe" }).waitFor()
    const { models } = await gateway.api("GET", "/sources?limit=100")
    const made = models.find((one) => one.name === name)
    await page.getByText(`The URL of this source: ${made?.url}`).waitFor()
    const guide = page.getByRole("link", { name: "https://docs.stripe.com/webhooks" })
    expect([await guide.getAttribute("target"), await guide.getAttribute("rel")]).toEqual(["_blank", "noreferrer"])

    await page.getByLabel("Sample", { exact: true }).selectOption("invoice.paid")
    await page.getByRole("button", { name: "Send a test request" }).click()
    await page.getByRole("status").getByText("Accepted and verified").waitFor()
    await page.getByRole("link", { name: "Show the request" }).click()
    await page.getByText("Sent from the page of its source").waitFor()
    await page.getByRole("definition").filter({ hasText: /^Yes$/ }).waitFor()
    await page.getByText("invoice.paid").first().waitFor()
    const { models: requests } = await gateway.api("GET", `/requests?source_id=${made?.id}`)
    expect(requests).toMatchObject([{ status: "accepted", verified: true }])
  })

  it("A source whose requests only its provider can sign says so, and is sent an unsigned one", async ({
    gateway,
    page
  }) => {
    const { id } = await gateway.api("POST", "/sources", {
      name: gateway.name("paypal"),
      type: "PAYPAL",
      config: { auth: { webhook_id: "8PT597110X687430LKGECATA" } }
    })
    await turnTo(page, `sources/${id}`)
    await page.getByText("Only PayPal can sign its requests.").waitFor()
    await page.getByRole("button", { name: "Send a test request" }).click()
    await page.getByRole("status").getByText("Rejected: SOURCE_AUTH_FAILED").waitFor()
  })

  it("What carries out the buttons of the sources is in the table of actions", ({ carried }) => {
    expect(differences("Sources", carried)).toEqual({ missing: [], unknown: [] })
  })
})
