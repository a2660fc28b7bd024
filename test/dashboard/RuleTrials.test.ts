import { describe, expect } from "vitest"
import { differences } from "../support/DashboardActions.ts"
import { hasBrowser, hostile, it, turnTo, usable } from "../support/DashboardPage.ts"

describe.skipIf(!hasBrowser)("Trial of deduplication on the dashboard", () => {
  it("A deduplicate rule is tried with the keyboard on stored requests: each duplicate leads to the request that it repeats", async ({
    gateway,
    page,
    startTarget
  }) => {
    const url = (await startTarget()).origin
    const source = await gateway.api("POST", "/sources", { name: `Orders ${hostile}` })
    const { id } = await gateway.connection(source, await gateway.destination({ url }))
    const sent = async (body: object): Promise<string> => {
      const answer = await fetch(source.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body)
      })
      return ((await answer.json()) as { readonly request_id: string }).request_id
    }
    const first = await sent({ id: 1, total: 5 })
    const repeated = await sent({ id: 1, total: 6 })
    const other = await sent({ id: 2, total: 7 })
    await sent({ without: "an id" })

    await turnTo(page, `connections/${id}`)
    const attempt = page.getByRole("button", { name: /^Try them/ })
    await page.getByText("Deduplication, a filter or a transformation can be tried").waitFor()
    expect(await attempt.isDisabled()).toBe(true)
    await page.getByLabel("New rule", { exact: true }).selectOption("deduplicate")
    await page.getByRole("button", { name: "Add the rule" }).click()
    // The bodies of all of them differ.
    await attempt.focus()
    await page.keyboard.press("Enter")
    await page.getByText("4 of 4 requests become events.").waitFor()
    await page.getByText("0 duplicates among 4 compared requests").waitFor()
    await page.getByLabel(/^Equal are requests/).selectOption("include_fields")
    await page.getByLabel("Fields", { exact: true }).fill("body.id")
    await attempt.press("Enter")
    await page.getByText("3 of 4 requests become events.").waitFor()
    await page.getByText("1 duplicate among 4 compared requests").waitFor()
    await page.getByText("The rule does not apply to 1 of them.").waitFor()
    const duplicate = page.getByRole("listitem").filter({ hasText: "after the same" })
    expect(await duplicate.getByRole("link").allInnerTexts()).toEqual([repeated, first])

    // What is no duplicate has to pass the filter as well.
    await page.getByLabel("New rule", { exact: true }).selectOption("filter")
    await page.getByRole("button", { name: "Add the rule" }).click()
    const filter = page.getByRole("group", { name: "Filter", exact: true })
    await filter.getByLabel("Member", { exact: true }).fill("id")
    await filter.getByLabel("Value", { exact: true }).fill("1")
    await filter.getByRole("button", { name: "Add the condition" }).click()
    await attempt.press("Enter")
    await page.getByText("1 of 4 requests become events.").waitFor()
    await page.getByRole("listitem").filter({ hasText: other }).getByText("but it is 2").waitFor()
    expect([await page.title(), (await gateway.api("GET", `/connections/${id}`)).rules]).toEqual(["Tidegate", []])

    await duplicate.getByRole("link", { name: first }).click()
    await page.waitForURL(new RegExp(`requests/${first}`))
  })

  it("What the gateway refuses about a deduplicate rule is shown where it was tried", async ({
    gateway,
    page,
    startTarget
  }) => {
    const url = (await startTarget()).origin
    const source = await gateway.api("POST", "/sources", { name: gateway.name("refusing") })
    const { id } = await gateway.connection(source, await gateway.destination({ url }))
    await turnTo(page, `connections/${id}`)
    await page.getByLabel("New rule", { exact: true }).selectOption("deduplicate")
    await page.getByRole("button", { name: "Add the rule" }).click()
    await page.getByLabel("Within", { exact: true }).fill("600")
    await page.getByRole("button", { name: /^Try them/ }).click()
    await page.getByRole("alert").getByText("rule.window").waitFor()
    await page.getByLabel("Within", { exact: true }).fill("60")
    await page.getByRole("button", { name: /^Try them/ }).click()
    await page.getByText("The source has no requests of the last 30 days.").waitFor()
    for (const theme of ["light", "dark"] as const) await usable(page, theme, [`connections/${id}`])
  })

  it("They carry out every action that the table names them for, and none that it does not have", ({ carried }) => {
    expect(differences("RuleTrials", carried)).toEqual({ missing: [], unknown: [] })
  })
})
