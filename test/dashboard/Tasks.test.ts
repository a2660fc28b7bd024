import { createHmac } from "node:crypto"
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { describe, expect } from "vitest"
import { differences } from "../support/DashboardActions.ts"
import { firstRow, hasBrowser, heading, it as pageIt } from "../support/DashboardPage.ts"
import { Hand } from "../support/Hand.ts"
import type { Reply } from "../support/Target.ts"

/*
 * What people come to the dashboard for, done as they do it: by clicks and by writing, never by a call of the API. What came of it is
 * read from the API. The page in docs says how much each task takes, and no task may take more.
 */

const slack = "https://slack.com"
const works: Reply = (response) => void response.writeHead(200).end()

const stripeSecret = "whsec_of_the_shop"

const it = pageIt
  .extend("chat", { scope: "file" }, ({ startTarget }) =>
    startTarget((response) => void response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}'))
  )
  .extend("settings", { scope: "file" }, ({ chat }) => ({ TIDEGATE_API_ORIGINS: `${slack}=${chat.origin}` }))
  /** A shop whose orders go to a warehouse that is down: twelve have failed. */
  .extend("shop", { scope: "file" }, async ({ gateway, startTarget }) => {
    const warehouse = await startTarget(
      (response) =>
        void response.writeHead(503, { "content-type": "text/plain" }).end("The warehouse counts its stock.")
    )
    const source = await gateway.api("POST", "/sources", { name: "Shop orders" })
    const destination = await gateway.api("POST", "/destinations", {
      name: "Warehouse",
      type: "HTTP",
      config: { url: warehouse.origin }
    })
    const accounting = await startTarget()
    await gateway.api("POST", "/destinations", { name: "Accounting", type: "HTTP", config: { url: accounting.origin } })
    const connection = await gateway.connection(source, destination)
    const order = async (number: number, total: number): Promise<string> => {
      const answer = await fetch(source.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ order: `order-${number}`, total })
      })
      return ((await answer.json()) as { readonly request_id: string }).request_id
    }
    for (let number = 1001; number <= 1012; number++) await order(number, number)
    const statuses = async (status: string): Promise<number> =>
      (await gateway.api("GET", `/events?connection_id=${connection.id}&status=${status}&limit=100`)).models.length
    await gateway.eventually(
      "all orders have failed",
      () => statuses("FAILED"),
      (failed) => failed === 12
    )
    return { source, destination, order, statuses, warehouse }
  })
  /** The most clicks and fields that the page in docs gives for a task. */
  .extend("documented", { scope: "file" }, async () => {
    const text = await readFile(resolve(import.meta.dirname, "../../docs/dashboard.md"), "utf8")
    return (task: string) => {
      const row = text.split("\n").find((line) => line.startsWith(`| ${task} `)) ?? ""
      const [, clicks, fields] = /(\d+) clicks?, (\d+) fields?/.exec(row) ?? []
      expect(clicks, `docs/dashboard.md says how many clicks this task takes: ${task}`).toBeDefined()
      return { clicks: Number(clicks), fields: Number(fields) }
    }
  })
  .extend("hand", ({}, { onCleanup }) => {
    const hand = new Hand()
    onCleanup(() => expect(hand.clicks).toBeGreaterThan(0))
    return hand
  })
  .extend("noMoreThan", ({ documented, hand }) => (task: string) => {
    const most = documented(task)
    expect(hand.clicks, `clicks: ${task}`).toBeLessThanOrEqual(most.clicks)
    expect(hand.fields, `fields: ${task}`).toBeLessThanOrEqual(most.fields)
  })

