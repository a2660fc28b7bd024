import { AxeBuilder } from "@axe-core/playwright"
import { existsSync } from "node:fs"
import { type Browser, chromium, type Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect } from "vitest"
import { buildDashboard } from "../support/Dashboard.ts"
import { it as gatewayIt } from "../support/it.ts"
import { patience } from "../support/Waiting.ts"

/*
 * Every page in a real browser, against a real gateway with real traffic. A machine without Chromium skips the suite, and says so.
 */

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) =>
  existsSync(path)
)
if (executablePath === undefined) console.log("No Chromium on this machine: the dashboard's pages are not opened.")

let browser: Browser

beforeAll(async () => {
  if (executablePath === undefined) return
  await buildDashboard()
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] })
}, patience)

afterAll(() => browser?.close())

const hostile = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>`

const it = gatewayIt
  /** A page of a new browser, signed in with the team's key. What goes wrong in it fails the test. */
  .extend("page", async ({ gateway }, { onCleanup }) => {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      baseURL: `${gateway.origin}/dashboard/`
    })
    context.setDefaultTimeout(patience)
    const page = await context.newPage()
    const faults: Array<string> = []
    onCleanup(async () => {
      await context.close()
      expect(faults).toEqual([])
    })
    page.on("pageerror", (error) => faults.push(error.message))
    page.on("console", (message) => {
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
        faults.push(message.text())
    })
    await page.goto("./")
    await page.getByLabel("API key").fill(gateway.key)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("heading", { name: "Overview" }).waitFor()
    return page
  })
  /** A source with a hostile name, a destination that works and one that does not, a workflow, and requests that went through all. */
  .extend("traffic", { scope: "file" }, async ({ gateway, startTarget }) => {
    const target = await startTarget(
      (response) => void response.writeHead(200, { "content-type": "text/html" }).end(hostile)
    )
    const source = await gateway.api("POST", "/sources", { name: `Orders ${hostile}` })
    const good = await gateway.destination({ url: target.origin })
    const bad = await gateway.destination({ url: "http://127.0.0.1:9" })
    await gateway.connection(source, good, [{ type: "filter", body: { total: { $gt: 5 } } }])
    await gateway.connection(source, bad)
    const workflow = await gateway.api("POST", "/workflows", {
      name: gateway.name("workflow"),
      source_id: source.id,
      status: "active",
      steps: [
        { id: "step_large", kind: "filter", name: "Large", config: { conditions: { body: { total: { $gt: 10 } } } } }
      ],
      edges: [{ source_type: "trigger", target_step_id: "step_large" }]
    })
    let last = ""
    for (let total = 0; total < 30; total++) {
      const answer = await fetch(source.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: `{"serial":12345678901234567890,"total":${total},"note":${JSON.stringify(hostile)}}`
      })
      last = ((await answer.json()) as { request_id: string }).request_id
    }
    await gateway.traced(last, 2)
    return { source, good, bad, workflow, target, last }
  })

/** What axe finds. The rules on colors alone for a second look at the same pages in other colors. */
const violations = async (page: Page, onlyColors = false): Promise<ReadonlyArray<string>> => {
  const axe = new AxeBuilder({ page })
  const found = await (
    onlyColors ? axe.withRules(["color-contrast"]) : axe.withTags(["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"])
  ).analyze()
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}

const lists = [
  "Requests",
  "Events",
  "Workflow runs",
  "Bulk operations",
  "Sources",
  "Connections",
  "Destinations",
  "Workflows"
]

const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name, exact: true })
const open = async (page: Page, name: string) => {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click()
  await heading(page, name).waitFor()
}
const firstRow = (page: Page) => page.locator(".list .row").first()

describe.skipIf(executablePath === undefined)("Pages of the dashboard", () => {
  it.for(["light", "dark"] as const)(
    "Every page can be used by everybody in the %s theme, on a wide or a narrow screen",
    async (theme, { page, traffic }) => {
      await page.emulateMedia({ colorScheme: theme })
      await page.setViewportSize(theme === "dark" ? { width: 375, height: 720 } : { width: 1280, height: 800 })
      const paths = [
        "",
        "team",
        "sources/new",
        "destinations/new",
        "connections/new",
        "workflows/new",
        `requests/${traffic.last}`,
        `workflows/${traffic.workflow.id}/edit`
      ]
      for (const path of [
        ...paths,
        ...lists.map((name) => name.toLowerCase().replace("workflow runs", "runs").replace(" ", "-"))
      ]) {
        await page.goto(`./${path}`)
        await page.getByRole("heading", { level: 1 }).waitFor()
        // A page may have several parts that load.
        await expect.poll(() => page.getByText("Loading…").count(), { timeout: patience }).toBe(0)
        expect([path, await violations(page, theme === "dark")]).toEqual([path, []])
        const isWider = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
        expect([path, isWider]).toEqual([path, false])
      }
    }
  )

  it("Every list opens its first record", async ({ page, traffic }) => {
    expect(traffic.last).not.toBe("")
    for (const name of lists.filter((name) => name !== "Bulk operations")) {
      await open(page, name)
      await firstRow(page).click()
      await page.waitForURL(/_[0-9a-z]{26}$/)
      await page.getByText("Loading…").waitFor({ state: "detached" })
      expect([name, await page.getByRole("alert").count()]).toEqual([name, 0])
    }
  })

  it("Nothing of a body, a name or an answer runs, and numbers keep their digits", async ({ page, traffic }) => {
    await page.goto(`./requests/${traffic.last}`)
    await page.getByText("12345678901234567890").waitFor()
    await page.getByText("onerror").first().waitFor()
    await open(page, "Events")
    await page.getByLabel("Status", { exact: true }).selectOption("SUCCESSFUL")
    await firstRow(page).click()
    await page.getByText("document.title='run'").first().waitFor()
    expect(await page.title()).toBe("Tidegate")
    expect(await page.locator("main img, main script").count()).toBe(0)
  })

  it("A failed event is found by its status, retried, and its attempts are shown", async ({
    gateway,
    page,
    traffic
  }) => {
    await gateway.eventually("an event has failed", async () => {
      const { models } = await gateway.api("GET", `/events?status=FAILED&destination_id=${traffic.bad.id}`)
      return models.length > 0 ? true : null
    })
    await open(page, "Events")
    await page.getByLabel("Status", { exact: true }).selectOption("FAILED")
    await page.waitForURL(/status=FAILED/)
    await firstRow(page).click()
    await page
      .getByText(/Attempt 1/)
      .first()
      .waitFor()
    await page.getByRole("button", { name: "Retry", exact: true }).click()
    await page.getByText("Queued again").waitFor()
  })

  it("An issue of a failing destination is acknowledged on the overview, and shown on the page of its destination", async ({
    gateway,
    page,
    traffic
  }) => {
    await gateway.eventually("an issue", async () => {
      const { models } = await gateway.api("GET", `/issues?destination_id=${traffic.bad.id}`)
      return models.length > 0 ? true : null
    })
    await page.goto("./")
    const issues = page.getByRole("table", { name: "Issues" })
    const row = issues.getByRole("row", { name: traffic.bad.name })
    await row.getByText("CONNECTION_REFUSED").waitFor()
    await row.getByRole("button", { name: "Acknowledge" }).click()
    await row.getByText("Acknowledged").waitFor()
    await page.goto(`destinations/${traffic.bad.id}`)
    await issues.getByText("Acknowledged").waitFor()
    await issues.getByRole("button", { name: "Dismiss" }).click()
    await issues.waitFor({ state: "detached" })
  })

  it("All events that match a filter are retried after their number was shown", async ({ page, traffic }) => {
    await page.goto(`./events?status=FAILED&destination_id=${traffic.bad.id}`)
    await page.getByRole("button", { name: "Retry all of them…" }).click()
    await heading(page, "Bulk operation").waitFor()
    await page.getByRole("button", { name: /^Retry \d+ events$/ }).click()
    await page.getByText("Completed").waitFor()
  })

  it("A source, a destination and a connection are made by their forms, and a refusal keeps what was written", async ({
    gateway,
    page
  }) => {
    await page.goto("./destinations/new")
    const name = gateway.name("made here")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByLabel(/^url/).fill("no url")
    await page.getByRole("button", { name: "Create the destination" }).click()
    await page.getByRole("alert").waitFor()
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe(name)
    await page.getByLabel(/^url/).fill("https://api.example.com/hooks")
    await page.getByLabel(/^rate_limit$/).fill("5")
    await page.getByRole("button", { name: "Create the destination" }).click()
    await heading(page, name).waitFor()
    await page.goto("./sources/new")
    await page.getByLabel("Name", { exact: true }).fill(`${name} source`)
    await page.getByRole("button", { name: "Create the source" }).click()
    await heading(page, `${name} source`).waitFor()
    await page.goto("./connections/new")
    await page.getByLabel("Name", { exact: true }).fill(`${name} connection`)
    await page.getByLabel("Source", { exact: true }).selectOption({ label: `${name} source` })
    await page.getByLabel("Destination", { exact: true }).selectOption({ label: name })
    await page.getByLabel("Rules", { exact: true }).fill('[{ "type": "filter", "body": { "a": 1 } }]')
    await page.getByRole("button", { name: "Create the connection" }).click()
    await heading(page, `${name} connection`).waitFor()
    const { models } = await gateway.api("GET", "/connections?limit=100")
    expect(models.find((one: { name: string }) => one.name === `${name} connection`)).toMatchObject({
      rules: [{ type: "filter", body: { a: 1 } }],
      destination: { config: { url: "https://api.example.com/hooks", rate_limit: 5 } }
    })
  })

  it("A connection is paused and resumed, and a source is disabled after a second click", async ({ page, traffic }) => {
    await open(page, "Connections")
    await firstRow(page).click()
    await page.getByRole("button", { name: "Pause" }).click()
    await page.locator("header .badge", { hasText: "Paused" }).waitFor()
    await page.getByRole("button", { name: "Resume" }).click()
    await page.locator("header .badge", { hasText: "Enabled" }).waitFor()
    await page.goto(`./sources/${traffic.source.id}`)
    await page.getByRole("button", { name: "Disable" }).click()
    await page.getByRole("button", { name: "Refuse all its requests?" }).click()
    await page.locator("header .badge", { hasText: "Disabled" }).waitFor()
    await page.getByRole("button", { name: "Enable" }).click()
    await page.locator("header .badge", { hasText: "Enabled" }).waitFor()
  })

  it("Settings are changed as JSON, a refusal keeps the text, and a deletion asks first", async ({ gateway, page }) => {
    const { id } = await gateway.destination({ url: "https://api.example.com/hooks", rate_limit: 5 })
    await page.goto(`./destinations/${id}`)
    await page.getByRole("button", { name: "Change" }).click()
    const field = page.getByLabel("Settings as JSON")
    const shown = await field.inputValue()
    await field.fill(shown.replace('"rate_limit": 5', '"rate_limit": -1'))
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByRole("alert").waitFor()
    expect(await field.inputValue()).toContain('"rate_limit": -1')
    await field.fill(shown.replace('"rate_limit": 5', '"rate_limit": 7'))
    await page.getByRole("button", { name: "Save" }).click()
    await field.waitFor({ state: "detached" })
    expect((await gateway.api("GET", `/destinations/${id}`)).config).toMatchObject({ rate_limit: 7 })
    await page.getByRole("button", { name: "Delete" }).click()
    await page.getByRole("button", { name: "Delete it and its connections?" }).click()
    await heading(page, "Destinations").waitFor()
    expect((await gateway.call("GET", `/destinations/${id}`)).status).toBe(404)
  })

  it("A workflow is changed on its graph by the keyboard, tried, saved, and saved over a version that somebody else has saved", async ({
    gateway,
    page,
    traffic
  }) => {
    const { id } = await gateway.api("POST", "/workflows", {
      name: gateway.name("edited"),
      source_id: traffic.source.id,
      status: "draft",
      steps: [{ id: "large", kind: "filter", config: { conditions: { body: { total: { $gt: 10 } } } } }],
      edges: [{ source_type: "trigger", target_step_id: "large" }]
    })
    await page.goto(`./workflows/${id}`)
    await page.getByRole("link", { name: "Edit" }).click()
    await page.getByRole("button", { name: /^large, filter/ }).focus()
    await page.keyboard.press("Enter")
    await page.getByLabel("New step").selectOption("delay")
    await page.getByRole("button", { name: "Add it after the selected one" }).click()
    await page.getByRole("button", { name: "Save", exact: true }).click()
    // The delay has no settings yet. The gateway's words stand at the step.
    await page.getByRole("alert").first().waitFor()
    await page.getByRole("button", { name: /^delay_2, delay, faulty/ }).waitFor()
    await page.getByLabel(/^mode/).selectOption("for")
    await page.getByLabel(/^unit/).selectOption("seconds")
    await page.getByLabel(/^amount/).click()
    await page.getByLabel("Insert a value of the sample").selectOption("trigger.body.total")
    expect(await page.getByLabel(/^amount/).inputValue()).toBe("{{trigger.body.total}}")
    await page.getByLabel(/^amount/).fill("2")
    await page.getByRole("button", { name: "Test", exact: true }).click()
    await page.getByRole("button", { name: /^delay_2, delay, Succeeded/ }).waitFor()
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByText("Saved as version 2").waitFor()
    const saved = await gateway.api("GET", `/workflows/${id}`)
    expect(saved).toMatchObject({
      steps: [{ id: "large" }, { kind: "delay", config: { mode: "for", amount: 2, unit: "seconds" } }],
      edges: [{}, { source_step_id: "large", source_port: "matched", target_step_id: "delay_2" }]
    })
    await gateway.api("PATCH", `/workflows/${id}`, { name: gateway.name("renamed") })
    await page.getByLabel("Name", { exact: true }).fill("A short wait")
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByRole("button", { name: "Save mine over it" }).click()
    await page.getByText("Saved as version 4").waitFor()
    expect(await gateway.api("GET", `/workflows/${id}`)).toMatchObject({ steps: [{}, { name: "A short wait" }] })
  })

  it("A workflow is made from a template whose steps are shown first, and activated", async ({
    gateway,
    page,
    traffic
  }) => {
    await page.goto("./workflows/new")
    const name = gateway.name("from a template")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByLabel("Source", { exact: true }).selectOption(traffic.source.id)
    await page.getByLabel("Template", { exact: true }).selectOption("failed-payment-alert")
    await page.getByRole("button", { name: /^Failed payments only, filter/ }).waitFor()
    await page.getByLabel(/^Where the text goes/).selectOption(traffic.good.id)
    await page.getByRole("button", { name: "Create the workflow" }).click()
    await heading(page, `Edit ${name}`).waitFor()
    await page.getByRole("link", { name: "Back" }).click()
    await page.getByRole("button", { name: "Activate" }).click()
    await page.locator("header .badge", { hasText: "Active" }).waitFor()
    await page.getByRole("button", { name: "Pause" }).click()
    await page.locator("header .badge", { hasText: "Paused" }).waitFor()
  })

  it("An approval is decided on the graph of its run", async ({ gateway, page, traffic }) => {
    const { id } = await gateway.api("POST", "/workflows", {
      name: gateway.name("approval"),
      source_id: traffic.source.id,
      steps: [{ id: "step_ask", kind: "wait", name: "Ask", config: { for: "approval", amount: 1, unit: "hours" } }],
      edges: [{ source_type: "trigger", target_step_id: "step_ask" }]
    })
    const run = await gateway.api("POST", `/workflows/${id}/runs`, {})
    await gateway.eventually("the run waits", async () => {
      const { steps } = await gateway.api("GET", `/workflows/${id}/runs/${run.id}`)
      return steps[0]?.wait?.kind === "signal" ? true : null
    })
    await page.goto(`./workflows/${id}/runs/${run.id}`)
    await page.getByRole("button", { name: "Approve" }).click()
    await gateway.eventually("the run has ended", async () => {
      const { status } = await gateway.api("GET", `/workflows/${id}/runs/${run.id}`)
      return status === "succeeded" ? true : null
    })
    await page.reload()
    await page.getByRole("button", { name: /^Ask, wait, Succeeded/ }).waitFor()
  })

  it("A filter is made of rows, tried on stored requests, and saved as a rule of its connection", async ({
    gateway,
    page,
    traffic
  }) => {
    const { id } = await gateway.connection(traffic.source, traffic.good, [{ type: "delay", delay: 1000 }])
    await page.goto(`./connections/${id}`)
    await page.getByLabel("Member", { exact: true }).fill("total")
    await page.getByLabel("Operator", { exact: true }).selectOption("$gte")
    await page.getByLabel("Value", { exact: true }).fill("28")
    await page.getByRole("button", { name: "Add the condition" }).click()
    await page.getByRole("button", { name: /^Try it/ }).click()
    await page.getByText(/^2 of \d+ requests match/).waitFor()
    await page.getByText("body.total $gte 28, but it is 27").waitFor()
    await page.getByRole("button", { name: "Save the filter" }).click()
    await gateway.eventually("the filter is stored", async () => {
      const { rules } = await gateway.api("GET", `/connections/${id}`)
      return rules.length === 2 ? true : null
    })
    const { rules } = await gateway.api("GET", `/connections/${id}`)
    expect(rules).toMatchObject([{ type: "filter", body: { total: { $gte: 28 } } }, { type: "delay" }])
    await gateway.api("DELETE", `/connections/${id}`)
  })

  it("An id that is pasted anywhere opens its record, and keys move in a list", async ({ page, traffic }) => {
    await page.keyboard.press("/")
    await page.keyboard.type(traffic.last)
    await page.keyboard.press("Enter")
    await page.waitForURL(new RegExp(traffic.last))
    await open(page, "Requests")
    await firstRow(page).waitFor()
    await page.locator("h1").click()
    await page.keyboard.press("j")
    await page.locator('.row[data-selected="true"]').waitFor()
    await page.keyboard.press("Enter")
    await page.waitForURL(/requests\/req_/)
  })

  it("A live list shows a request that arrives while it is open", async ({ page, traffic }) => {
    await open(page, "Requests")
    await page.getByLabel("Live").check()
    await firstRow(page).waitFor()
    const answer = await fetch(traffic.source.url, { method: "POST", body: "{}" })
    const { request_id } = (await answer.json()) as { request_id: string }
    await page.getByText(request_id).waitFor()
  })

  it("A share is ended on the team's page, and what a key may not do is not offered", async ({
    gateway,
    page,
    traffic
  }) => {
    const { id } = await gateway.api("POST", `/requests/${traffic.last}/share`, { title: gateway.name("share") })
    await open(page, "Team")
    await page.getByText("Only an owner who is signed in can see project keys.").waitFor()
    const shares = page.getByRole("table", { name: "Shares" })
    await shares.getByRole("button", { name: "Revoke" }).click()
    await shares.getByRole("button", { name: "End this share?" }).click()
    await shares.getByRole("button").waitFor({ state: "detached" })
    const { models } = await gateway.api("GET", "/shares?status=revoked")
    expect(models.map((one: { id: string }) => one.id)).toEqual([id])
  })

  it("Signing out ends the session", async ({ page }) => {
    await page.getByRole("button", { name: "Sign out" }).click()
    await page.getByLabel("API key").waitFor()
    await page.goto("./requests")
    await page.getByLabel("API key").waitFor()
  })
})
