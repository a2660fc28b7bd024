import type { Page } from "playwright-core"
import { describe, expect } from "vitest"
import { differences } from "../support/DashboardActions.ts"
import { hasBrowser, heading, it as pageIt, turnTo } from "../support/DashboardPage.ts"
import { filled } from "../support/DashboardWorld.ts"
import { FakeProviderServer } from "../support/FakeProviderServer.ts"
import { patience } from "../support/Waiting.ts"

/*
 * The actions that no other suite carries out, on pages of one team. What came of them is read from the page, or from the API where the page
 * does not say it.
 */

const it = pageIt
  .extend("made", { scope: "file" }, async ({ gateway, startTarget }, { onCleanup }) => {
    const forge = await FakeProviderServer.start("a-token")
    onCleanup(() => forge.close())
    return (await filled(gateway, await gateway.session("owner"), (await startTarget()).origin, forge)).made
  })
  .extend("owned", async ({ gateway, signedIn }) => signedIn(await gateway.session("owner")))

/** Presses a button, and the question that it becomes. */
const press = async (page: Page, name: string, asks?: string) => {
  await page.locator("main").getByRole("button", { name, exact: true }).click()
  if (asks !== undefined) await page.getByRole("button", { name: asks, exact: true }).click()
}

/** The path of what a page shows: that of the dashboard is that of the API. */
const pathOf = (page: Page): string => new URL(page.url()).pathname.replace("/dashboard", "")

const badge = (page: Page, text: string) => page.locator("header .badge").getByText(text, { exact: true }).waitFor()

/** Changes settings as JSON, and waits until they are saved. */
const change = async (page: Page, title: string, edit: (text: string) => string) => {
  const field = page.getByLabel(`${title} as JSON`)
  await page.getByRole("button", { name: "Edit as JSON", exact: true }).click()
  await field.fill(edit(await field.inputValue()))
  await page.getByRole("button", { name: "Save", exact: true }).click()
  await field.waitFor({ state: "detached" })
}

