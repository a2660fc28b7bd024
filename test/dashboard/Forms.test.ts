import type { Page } from "playwright-core"
import { describe, expect } from "vitest"
import { differences } from "../support/DashboardActions.ts"
import { hasBrowser, heading, hostile, it as pageIt, open, settled, turnTo, usable } from "../support/DashboardPage.ts"
import type { Gateway } from "../support/Gateway.ts"
import { patience } from "../support/Waiting.ts"

const it = pageIt
  /** A workflow that begins on failure, and one with a step and most settings of its triggers. */
  .extend("flow", { scope: "file" }, async ({ gateway }) => {
    const source = await gateway.api("POST", "/sources", { name: gateway.name("orders") })
    const told = await gateway.api("POST", "/workflows", {
      name: `Tell ${hostile}`,
      source_id: null,
      status: "active",
      triggers: {},
      steps: [{ id: "some", kind: "filter", config: { conditions: { body: { a: 1 } } } }],
      edges: [{ source_type: "trigger", target_step_id: "some" }]
    })
    const make = (triggers: object | null) =>
      gateway.api("POST", "/workflows", {
        name: gateway.name("workflow"),
        source_id: source.id,
        triggers,
        steps: [{ id: "large", kind: "filter", name: "Large", config: { conditions: { body: { total: 5 } } } }],
        edges: [{ source_type: "trigger", target_step_id: "large" }]
      })
    const full = await make({
      schedule: [{ cron: "*/5 * * * *" }, { cron: "0 9 * * 1-5", timezone: "Europe/Berlin", missed: "all" }],
      deduplicate: { key: "body.id", window_ms: 86_400_000 },
      debounce: { key: "body.order.id", wait_ms: 30_000 },
      concurrency: { limit: 1 },
      rate_limit: { count: 60, period: "minute" },
      priority: { key: "headers.x-rank", default: -5 },
      on_failure: { workflow_id: told.id }
    })
    return { full, make, source, told }
  })

/** The part of the page with the fields of a setting. */
const setting = (page: Page, title: string) => page.getByRole("group", { name: title, exact: true })

const use = (page: Page, title: string) => page.getByRole("checkbox", { name: `Use it: ${title}`, exact: true })

const triggersOf = async (gateway: Gateway, id: string) => (await gateway.api("GET", `/workflows/${id}`)).triggers

