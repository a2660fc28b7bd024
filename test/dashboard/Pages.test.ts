import { execFileSync } from "node:child_process"
import type { Page } from "playwright-core"
import { describe, expect } from "vitest"
import { differences } from "../support/DashboardActions.ts"
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
  usable,
  violations
} from "../support/DashboardPage.ts"
import { patience } from "../support/Waiting.ts"

const it = pageIt
  /** A source with a hostile name, a destination that works and one that does not, a workflow, and requests that went through all. */
  .extend("traffic", { scope: "file" }, async ({ gateway, startTarget }) => {
    const target = await startTarget(
      (response) => void response.writeHead(200, { "content-type": "text/html" }).end(hostile)
    )
    const source = await gateway.api("POST", "/sources", { name: `Orders ${hostile}` })
    const good = await gateway.destination({ url: target.origin })
    const bad = await gateway.destination({ url: "http://127.0.0.1:9" })
    const connection = await gateway.connection(source, good, [{ type: "filter", body: { total: { $gt: 5 } } }])
    await gateway.connection(source, bad)
    const transformation = await gateway.api("POST", "/transformations", {
      name: gateway.name("transformation"),
      code: 'addHandler("transform", (request) => request)'
    })
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
    return { source, good, bad, connection, transformation, workflow, target, last }
  })

const lists = [
  "Requests",
  "Events",
  "Attempts",
  "Workflow runs",
  "Bulk operations",
  "Sources",
  "Connections",
  "Destinations",
  "Transformations",
  "Workflows"
]

const addRule = async (page: Page, title: string) => {
  await page.getByLabel("New rule", { exact: true }).selectOption({ label: title })
  await page.getByRole("button", { name: "Add the rule" }).click()
}