describe.skipIf(!hasBrowser)("Actions of the dashboard", () => {
  it("What needs attention is acknowledged and dismissed, and a channel gets its items by polling", async ({
    gateway,
    made,
    owned: page
  }) => {
    await turnTo(page, "?from=now-1h")
    const worst = page.getByRole("table", { name: "Destinations by failed events" }).getByRole("row").nth(1)
    await worst.getByText("100 %").waitFor()
    expect(await worst.getByRole("link", { name: "Show the failed ones" }).getAttribute("href")).toContain(
      `destination_id=${made.dead}&status=FAILED`
    )
    const rejected = page.getByRole("table", { name: "Sources by rejected requests" }).getByRole("row").nth(1)
    expect(await rejected.getByRole("link", { name: "Show the rejected ones" }).getAttribute("href")).toContain(
      `source_id=${made.off}&status=rejected`
    )
    const attention = page.getByRole("list", { name: "What needs attention" })
    const entry = (text: RegExp, action: string) =>
      attention.getByRole("listitem").filter({ hasText: text }).getByRole("link", { name: action }).getAttribute("href")
    expect(await entry(/^1 run of .* failed in 24 hours/, "Show the failed runs")).toContain(
      `workflows/${made.failing.workflow}?status=failed`
    )
    expect(await entry(/^1 event to .* failed in 24 hours: 100 %/, "See why, and retry them")).toContain(
      `destination_id=${made.dead}&status=FAILED`
    )
    expect(await entry(/^1 request to .* was rejected in 24 hours/, "Show the rejected ones")).toContain(
      `source_id=${made.off}&status=rejected`
    )
    const figure = (label: string | RegExp) => page.locator(".figure").filter({ hasText: label }).locator("strong")
    await figure("p50 / p99 to the target, of all 1")
      .getByText(/^\S+ m?s \/ \S+ m?s$/)
      .waitFor()
    expect([await figure("Error rate").innerText(), await figure("The oldest that waits").innerText()]).toEqual([
      "50 %",
      "–"
    ])
    // A bar that is chosen in one chart is the time range of the whole page.
    await page.getByRole("img", { name: /^Events: 2 in all/ }).click()
    await page.waitForURL(/from=20\d\d-.*to=20\d\d-/)
    await page.getByRole("img", { name: /^Requests: 0 in all/ }).waitFor()
    await turnTo(page, `requests?source_id=${made.off}&status=rejected`)
    await page.locator(".list .row").first().click()
    await page.getByText("It was rejected: its source was disabled.").waitFor()
    await turnTo(page, "")
    const alert = page.getByRole("listitem").filter({ hasText: "does not work" })
    await alert.getByRole("button", { name: "Acknowledge" }).click()
    await alert.waitFor({ state: "detached" })
    // Somebody deals with it, but it still needs something.
    await attention.getByRole("listitem").filter({ hasText: "does not notify: The provider does not make" }).waitFor()
    await turnTo(page, `destinations/${made.dead}`)
    await press(page, "Acknowledge")
    const issues = page.getByRole("table", { name: "Issues" })
    await issues.getByText("Acknowledged", { exact: true }).waitFor()
    await turnTo(page, "")
    await issues.getByRole("button", { name: "Dismiss" }).click()
    await issues.waitFor({ state: "detached" })
    await turnTo(page, `channels/${made.channel}`)
    await press(page, "Use polling", "Let polling replace it?")
    await page.getByRole("button", { name: "Use instant delivery" }).waitFor()
    expect((await gateway.api("GET", `/sources/${made.channel}`)).delivery_mode).toBe("polling")
  })

  it("A request is replayed, operations are stopped and started, and runs are retried, rejected, repeated and cancelled", async ({
    gateway,
    made,
    owned: page
  }) => {
    await turnTo(page, `bulk-operations/${made.events}`)
    await press(page, "Stop", "Leave the rest as it is?")
    await badge(page, "Cancelled")
    const { id } = await gateway.api("POST", "/events/bulk_operations", { all: true, confirm: false })
    await turnTo(page, `bulk-operations/${id}`)
    await page.getByRole("button", { name: /^Retry \d+ events$/ }).click()
    await badge(page, "Completed")

    await turnTo(page, `bulk-operations/workflow_runs/${made.runs}`)
    await press(page, "Stop", "Leave the rest as it is?")
    await badge(page, "Cancelled")
    await turnTo(page, "runs")
    await press(page, "Retry all of them…")
    await heading(page, "Bulk operation").waitFor()
    await page.getByRole("button", { name: "Retry 1 run", exact: true }).click()
    await badge(page, "Completed")

    const { asking, failing } = made
    /** When the run has failed, if not at that time. */
    const failedAgain = (last: string | null) =>
      gateway.eventually("the retried run has failed again", async () => {
        const { finished_at, status } = await gateway.api("GET", `/workflows/${failing.workflow}/runs/${failing.run}`)
        return status === "failed" && finished_at !== last ? finished_at : null
      })
    const first = await failedAgain(failing.failedAt)
    await turnTo(page, `workflows/${failing.workflow}/runs/${failing.run}`)
    await press(page, "Retry from this step")
    await failedAgain(first)
    // The button was gone meanwhile. What the page has said about it stays.
    await page.getByRole("button", { name: "Retry from this step" }).waitFor()
    await page.getByText("Queued again", { exact: true }).waitFor()

    await turnTo(page, `workflows/${asking.workflow}/runs/${asking.run}`)
    await press(page, "Reject")
    await gateway.eventually("the run has ended", async () => {
      const { finished_at } = await gateway.api("GET", `/workflows/${asking.workflow}/runs/${asking.run}`)
      return finished_at === null ? null : true
    })
    await page.reload()
    await press(page, "Run again", "Send everything again?")
    await page.waitForURL((url) => !url.pathname.endsWith(asking.run))
    await press(page, "Cancel", "Abort what it calls now?")
    await badge(page, "Cancelled")

    await turnTo(page, `requests/${made.request}`)
    await press(page, "Replay", "Replay it on all connections?")
    await page.getByText("Replayed", { exact: true }).waitFor()

    await press(page, "Edit and send…")
    await press(page, "Send it")
    await page.getByText("Nothing was changed. Replay sends it as it is.").waitFor()
    await page.getByLabel("Body", { exact: true }).fill('{"id":12345678901234567890}')
    const headers = page.getByLabel("Headers", { exact: true })
    await headers.fill(`${await headers.inputValue()}\nno header`)
    await press(page, "Send it")
    await page.getByText(/^This is no header: “no header”/).waitFor()
    await headers.fill((await headers.inputValue()).replace("no header", "X-Edited: yes"))
    const changes = page.getByRole("region", { name: "What changes" })
    await changes.getByText("+ X-Edited: yes", { exact: true }).waitFor()
    await changes.getByText(/^\+ +"id": 12345678901234567890$/).waitFor()
    await press(page, "Send it")
    await page.getByText("It was sent as the request").getByRole("link").click()
    await page.waitForURL(({ pathname }) => !pathname.endsWith(made.request))
    await page.getByRole("heading", { name: "Edit this request and send it" }).waitFor({ state: "detached" })
    await page.locator("pre").getByText("12345678901234567890").waitFor()
    const { body: sent } = await gateway.call("GET", pathOf(page))
    expect([sent.data.headers["x-edited"], sent.data.path, sent.verified]).toEqual(["yes", "/", false])
  })

  it("A workflow is switched in its list, run with a body, copied, rolled back, published from a draft, and deleted", async ({
    gateway,
    made,
    owned: page
  }) => {
    const read = async () => (await gateway.call("GET", `/workflows/${made.changed}`)).body
    const { name } = await read()
    const row = page.locator(".line").filter({ hasText: name })
    await turnTo(page, "workflows")
    await row.getByRole("button", { name: "Pause" }).click()
    await row.getByText("Paused", { exact: true }).waitFor()
    await row.getByRole("button", { name: "Activate" }).click()
    await row.getByText("Active", { exact: true }).waitFor()

    await row.getByRole("link", { name: "Run…" }).click()
    await page.getByLabel("Body as JSON").fill('{"total":')
    await press(page, "Begin the run")
    await page.getByText(/^The body is not valid JSON/).waitFor()
    await page.getByLabel("Body as JSON").fill('{"total":12345678901234567890}')
    await page.getByLabel("Headers", { exact: true }).fill("x-by: hand")
    await press(page, "Begin the run")
    await page.waitForURL(/\/runs\/wfr_/)
    // It is read again until it has ended.
    await badge(page, "Succeeded")
    const { body: run } = await gateway.call("GET", `${pathOf(page)}?include_previews=true`)
    expect(JSON.stringify(run.trigger.preview)).toContain('"x-by":"hand"')

    await turnTo(page, `workflows/${made.changed}/versions`)
    await page.getByLabel("From version").selectOption("1")
    const changes = page.getByRole("table", { name: "Changes" })
    await changes.getByRole("row", { name: "Added Step step_larger" }).waitFor()
    await changes.getByRole("row", { name: "Added Edge step_large → step_larger by matched" }).waitFor()
    await changes.getByRole("row", { name: "Changed Step step_large config" }).waitFor()
    await page.getByRole("button", { name: "step_larger, filter, Added" }).waitFor()
    await page.getByRole("button", { name: "step_large, filter, Changed" }).first().press("Enter")
    const lines = page.getByRole("region", { name: "Differences line by line" })
    await lines.getByText(/^\+ +"\$gt": 5$/).waitFor()
    await press(page, "Roll back to it", "Make it version 5?")
    await page.getByText("Version 1 is restored as version 5", { exact: true }).waitFor()
    await page.getByText("Nothing differs.").first().waitFor()
    expect((await read()).steps).toHaveLength(1)

    await turnTo(page, `workflows/${made.changed}`)
    await page.getByText(/^No run uses it before.*from version 2\..*version 5 by now/).waitFor()
    await press(page, "Publish", "Replace version 5, too?")
    await page.getByText("The draft is published", { exact: true }).waitFor()
    const { edges, steps, version } = await read()
    expect([version, steps[0].config.conditions.body.total]).toEqual([6, { $gt: 1 }])
    await gateway.api("PUT", `/workflows/${made.changed}/draft`, { steps, edges })
    await page.reload()
    await press(page, "Discard", "Delete the draft for ever?")
    await page.getByText("The draft is deleted", { exact: true }).waitFor()
    expect((await gateway.call("GET", `/workflows/${made.changed}/draft`)).status).toBe(404)

    await press(page, "Copy…")
    const copy = gateway.name("copy")
    await page.getByLabel("Name", { exact: true }).fill(copy)
    await press(page, "Make the copy")
    await heading(page, copy).waitFor()
    await badge(page, "Draft")
    await press(page, "Delete", "Delete it and its runs?")
    await heading(page, "Workflows").waitFor()
    await row.getByRole("button", { name: "Delete" }).click()
    await row.getByRole("button", { name: "Delete it and its runs?" }).click()
    await page.getByText(`${name} is deleted`, { exact: true }).waitFor()
    await row.waitFor({ state: "detached" })
    expect((await gateway.call("GET", `/workflows/${made.changed}`)).status).toBe(404)
  })

  it("Events that wait are cancelled, one by itself and all that match a filter, and are offered no retry", async ({
    gateway,
    made,
    owned: page
  }) => {
    const source = await gateway.source()
    const { id: connection } = await gateway.connection(source, { id: made.destination })
    await gateway.api("PUT", `/connections/${connection}/pause`)
    for (let sent = 0; sent < 3; sent++) expect((await fetch(source.url, { method: "POST" })).status).toBe(200)
    await turnTo(page, `events?status=WAITING&source_id=${source.id}`)
    await page.locator(".list .row").nth(2).waitFor()
    await page.locator(".list .row").first().click()
    await badge(page, "On hold")
    expect(await page.getByRole("button", { name: "Retry", exact: true }).count()).toBe(0)
    await press(page, "Cancel", "Deliver it never?")
    await badge(page, "Cancelled")
    await page.getByRole("button", { name: "Retry", exact: true }).waitFor()
    await turnTo(page, `events?status=WAITING&source_id=${source.id}`)
    await press(page, "Cancel all of them…")
    await page.getByRole("button", { name: "Cancel 2 events", exact: true }).click()
    await badge(page, "Completed")
    const { models } = await gateway.api("GET", `/events?source_id=${source.id}`)
    expect(models.map(({ status }) => status)).toEqual(["CANCELLED", "CANCELLED", "CANCELLED"])
  })

  it("Sources, destinations, connections and transformations are changed, switched and deleted", async ({
    gateway,
    made,
    owned: page
  }) => {
    await turnTo(page, `sources/${made.off}`)
    await change(page, "Settings", (text) =>
      text.replace(/"allowed_http_methods": \[[^\]]*\]/, '"allowed_http_methods": ["POST"]')
    )
    expect((await gateway.api("GET", `/sources/${made.off}`)).config).toMatchObject({ allowed_http_methods: ["POST"] })
    await press(page, "Delete", "Delete it and its connections?")
    await heading(page, "Sources").waitFor()
    expect((await gateway.call("GET", `/sources/${made.off}`)).status).toBe(404)

    await turnTo(page, `destinations/${made.dead}`)
    await press(page, "Enable")
    await badge(page, "Enabled")
    await press(page, "Disable", "Stop all its deliveries?")
    await badge(page, "Disabled")

    await turnTo(page, `connections/${made.connection}`)
    await change(page, "The same rules", () => '[{ "type": "delay", "delay": 1000 }]')
    expect((await gateway.api("GET", `/connections/${made.connection}`)).rules).toMatchObject([{ delay: 1000 }])
    await press(page, "Disable", "Route nothing more over it?")
    await badge(page, "Disabled")
    await press(page, "Delete", "Delete it?")
    await heading(page, "Connections").waitFor()
    expect((await gateway.call("GET", `/connections/${made.connection}`)).status).toBe(404)

    await turnTo(page, `transformations/${made.transformation}`)
    await page.getByLabel("or its id").fill(made.request)
    await page.getByRole("button", { name: "Take it" }).click()
    await expect
      .poll(() => page.getByLabel("The sample as JSON").inputValue(), { timeout: patience })
      .toContain('"body"')
    await page.getByRole("button", { name: "Run it" }).click()
    await page.getByText(/KiB of memory/).waitFor()
    const name = gateway.name("renamed")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await press(page, "Save")
    await heading(page, name).waitFor()
    await press(page, "Delete", "Delete it?")
    await heading(page, "Transformations").waitFor()
    expect((await gateway.call("GET", `/transformations/${made.transformation}`)).status).toBe(404)
  })

  it("A key is enabled, narrowed and revoked, and data is deleted by one plan and kept by another one", async ({
    gateway,
    made,
    owned: page
  }) => {
    await turnTo(page, `team/keys/${made.disabled}`)
    await press(page, "Enable")
    await badge(page, "Active")
    await change(page, "What it may do", (text) =>
      text.replace(/"rate_limit_per_minute": \d+/, '"rate_limit_per_minute": 7')
    )
    await page.getByText(/"rate_limit_per_minute": 7\b/).waitFor()
    await press(page, "Revoke", "Revoke it for ever?")
    await badge(page, "Revoked")

    await turnTo(page, "team")
    const deletions = page.getByRole("table", { name: "Deletions of data" })
    await deletions.getByRole("button", { name: "Stop", exact: true }).click()
    await deletions.getByRole("button", { name: "Leave the rest as it is?" }).click()
    await deletions.getByText("Cancelled", { exact: true }).waitFor()
    await page.getByLabel("Text of a person").fill("somebody@example.com")
    await press(page, "Plan the deletion")
    await deletions.getByRole("button", { name: "Delete", exact: true }).click()
    await deletions.getByRole("button", { name: "Delete for ever?" }).click()
    await deletions.getByRole("button", { name: "Delete", exact: true }).waitFor({ state: "detached" })
    const { data } = await gateway.api("GET", "/data-deletions")
    expect(data.filter(({ stage }) => stage !== "planned" && stage !== "cancelled")).toHaveLength(1)
  })

  it("They carry out every action that the table names them for, and none that it does not have", ({ carried }) => {
    expect(differences("Actions", carried)).toEqual({ missing: [], unknown: [] })
  })
})