describe.skipIf(!hasBrowser)("Five tasks take no more clicks than the page says", () => {
  it("Find why an order's webhook did not arrive", async ({ gateway, hand, noMoreThan, page, shop }) => {
    const menu = page.getByRole("navigation", { name: "Pages" })
    await hand.click(menu.getByRole("link", { name: "Requests", exact: true }))
    await hand.search(page.getByRole("combobox", { name: "Add a filter" }), "order-1007")
    await page.waitForURL(/text=order-1007/)
    await hand.click(firstRow(page))
    await heading(page, "Request").waitFor()
    await page.getByText("order-1007").first().waitFor()
    await hand.click(page.getByRole("link", { name: /^Attempt 1/ }))
    await page.getByText("The warehouse counts its stock.").waitFor()
    const [, event] = /(evt_\w+)/.exec(page.url()) ?? []
    const found = await gateway.api("GET", `/events/${event!}`)
    expect(found).toMatchObject({ status: "FAILED", destination_id: shop.destination.id })
    expect(JSON.stringify(found.data)).toContain("order-1007")
    noMoreThan("Find why an order's webhook did not arrive")
  })

  it("Retry the failures of an hour", async ({ gateway, hand, noMoreThan, page, shop }) => {
    shop.warehouse.reply = works
    await hand.click(page.getByRole("link", { name: "Events failed" }))
    await heading(page, "Events").waitFor()
    await hand.choose(page.getByLabel("Time range"), { label: "Last hour" })
    await page.waitForURL(/from=now-1h/)
    await hand.click(page.getByRole("button", { name: "Retry all of them…" }))
    await hand.click(page.getByRole("button", { name: "Retry 12 events" }))
    await page.locator("header .badge", { hasText: "Completed" }).waitFor()
    await gateway.eventually(
      "all orders were delivered",
      () => shop.statuses("SUCCESSFUL"),
      (done) => done === 12
    )
    const { models } = await gateway.api("GET", "/events/bulk_operations")
    expect(models).toHaveLength(1)
    const { from, to } = models[0]!.filter
    expect(Date.parse(to) - Date.parse(from)).toBe(3_600_000)
    noMoreThan("Retry the failures of an hour")
  })

  it("Add a Stripe source that goes to Slack", async ({ chat, gateway, hand, noMoreThan, page }) => {
    const menu = page.getByRole("navigation", { name: "Pages" })
    await hand.click(menu.getByRole("link", { name: "Connections", exact: true }))
    await hand.click(page.getByRole("link", { name: "New connection" }))
    await hand.choose(page.getByLabel("Source", { exact: true }), "another")
    await hand.write(page.getByLabel("Name of the source"), "Payments")
    await hand.choose(page.getByLabel("Type of the source", { exact: true }), "STRIPE")
    await hand.write(page.locator('input[name="source.config.auth.webhook_secret_key"]'), stripeSecret)
    await hand.choose(page.getByLabel("Destination", { exact: true }), "another")
    await hand.write(page.getByLabel("Name of the destination"), "Sales channel")
    await hand.choose(page.getByLabel("Type of the destination", { exact: true }), { label: "Slack" })
    await hand.write(page.getByLabel(/^channel/), "C0123456789")
    await hand.write(page.getByLabel(/^text_template/), "Paid: {{payload.id}}")
    await hand.write(page.getByLabel(/^bot_token/), "xoxb-of-the-shop")
    await hand.click(page.getByRole("button", { name: "Create the connection" }))
    await heading(page, "Payments to Sales channel").waitFor()

    const { models } = await gateway.api("GET", "/connections?limit=100")
    const made = models.find(({ name }) => name === "Payments to Sales channel")!
    expect(made).toMatchObject({ source: { type: "STRIPE" }, destination: { type: "CHAT_BOT" } })
    const body = JSON.stringify({ id: "evt_1", object: "event", type: "charge.succeeded" })
    const at = Math.floor(Date.now() / 1000)
    const signature = createHmac("sha256", stripeSecret).update(`${at}.${body}`).digest("hex")
    const headers = { "content-type": "application/json", "stripe-signature": `t=${at},v1=${signature}` }
    expect((await fetch(made.source.url, { method: "POST", headers, body })).status).toBe(200)
    const [message] = await chat.next()
    expect(message!.url).toBe("/api/chat.postMessage")
    expect(JSON.parse(message!.body.toString())).toMatchObject({ channel: "C0123456789", text: "Paid: evt_1" })
    noMoreThan("Add a Stripe source that goes to Slack")
  })

  it("Build a workflow with a branch", async ({ gateway, hand, noMoreThan, page, shop }) => {
    const menu = page.getByRole("navigation", { name: "Pages" })
    const add = page.getByRole("button", { name: "Add it after the selected one" })
    await hand.click(menu.getByRole("link", { name: "Workflows", exact: true }))
    await hand.click(page.getByRole("link", { name: "New workflow" }))
    await hand.write(page.getByLabel("Name", { exact: true }), "By size")
    await hand.choose(page.getByLabel("Source", { exact: true }), shop.source.id)
    await hand.click(page.getByRole("button", { name: "Create the workflow" }))
    await hand.choose(page.getByLabel("New step"), "branch")
    await hand.click(add)
    const paths = [
      { key: "large", rule: "conditions", conditions: { trigger: { body: { total: { $gte: 5000 } } } } },
      { key: "rest", rule: "fallback" }
    ]
    await hand.write(page.getByLabel(/^paths/), JSON.stringify(paths))
    await hand.choose(page.getByLabel("New step"), "destination")
    await hand.click(add)
    await hand.choose(page.getByLabel("destination", { exact: true }), { label: "Warehouse" })
    await hand.click(page.getByRole("button", { name: /^branch_1, branch/ }))
    await hand.click(add)
    await hand.choose(page.getByLabel("destination", { exact: true }), { label: "Accounting" })
    await hand.click(page.getByRole("button", { name: "Save", exact: true }))
    await page.getByText("Saved as version 2").waitFor()
    await hand.click(page.getByRole("link", { name: "Back" }))
    await hand.click(page.getByRole("button", { name: "Activate" }))
    await page.locator("header .badge", { hasText: "Active" }).waitFor()

    const [, id] = /(wfl_\w+)/.exec(page.url()) ?? []
    expect((await gateway.api("GET", `/workflows/${id!}`)).edges).toMatchObject([
      { target_step_id: "branch_1" },
      { source_step_id: "branch_1", source_port: "path_large", target_step_id: "destination_2" },
      { source_step_id: "branch_1", source_port: "path_rest", target_step_id: "destination_3" }
    ])
    shop.warehouse.reply = works
    const stepsOf = async (order: number, total: number) => {
      const request = await shop.order(order, total)
      const run = await gateway.eventually(`order ${order} has gone its way`, async () => {
        const { models } = await gateway.api("GET", `/workflows/${id!}/runs`)
        return models.find(({ request_id, status }) => request_id === request && status === "succeeded")
      })
      const { steps } = await gateway.api("GET", `/workflows/${id!}/runs/${run.id}`)
      return Object.fromEntries(steps.map(({ status, step_id }) => [step_id, status]))
    }
    expect(await stepsOf(2001, 9000)).toMatchObject({ destination_2: "succeeded", destination_3: "skipped" })
    expect(await stepsOf(2002, 10)).toMatchObject({ destination_2: "skipped", destination_3: "succeeded" })
    noMoreThan("Build a workflow with a branch")
  })

  it("Rotate a key", async ({ gateway, hand, noMoreThan, signedIn }) => {
    const owner = await gateway.session("owner")
    const { body } = await gateway.call("POST", "/project-api-keys", { name: "ci", scopes: ["control:read"] }, owner)
    const old: string = body.data.api_key
    const page = await signedIn(owner)
    const menu = page.getByRole("navigation", { name: "Pages" })
    await hand.click(menu.getByRole("link", { name: "Team", exact: true }))
    await hand.click(page.getByRole("button", { name: "New key…" }))
    await hand.write(page.getByLabel("Name", { exact: true }), "ci of this month")
    await hand.click(page.getByRole("button", { name: "Make the key" }))
    const key = await page.getByLabel("The new key").inputValue()
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "ci", exact: true }) })
    await hand.click(row.getByRole("button", { name: "Revoke" }))
    await hand.click(row.getByRole("button", { name: "Revoke it for ever?" }))
    await row.getByText("Revoked").waitFor()
    const statusOf = async (credential: string) => (await gateway.call("GET", "/sources", undefined, credential)).status
    expect([await statusOf(key), await statusOf(old)]).toEqual([200, 401])
    noMoreThan("Rotate a key")
  })

  it("They carry out every action that the table names them for, and none that it does not have", ({ carried }) => {
    expect(differences("Tasks", carried)).toEqual({ missing: [], unknown: [] })
  })
})