describe.skipIf(!hasBrowser)("Pages of the dashboard", () => {
  it.for(["light", "dark"] as const)(
    "Every page can be used by everybody in the %s theme, on a wide or a narrow screen",
    async (theme, { page, traffic }) => {
      const paths = [
        "",
        "map",
        "sources/new",
        "destinations/new",
        "connections/new",
        "workflows/new",
        `requests/${traffic.last}`,
        `connections/${traffic.connection.id}`,
        `transformations/${traffic.transformation.id}`,
        `workflows/${traffic.workflow.id}/edit`,
        `workflows/${traffic.workflow.id}/versions`,
        `workflows/${traffic.workflow.id}?form=run`
      ]
      await usable(page, theme, [
        ...paths,
        ...lists.map((name) => name.toLowerCase().replace("workflow runs", "runs").replace(" ", "-"))
      ])
    }
  )

  it("Every list opens its first record", async ({ page, traffic }) => {
    expect(traffic.last).not.toBe("")
    for (const name of lists.filter((name) => name !== "Bulk operations")) {
      await open(page, name)
      await firstRow(page).click()
      await page.waitForURL(/_[0-9a-z]{26}$/)
      await settled(page)
      expect([name, await page.getByRole("alert").count()]).toEqual([name, 0])
    }
  })

  it("Nothing of a body, a name or an answer runs, also in a shell, and numbers keep their digits", async ({
    gateway,
    page,
    traffic
  }) => {
    await turnTo(page, `requests/${traffic.last}`)
    await page.getByText("12345678901234567890").waitFor()
    await page.getByText("onerror").first().waitFor()
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
    const copied = async (path: string): Promise<string> => {
      await turnTo(page, path)
      await page.getByRole("button", { name: "Copy as curl" }).click()
      await page.getByRole("button", { name: "Copied" }).waitFor()
      return page.evaluate<string>("navigator.clipboard.readText()")
    }
    const request = `{"serial":12345678901234567890,"total":29,"note":${JSON.stringify(hostile)}}`
    // The shell takes the command to pieces as it was sent.
    const script = `curl() { printf '%s\\0' "$@"; }\n${await copied(`requests/${traffic.last}`)}`
    const words = execFileSync("sh", ["-c", script], { encoding: "utf8" }).split("\0")
    expect(words).toEqual(expect.arrayContaining([traffic.source.url, "content-type: application/json", request]))
    // What ends a paste in a terminal is in no command.
    const { url } = await gateway.source()
    const ending = await fetch(`${url}/it's?a=$(id)`, { method: "POST", body: "\u001b[201~\nid\n" })
    const { request_id } = (await ending.json()) as { readonly request_id: string }
    const command = await copied(`requests/${request_id}`)
    expect(command).toContain(`'${url}/it'\\''s?a=$(id)'`)
    expect(command).toContain(`--data-binary '@${request_id}.bin'`)
    expect(command).not.toContain("\u001b")
    await open(page, "Events")
    await addFilter(page, "status:successful")
    await firstRow(page).click()
    await page.getByText("document.title='run'").first().waitFor()
    await page.getByText('"serial": 12345678901234567890').waitFor()
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
    await addFilter(page, "status:failed")
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
    // The two buttons beside it make this text together.
    await row.getByText("Acknowledged", { exact: true }).waitFor()
    await turnTo(page, `destinations/${traffic.bad.id}`)
    await issues.getByText("Acknowledged", { exact: true }).waitFor()
    await issues.getByRole("button", { name: "Dismiss" }).click()
    await issues.waitFor({ state: "detached" })
  })

  it("All events that match a filter are retried after their number was shown", async ({ page, traffic }) => {
    await turnTo(page, `events?status=FAILED&destination_id=${traffic.bad.id}`)
    await page.getByRole("button", { name: "Retry all of them…" }).click()
    await heading(page, "Bulk operation").waitFor()
    await page.getByRole("button", { name: /^Retry \d+ events$/ }).click()
    await page.getByText("Completed").waitFor()
  })

  it("A source, a destination and a connection are made by their forms, and a refusal keeps what was written", async ({
    gateway,
    page
  }) => {
    await turnTo(page, "destinations/new")
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
    await turnTo(page, "sources/new")
    await page.getByLabel("Name", { exact: true }).fill(`${name} source`)
    await page.getByRole("button", { name: "Create the source" }).click()
    await heading(page, `${name} source`).waitFor()
    await turnTo(page, "connections/new")
    await page.getByLabel("Name", { exact: true }).fill(`${name} connection`)
    await page.getByLabel("Source", { exact: true }).selectOption({ label: `${name} source` })
    await page.getByLabel("Destination", { exact: true }).selectOption({ label: name })
    await addRule(page, "Filter")
    await page.getByLabel("Member", { exact: true }).fill("a")
    await page.getByLabel("Value", { exact: true }).fill("1")
    await page.keyboard.press("Enter")
    await page.getByRole("button", { name: "Create the connection" }).click()
    await heading(page, `${name} connection`).waitFor()
    const { models } = await gateway.api("GET", "/connections?limit=100")
    expect(models.find((one: { name: string }) => one.name === `${name} connection`)).toMatchObject({
      rules: [{ type: "filter", body: { a: { $eq: 1 } } }],
      destination: { config: { url: "https://api.example.com/hooks", rate_limit: 5 } }
    })
  })

  it("A source with a schedule is made by its form, and its page shows the next time and no URL", async ({
    gateway,
    page
  }) => {
    await turnTo(page, "sources/new")
    const name = gateway.name("nightly")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByLabel("Type", { exact: true }).selectOption("CRON")
    await page.getByLabel("cron (required)").fill("0 3 29 2")
    await page.getByLabel("timezone").fill("Europe/Berlin")
    await page.getByLabel("body", { exact: true }).fill('{"for": "{{scheduled_at}}"}')
    await page.getByRole("button", { name: "Create the source" }).click()
    await page.getByRole("alert").waitFor()
    await page.getByLabel("cron (required)").fill("0 3 29 2 *")
    await page.getByRole("button", { name: "Create the source" }).click()
    await heading(page, name).waitFor()
    await page.getByText("Next request").waitFor()
    expect(await page.getByText("URL", { exact: true }).count()).toBe(0)
    const { models } = await gateway.api("GET", "/sources?limit=100")
    const made = models.find((one: { name: string }) => one.name === name)
    expect(made).toMatchObject({
      type: "CRON",
      config: { schedule: { cron: "0 3 29 2 *", timezone: "Europe/Berlin", body: { for: "{{scheduled_at}}" } } }
    })
    expect(await page.locator(`time[datetime="${made?.next_due_at}"]`).count()).toBe(1)
  })

  it("A source of a broker is made by its form, and its page says how the subscription is doing", async ({
    gateway,
    page
  }) => {
    await turnTo(page, "sources/new")
    const name = gateway.name("queue")
    await page.getByLabel("Name", { exact: true }).fill(name)
    await page.getByLabel("Type", { exact: true }).selectOption("RABBITMQ")
    // Nothing listens on this port of the machine.
    await page.getByLabel("host (required)").fill("127.0.0.1")
    await page.getByLabel("port").fill("1")
    await page.getByLabel("queue (required)").fill("orders")
    await page.getByLabel("username (required)").fill("tidegate")
    await page.getByLabel("password (required)").fill("a-long-password")
    await page.getByRole("button", { name: "Create the source" }).click()
    await heading(page, name).waitFor()
    await page.getByText("0 stored, 0 delivered again, 0 rejected").waitFor()
    expect(await page.getByText("URL", { exact: true }).count()).toBe(0)
    const { models } = await gateway.api("GET", "/sources?limit=100")
    const made = models.find((one: { name: string }) => one.name === name)
    expect(made).toMatchObject({
      type: "RABBITMQ",
      config: { subscription: { host: "127.0.0.1", port: 1, queue: "orders" }, auth: { username: "tidegate" } }
    })
  })

  it("A connection is paused and resumed, and a source is disabled after a second click", async ({ page, traffic }) => {
    await open(page, "Connections")
    await firstRow(page).click()
    await page.getByRole("button", { name: "Pause" }).click()
    await page.locator("header .badge", { hasText: "Paused" }).waitFor()
    await page.getByRole("button", { name: "Resume" }).click()
    await page.locator("header .badge", { hasText: "Enabled" }).waitFor()
    await turnTo(page, `sources/${traffic.source.id}`)
    await page.getByRole("button", { name: "Disable" }).click()
    await page.getByRole("button", { name: "Refuse all its requests?" }).click()
    await page.locator("header .badge", { hasText: "Disabled" }).waitFor()
    await page.getByRole("button", { name: "Enable" }).click()
    await page.locator("header .badge", { hasText: "Enabled" }).waitFor()
  })

  it("Settings are changed as JSON, a refusal keeps the text, and a deletion asks first", async ({ gateway, page }) => {
    const { id } = await gateway.destination({ url: "https://api.example.com/hooks", rate_limit: 5 })
    await turnTo(page, `destinations/${id}`)
    await page.getByRole("button", { name: "Edit as JSON" }).click()
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
    const name = gateway.name("edited")
    const { id } = await gateway.api("POST", "/workflows", {
      name,
      source_id: traffic.source.id,
      status: "draft",
      steps: [{ id: "large", kind: "filter", config: { conditions: { body: { total: { $gt: 10 } } } } }],
      edges: [{ source_type: "trigger", target_step_id: "large" }]
    })
    await turnTo(page, `workflows/${id}`)
    await page.getByRole("link", { name: "Edit" }).click()
    // The page before has the same graph.
    await heading(page, `Edit ${name}`).waitFor()
    await page.getByRole("button", { name: /^large, filter/ }).press("Enter")
    await page.getByRole("button", { name: /^large, filter/, pressed: true }).waitFor()
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

    await page.getByLabel("Name", { exact: true }).fill("A longer wait")
    await page.getByRole("button", { name: "Save as draft" }).click()
    await page.getByText("Saved as the draft").waitFor()
    await page.getByRole("link", { name: "Back" }).click()
    await page.getByRole("link", { name: "Edit the draft" }).click()
    await page.getByRole("button", { name: /^A longer wait, delay/ }).waitFor()
    expect(await gateway.api("GET", `/workflows/${id}`)).toMatchObject({ steps: [{}, { name: "A short wait" }] })
  })

  it("A workflow is made from a template whose steps are shown first, and activated", async ({
    gateway,
    page,
    traffic
  }) => {
    await turnTo(page, "workflows/new")
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
    await turnTo(page, `workflows/${id}/runs/${run.id}`)
    await page.getByRole("button", { name: "Approve" }).click()
    await gateway.eventually("the run has ended", async () => {
      const { status } = await gateway.api("GET", `/workflows/${id}/runs/${run.id}`)
      return status === "succeeded" ? true : null
    })
    await page.reload()
    await page.getByRole("button", { name: /^Ask, wait, Succeeded/ }).waitFor()
  })

  it("Rules are written in forms, the filter is tried on stored requests, and all are saved together", async ({
    gateway,
    page,
    traffic
  }) => {
    const { id } = await gateway.connection(traffic.source, traffic.good, [{ type: "delay", delay: 1000 }])
    await turnTo(page, `connections/${id}`)
    await page.getByLabel("Wait", { exact: true }).fill("2")
    await addRule(page, "Filter")
    expect(await page.getByRole("button", { name: "Save the rules" }).isDisabled()).toBe(true)
    await page.getByLabel("Member", { exact: true }).fill("total")
    await page.getByLabel("Operator", { exact: true }).selectOption("$gte")
    await page.getByLabel("Value", { exact: true }).fill("28")
    await page.getByRole("button", { name: "Add the condition" }).click()
    await page.getByRole("button", { name: /^Try them/ }).click()
    await page.getByText(/^2 of \d+ requests become events/).waitFor()
    await page.getByText("body.total $gte 28, but it is 27").waitFor()
    await addRule(page, "Deduplicate")
    await page.getByLabel(/^Equal are requests/).selectOption("include_fields")
    await page.getByLabel("Fields", { exact: true }).fill("body.serial, body.total")
    await addRule(page, "Retry")
    await page.getByLabel("Retries", { exact: true }).fill("3")
    await page.getByText("Retries come 1 min, 3 min, 7 min after the first attempt.").waitFor()
    await page.getByLabel(/^Only after these answers/).fill("429, 500-599")
    await page.getByRole("button", { name: "Save the rules" }).click()
    const rules = await gateway.eventually("the rules are stored", async () => {
      const { rules } = await gateway.api("GET", `/connections/${id}`)
      return rules.length === 4 ? rules : null
    })
    expect(rules).toMatchObject([
      { type: "deduplicate", window: 60_000, include_fields: ["body.serial", "body.total"] },
      { type: "filter", body: { total: { $gte: 28 } } },
      { type: "delay", delay: 2000 },
      { type: "retry", strategy: "exponential", count: 3, interval: 60_000, response_status_codes: ["429", "500-599"] }
    ])
    await gateway.api("DELETE", `/connections/${id}`)
  })

  it("A transformation is written with names that are completed, run on a stored request, mended where its fault is, and saved", async ({
    gateway,
    page,
    traffic
  }) => {
    const name = gateway.name("tenant")
    await turnTo(page, "transformations/new")
    await page.getByLabel("Name", { exact: true }).fill(name)
    const code = page.getByRole("textbox", { name: "Code" })
    await code.fill('addHandler("transform", (request) => {\nrequest.body.total = = 1\nreturn request })')
    await page.getByLabel("or its id").fill(traffic.last)
    await page.getByRole("button", { name: "Take it" }).click()
    const sample = page.getByLabel("The sample as JSON")
    await expect.poll(() => sample.inputValue(), { timeout: patience }).toContain('"total": 29')
    await page.getByRole("button", { name: "Run it" }).click()
    await page.getByRole("button", { name: "Line 2" }).click()
    expect(await page.locator(".cm-fault").innerText()).toContain("= = 1")
    await page.keyboard.press("Shift+End")
    await page.keyboard.type("console.log(request.body.total); request.he")
    // By a click: Enter is a new line in the first moment, so that nobody takes a name that has just appeared.
    await page.getByRole("option", { name: "headers" }).click()
    await page.keyboard.type(".tenant = process.env.TENANT; delete request.body.note")
    await page.getByText("Variables", { exact: true }).click()
    await page.getByLabel("Variables as JSON").fill('{ "TENANT": "acme" }')
    await page.getByRole("button", { name: "Run it" }).click()
    const changed = page.getByRole("region", { name: "What changed" })
    await changed.waitFor()
    expect(await changed.locator("ins").allInnerTexts()).toContainEqual(expect.stringContaining('"tenant": "acme"'))
    expect(await changed.locator("del").allInnerTexts()).toContainEqual(expect.stringContaining("onerror"))
    expect(await changed.locator("img").count()).toBe(0)
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await heading(page, name).waitFor()
    const { models } = await gateway.api("GET", `/transformations?name=${encodeURIComponent(name)}`)
    expect(models).toMatchObject([{ env: { TENANT: "acme" }, code: expect.stringContaining("request.headers.tenant") }])
    expect(page.url()).toMatch(/transformations\/trs_/)
  })

  it("An id that is pasted anywhere opens its record, and keys move in a list", async ({ gateway, page, traffic }) => {
    const {
      models: [run]
    } = await gateway.api("GET", `/workflows/${traffic.workflow.id}/runs`)
    for (const [id, place] of [
      [traffic.last, `requests/${traffic.last}`],
      [run!.id, `workflows/${traffic.workflow.id}/runs/${run!.id}`]
    ] as const) {
      await page.keyboard.press("/")
      await page.keyboard.type(id)
      await page.keyboard.press("Enter")
      await page.waitForURL(new RegExp(place))
      await page.locator("h1").click()
    }
    await open(page, "Requests")
    await firstRow(page).waitFor()
    await page.locator("h1").click()
    await page.keyboard.press("j")
    await page.locator('.row[data-selected="true"]').waitFor()
    await page.keyboard.press("Enter")
    await page.waitForURL(/requests\/req_/)
  })

  it("A drag over the counts of a list sets its time range, and a view with its columns is kept in the browser", async ({
    page,
    traffic
  }) => {
    await turnTo(page, `requests?from=now-1h&source_id=${traffic.source.id}`)
    const chart = page.getByRole("img", { name: /^Requests: [1-9]\d* in all/ })
    await chart.waitFor()
    const { height, width, x, y } = (await chart.boundingBox())!
    await page.mouse.move(x + width / 2, y + height / 2)
    await page.mouse.down()
    await page.mouse.move(x + width - 2, y + height / 2, { steps: 2 })
    await page.mouse.up()
    await page.waitForURL(/from=20\d\d-.*to=20\d\d-/)
    expect(await page.getByLabel("To", { exact: true }).inputValue()).toMatch(/^20\d\d-/)
    await page.getByRole("link", { name: new RegExp(traffic.last) }).waitFor()
    await page.getByText("Views", { exact: true }).click()
    await page.getByLabel("Name of the view").fill(hostile.slice(0, 40))
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByText("Columns", { exact: true }).click()
    await page.getByLabel("Column Ignored", { exact: true }).uncheck()
    await page.getByLabel("Column Rejected because", { exact: true }).check()
    await page.goto("./requests")
    expect(await page.locator(".list .head").innerText()).toMatch(/Verified\s+Rejected because/)
    expect(await page.locator(".list .head").innerText()).not.toContain("Ignored")
    await page.getByText("Views", { exact: true }).click()
    await page.getByRole("button", { name: hostile.slice(0, 40), exact: true }).click()
    await page.waitForURL(new RegExp(`source_id=${traffic.source.id}`))
    await page.keyboard.press("Escape")
    expect(await page.getByLabel("Name of the view").isVisible()).toBe(false)
    expect(await page.title()).toBe("Tidegate")
  })

  it("The trace of a request shows how long its transformations and attempts took in each connection, and what was changed", async ({
    gateway,
    page,
    traffic
  }) => {
    const source = await gateway.api("POST", "/sources", { name: gateway.name("traced") })
    const { id: transformation_id } = await gateway.api("POST", "/transformations", {
      name: gateway.name("marks"),
      code: 'addHandler("transform", (request) => { request.body.mark = 1; console.log("marked"); return request })'
    })
    await gateway.connection(source, traffic.good, [{ type: "transform", transformation_id }])
    await gateway.connection(source, traffic.good, [{ type: "filter", body: { total: { $gt: 5 } } }])
    const answer = await fetch(source.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ total: 1, note: hostile })
    })
    const { request_id } = (await answer.json()) as { request_id: string }
    await gateway.eventually("the event was delivered", async () => {
      const { attempts } = await gateway.api("GET", `/requests/${request_id}/trace`)
      return attempts.length === 1 ? true : null
    })
    await turnTo(page, `requests/${request_id}`)
    const chart = page.getByRole("group", { name: "Trace over time" })
    await chart.getByRole("img", { name: /^Transformation, / }).waitFor()
    await chart.getByRole("img", { name: /^Attempt 1: Successful 200, after / }).waitFor()
    await chart.getByText("Ignored: the connection's filter did not match").waitFor()
    await page.getByText("log: marked").waitFor()
    await page.getByText("What changed", { exact: true }).click()
    const changed = page.getByRole("region", { name: "What changed" })
    await changed.waitFor()
    expect(await changed.locator("ins").allInnerTexts()).toContainEqual(expect.stringContaining('"mark": 1'))
    expect(await page.locator("main img").count()).toBe(0)
    expect(await violations(page)).toEqual([])
  })

  it("The map draws a connection between its source and its destination, with what goes through them now", async ({
    page,
    traffic
  }) => {
    const answer = await fetch(traffic.source.url, { method: "POST", body: "{}" })
    expect(answer.status).toBe(200)
    await open(page, "Map")
    const map = page.getByRole("region", { name: "Map" })
    await map.getByRole("link", { name: /^Orders <img.*requests\/(min|s)/ }).waitFor()
    await map
      .getByRole("link", { name: /events\/(min|s)/ })
      .first()
      .waitFor()
    expect(await map.locator("path.moves").count()).toBeGreaterThan(0)
    expect(await map.locator("img").count()).toBe(0)
    await map.getByRole("link", { name: /^Orders <img/ }).click()
    await page.waitForURL(new RegExp(`sources/${traffic.source.id}`))
  })

  it("The command palette opens a page, a resource by its name and a record by its id, and the keys are listed", async ({
    gateway,
    page,
    traffic
  }) => {
    await page.keyboard.press("Control+k")
    const field = page.getByRole("combobox", { name: "Page, name or id" })
    await field.fill(traffic.workflow.name)
    await page.getByRole("option", { name: traffic.workflow.name }).waitFor()
    expect(await violations(page)).toEqual([])
    await page.keyboard.press("Enter")
    await heading(page, traffic.workflow.name).waitFor()
    const { models } = await gateway.api("GET", `/attempts?limit=1`)
    await page.keyboard.press("Control+k")
    await field.fill(models[0]!.id)
    await page.keyboard.press("Enter")
    await page.waitForURL(new RegExp(`attempts/${models[0]!.id}`))
    await page.keyboard.press("Control+k")
    await field.fill("nothing has this name")
    await page.getByText("Nothing has this name or id.").waitFor()
    await page.keyboard.press("Escape")
    // Until then the field has the focus, although it is not shown any more.
    await field.waitFor({ state: "detached" })
    const keys = page.getByRole("dialog", { name: "Keys" }).getByText("j, k")
    // Pressed until the page has the focus again.
    await expect
      .poll(
        async () => {
          await page.keyboard.press("?")
          return keys.count()
        },
        { timeout: patience }
      )
      .toBe(1)
    await page.keyboard.press("Escape")
    // A paste is for the page unless it is into a field.
    await page.evaluate(`{
      const clipboardData = new DataTransfer()
      clipboardData.setData("text", " ${traffic.last} ")
      document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }))
    }`)
    await page.waitForURL(new RegExp(`requests/${traffic.last}`))
  })

  it("A live list shows a request that arrives while it is open", async ({ page, traffic }) => {
    await open(page, "Requests")
    await page.getByLabel("Live").check()
    await firstRow(page).waitFor()
    const answer = await fetch(traffic.source.url, { method: "POST", body: "{}" })
    const { request_id } = (await answer.json()) as { request_id: string }
    await page.getByText(request_id).waitFor()
  })

  it("The selected row of a live list stays selected when a newer one arrives above it, and Enter opens it", async ({
    page,
    traffic
  }) => {
    await turnTo(page, `requests?live=1&source_id=${traffic.source.id}`)
    await firstRow(page).waitFor()
    await page.locator("h1").click()
    await page.keyboard.press("j")
    const selected = page.locator('.row[data-selected="true"]')
    const address = await selected.getAttribute("href")
    const answer = await fetch(traffic.source.url, { method: "POST", body: "{}" })
    const { request_id } = (await answer.json()) as { request_id: string }
    await page.getByText(request_id).waitFor()
    expect(await selected.getAttribute("href")).toBe(address)
    // The next row up is the one that has arrived.
    await page.keyboard.press("k")
    await page.locator(`.row[data-selected="true"][href$="${request_id}"]`).waitFor()
    await page.keyboard.press("j")
    await page.locator(`.row[data-selected="true"][href="${address}"]`).waitFor()
    await page.keyboard.press("Enter")
    await page.waitForURL(`**${address}`)
  })

  it("A search for a text that finds nothing says how many requests it has read, and back to when", async ({
    page,
    traffic
  }) => {
    await turnTo(page, `requests?source_id=${traffic.source.id}&text=in-none-of-them`)
    await page.getByText("None of these requests has this text.").waitFor()
    await page.getByText(/^Searched: all [1-9]\d* of this time, back to \d{4}-.* GMT.\d{4}\.$/).waitFor()
  })

  it("A body is a tree that unfolds with all digits of its numbers, and a picture is seen, unless it is a document", async ({
    gateway,
    page
  }) => {
    const { url } = await gateway.source()
    const send = async (type: string, body: string | Uint8Array<ArrayBuffer>) => {
      const answer = await fetch(url, { method: "POST", headers: { "content-type": type }, body })
      return ((await answer.json()) as { request_id: string }).request_id
    }
    const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    const json = `{"order":{"id":12345678901234567890,"lines":[${"1,".repeat(149)}"last"]}}`
    await turnTo(page, `requests/${await send("application/json", json)}`)
    await page.getByRole("tab", { name: "Tree" }).click()
    const tree = page.locator(".tree")
    expect(await tree.textContent()).toBe("order: { 2 }")
    await tree.getByText("order").click()
    await tree.getByText("12345678901234567890").waitFor()
    await tree.getByText("lines").click()
    await tree.getByRole("button", { name: "Show more: 100 of 150 are shown" }).click()
    await tree.getByText('"last"').waitFor()
    expect(await violations(page)).toEqual([])

    const picture = page.getByRole("img", { name: "What was sent, as a picture" })
    await turnTo(page, `requests/${await send("text/plain", Uint8Array.from(Buffer.from(dot, "base64")))}`)
    await picture.waitFor()
    expect(await picture.evaluate((image: { readonly naturalWidth: number }) => image.naturalWidth)).toBe(1)
    await turnTo(
      page,
      `requests/${await send("image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"><rect/></svg>')}`
    )
    await page.getByText("<rect/>").waitFor()
    expect(await picture.count()).toBe(0)

    // Laid out, it would have five thousand million characters.
    const deep = "[".repeat(50_000) + "]".repeat(50_000)
    await turnTo(page, `requests/${await send("application/json", deep)}`)
    await page.getByText("[[[[[[[[[[").first().waitFor()
    // Forty levels are laid out, and can be a tree.
    await turnTo(page, `requests/${await send("application/json", "[".repeat(40) + "]".repeat(40))}`)
    await page.getByRole("tab", { name: "Tree" }).click()
    await page.locator(".tree summary").waitFor()
  })

  it("The first visit on the gateway's own machine is signed in as the demo user, and says so; after a sign-out, it is not", async ({
    stranger
  }) => {
    const page = await stranger("./", true)
    await heading(page, "Overview").waitFor()
    const notice = page.getByText("You are signed in as the demo user, because only this machine reaches the gateway.")
    await notice.waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByRole("button", { name: "Sign out" }).click()
    await page.getByRole("button", { name: "Look around as the demo user" }).waitFor()
  })

  it("Signing out ends the session", async ({ page }) => {
    await page.getByRole("button", { name: "Sign out" }).click()
    await page.getByLabel("API key").waitFor()
    await page.goto("./requests")
    await page.getByLabel("API key").waitFor()
  })

  it("They carry out every action that the table names them for, and none that it does not have", ({ carried }) => {
    expect(differences("Pages", carried)).toEqual({ missing: [], unknown: [] })
  })
})