describe.skipIf(!hasBrowser)("Forms of the dashboard", () => {
  it.for(["light", "dark"] as const)(
    "Everybody can use them in the %s theme, on a wide or a narrow screen",
    async (theme, { flow, gateway, signedIn }) => {
      const page = await signedIn(await gateway.session("owner"))
      await usable(page, theme, [`workflows/${flow.full.id}/triggers`, "alerts", "team", "team/secrets", "team/delete"])
      expect(await page.title()).toBe("Tidegate")
    }
  )

  it("Triggers that are stored are shown in their fields, and saving them changes nothing", async ({
    flow,
    gateway,
    page
  }) => {
    await turnTo(page, `workflows/${flow.full.id}`)
    await page.getByRole("link", { name: "Triggers", exact: true }).click()
    await setting(page, "By a schedule").getByLabel("Time zone").nth(1).waitFor()
    expect(await setting(page, "Carry out only the last one").getByLabel("Wait", { exact: true }).inputValue()).toBe(
      "30"
    )
    expect(await page.getByLabel("Workflow", { exact: true }).inputValue()).toBe(flow.told.id)
    expect(await use(page, "Carry out many requests in one run").isDisabled()).toBe(true)
    await page.getByText("It cannot be used together with “Carry out only the last one”.").first().waitFor()
    const stored = await triggersOf(gateway, flow.full.id)
    await page.getByRole("button", { name: "Save the triggers" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    expect(await triggersOf(gateway, flow.full.id)).toEqual(stored)
  })

  it("A workflow refuses the on-failure workflow of its team, and gets a priority only with a limit", async ({
    flow,
    gateway,
    page
  }) => {
    const workflow = await flow.make({ on_failure: { workflow_id: null } })
    await turnTo(page, `workflows/${workflow.id}/triggers`)
    expect(await page.getByLabel("Workflow", { exact: true }).inputValue()).toBe("")
    const important = "Let important ones begin first"
    expect(await use(page, important).isDisabled()).toBe(true)
    await use(page, "Limit how many run at once").check()
    await use(page, important).check()
    await setting(page, important).getByLabel("Key", { exact: true }).fill("body.rank")
    await page.getByRole("button", { name: "Save the triggers" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    expect(await triggersOf(gateway, workflow.id)).toMatchObject({
      concurrency: { limit: 1, key: null },
      priority: { key: "body.rank", default: 0 },
      on_failure: { workflow_id: null }
    })
  })

  it("Triggers are written by the keyboard, a refusal is shown at its field, and a change of the steps meanwhile does not matter", async ({
    flow,
    gateway,
    page
  }) => {
    const workflow = await flow.make(null)
    await turnTo(page, `workflows/${workflow.id}/triggers`)
    const save = page.getByRole("button", { name: "Save the triggers" })
    await use(page, "Carry out many requests in one run").focus()
    await page.keyboard.press("Space")
    expect(await use(page, "Answer the sender").isDisabled()).toBe(true)
    const batch = setting(page, "Carry out many requests in one run")
    await batch.getByLabel("Key", { exact: true }).fill("payload.shop")
    await batch.getByLabel("The batch is open for", { exact: true }).fill("2")
    await setting(page, "By a schedule").getByRole("button", { name: "Add one" }).click()
    const times = setting(page, "By a schedule").getByLabel("Times", { exact: true })
    await times.fill("0 0 30 2 *")
    await save.click()
    // Both have their fault, and the first one has the focus.
    await batch.getByRole("alert").waitFor()
    await setting(page, "By a schedule").getByRole("alert").getByText("never occurs").waitFor()
    await page.locator('[name="triggers.schedule.0.cron"]:focus').waitFor()
    expect(await triggersOf(gateway, workflow.id)).toBeNull()
    await times.fill("0 9 * * *")
    await batch.getByLabel("Key", { exact: true }).fill("body.shop")
    await gateway.api("PATCH", `/workflows/${workflow.id}`, {
      version: workflow.version,
      steps: [{ id: "large", kind: "filter", name: "Larger", config: { conditions: { body: { total: 6 } } } }]
    })
    await batch.getByLabel("Key", { exact: true }).press("Enter")
    await page.getByText("Saved", { exact: true }).waitFor()
    expect(await page.getByRole("alert").count()).toBe(0)
    expect(await triggersOf(gateway, workflow.id)).toMatchObject({
      schedule: [{ cron: "0 9 * * *", missed: "once" }],
      batch: { key: "body.shop", window_ms: 120_000, max_count: 100 },
      debounce: null
    })

    const { version } = await gateway.api("GET", `/workflows/${workflow.id}`)
    await gateway.api("PATCH", `/workflows/${workflow.id}`, { version, triggers: { concurrency: { limit: 2 } } })
    await setting(page, "By a schedule").getByRole("button", { name: "Remove 1" }).click()
    await save.click()
    await page.getByRole("alert").getByText("Somebody else has changed the triggers meanwhile").waitFor()
    expect(await triggersOf(gateway, workflow.id)).toMatchObject({ concurrency: { limit: 2 }, batch: null })
  })

  it("The settings of alerts are changed in a form, which shows what the gateway refuses at its field", async ({
    gateway,
    page
  }) => {
    await open(page, "Alerts")
    const addresses = page.getByLabel("Who gets them", { exact: true })
    await addresses.fill("ada@example.com\nnobody\n")
    await page.getByLabel("Send alerts to the chat").check()
    const save = page.getByRole("button", { name: "Save", exact: true })
    await save.click()
    await page.getByRole("alert").first().waitFor()
    await expect.poll(() => addresses.getAttribute("aria-invalid"), { timeout: patience }).toBe("true")
    await addresses.fill("ada@example.com\n\n grace@example.com ")
    await save.click()
    // There is no chat yet.
    await page.getByRole("alert").waitFor()
    expect(await page.getByLabel("Send alerts to the chat").getAttribute("aria-invalid")).toBe("true")
    await page.getByLabel("Send alerts to the chat").uncheck()
    await page.getByLabel("Check channels that get no notifications").uncheck()
    await page.getByLabel("Minutes between two messages about one alert").fill("90")
    await save.click()
    await page.getByText("Saved", { exact: true }).waitFor()
    expect(await gateway.api("GET", "/sources/channel-settings")).toMatchObject({
      email_enabled: true,
      email_recipients: ["ada@example.com", "grace@example.com"],
      chat_enabled: false,
      cooldown_minutes: 90,
      silence_alert_enabled: false,
      silence_alert_hours: 24
    })
  })

  it("Retention is shortened only after the reader has agreed, a refusal is shown at its field, and an empty field is the operator's setting", async ({
    gateway,
    signedIn
  }) => {
    const other = await gateway.forTeam()
    const kept = async () => (await other.api("GET", "/team")).retention
    const most = await kept()
    const page = await signedIn(other.key)
    await open(page, "Team")
    const payloads = page.getByLabel("Days to keep payloads", { exact: true })
    const records = page.getByLabel("Days to keep records", { exact: true })
    const save = page.getByRole("button", { name: "Save the retention" })
    const agree = page.getByLabel("What is older is deleted within the next hours, and cannot be restored")
    expect(await Promise.all([payloads, records].map((field) => field.inputValue()))).toEqual([
      String(most.payload_days),
      String(most.record_days)
    ])
    await records.fill("9")
    await save.click()
    // Nothing happens before the reader has agreed.
    expect([await agree.isChecked(), await kept()]).toEqual([false, most])
    await payloads.fill("10")
    await agree.check()
    await payloads.press("Enter")
    await page.getByRole("alert").getByText("must not be more than record_days").waitFor()
    expect([await payloads.getAttribute("aria-invalid"), await kept()]).toEqual(["true", most])
    await payloads.fill("7")
    await payloads.press("Enter")
    await page.getByText("Saved", { exact: true }).waitFor()
    expect(await kept()).toMatchObject({ payload_days: 7, record_days: 9 })
    await agree.waitFor({ state: "detached" })
    await payloads.fill("")
    await records.fill("")
    await save.click()
    await expect.poll(kept, { timeout: patience }).toEqual(most)
    // The browser refuses what the operator does not allow.
    await records.fill(String(most.record_days + 1))
    await page.locator('[name="retention.record_days"]:invalid').waitFor()
  })

  it("The team's key is replaced, the browser goes on with the new one, and the signing secret is replaced", async ({
    gateway,
    signedIn
  }) => {
    const other = await gateway.forTeam()
    const page = await signedIn(other.key)
    await open(page, "Team")
    await page.getByRole("link", { name: /^Show and replace/ }).click()
    const replace = page.getByRole("button", { name: "Replace the API key" })
    await replace.click()
    // Nothing happens before the reader has agreed.
    expect((await other.call("GET", "/team")).status).toBe(200)
    await page.getByLabel("Programs that use the key are refused until they have the new one").check()
    await replace.click()
    const key = await page.getByLabel("The new API key").inputValue()
    const statuses = [other.key, key].map(async (one) => (await other.call("GET", "/team", undefined, one)).status)
    expect(await Promise.all(statuses)).toEqual([401, 200])
    await page.getByText("You are signed in with it").waitFor()
    await page.getByLabel("All receivers get the new secret within 24 hours").check()
    await page.getByRole("button", { name: "Replace the signing secret" }).click()
    const secret = await page.getByLabel("The new signing secret").inputValue()
    expect(await page.getByLabel("The same for Standard Webhooks libraries").inputValue()).toBe(
      `whsec_${Buffer.from(secret).toString("base64")}`
    )
    expect(await other.signingSecret()).toBe(secret)
    await page.reload()
    await page.getByText(key.slice(-4)).waitFor()
    const seen = await page.content()
    expect([seen.includes(key), seen.includes(secret)]).toEqual([false, false])
  })

  it("A team is deleted when its name was written, and the page shows the progress and what was deleted", async ({
    gateway,
    signedIn
  }) => {
    const doomed = await gateway.forTeam()
    const { url } = await doomed.api("POST", "/sources", { name: doomed.name("source") })
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(200)
    const session = await doomed.session("owner")
    const { user } = (await doomed.call("GET", "/auth/me", undefined, session)).body
    await gateway.sql("insert into memberships values ($1, $2, 'member', now())", [gateway.team, user.id])
    const page = await signedIn(session)
    await open(page, "Team")
    await page.getByRole("link", { name: "Delete the team with all it has…" }).click()
    const name = page.getByLabel("Name of the team")
    await name.fill("Another name")
    await page.getByRole("button", { name: "Delete the team for ever" }).click()
    await page.getByRole("alert").waitFor()
    expect([await name.getAttribute("aria-invalid"), (await doomed.call("GET", "/team")).status]).toEqual(["true", 200])
    await name.fill(doomed.team)
    await name.press("Enter")
    await heading(page, "Deletion of a team").waitFor()
    await page.locator("header .mono", { hasText: doomed.team }).waitFor()
    expect([(await doomed.call("GET", "/team")).status, (await fetch(url, { method: "POST" })).status]).toEqual([
      401, 404
    ])
    const progress = async () => {
      // The time in which what was under way comes to its end. It ends once: the gateway would never reach a time that is always now.
      await gateway.sql(
        "update team_deletions set pass_at = now() where id = $1 and stage = 'checking' and pass_at > now()",
        [doomed.team]
      )
      return (await gateway.call("GET", `/team-deletions/${doomed.team}`, undefined, session)).body
    }
    await gateway.eventually("the deletion is done", progress, ({ stage }) => stage === "done")
    await page.locator("header .badge", { hasText: "Done" }).waitFor()
    const rows = page.getByRole("table", { name: "Deleted rows by table" }).getByRole("row")
    await rows.filter({ hasText: /^requests\s*1$/ }).waitFor()
    await usable(page, "dark", [`team-deletions/${doomed.team}`])
    // The caller goes on with the team that is left.
    await open(page, "Team")
    await page.getByText(gateway.team).first().waitFor()
  })

  it("A member sees the settings, is offered no change, and is told why", async ({ flow, gateway, signedIn }) => {
    const page = await signedIn(await gateway.session("member"))
    for (const [path, reason] of [
      [`workflows/${flow.full.id}/triggers`, "Only an owner of the team can change workflows."],
      ["alerts", "Only an owner of the team can change this."],
      ["team/secrets", "Only an owner of the team, or its own key, can see and replace them."],
      ["team/delete", "Only an owner who is signed in can delete the team. A key cannot."]
    ] as const) {
      await turnTo(page, path)
      await page.getByText(reason).first().waitFor()
      await settled(page)
      expect([path, await page.locator("main").getByRole("button").count()]).toEqual([path, 0])
    }
    await turnTo(page, `workflows/${flow.full.id}/triggers`)
    await page.getByText("*/5 * * * *").waitFor()
    await page.getByText("1 day").waitFor()
  })

  it("They carry out every action that the table names them for, and none that it does not have", ({ carried }) => {
    expect(differences("Forms", carried)).toEqual({ missing: [], unknown: [] })
  })
})
