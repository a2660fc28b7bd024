import { describe, expect } from "vitest"
import { differences } from "../support/DashboardActions.ts"
import { hasBrowser, heading, it as pageIt, settled, turnTo, violations } from "../support/DashboardPage.ts"
import type { Gateway } from "../support/Gateway.ts"
import { patience } from "../support/Waiting.ts"

/*
 * Why a request did not arrive: each reason in a sentence, with the rule that decided. The overview says where to look first.
 */

const send = async (url: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<string> => {
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body })
  return ((await answer.json()) as { readonly request_id: string }).request_id
}

/** Waits until a request was ignored, and returns its ignored event. */
const ignored = (gateway: Gateway, request: string) =>
  gateway.eventually("the request was ignored", async () => {
    const { ignored_events } = await gateway.api("GET", `/requests/${request}/trace`)
    return ignored_events[0] ?? null
  })

const it = pageIt
  .extend("connected", ({ gateway, startTarget }) => async (rules: ReadonlyArray<object>) => {
    const source = await gateway.source()
    const { origin } = await startTarget()
    const destination = await gateway.destination({ url: origin })
    const connection = await gateway.api("POST", "/connections", {
      name: gateway.name("rules"),
      source_id: source.id,
      destination_id: destination.id,
      rules
    } as never)
    return { source, destination, connection }
  })
  .extend("reasons", ({ page }) => page.locator(".panel").filter({ hasText: "Why connections ignored it" }))

describe.skipIf(!hasBrowser)("Why a request did not arrive", () => {
  it("A filter that did not match is shown with the part that decided, and names the condition when it is asked", async ({
    connected,
    gateway,
    page,
    reasons
  }) => {
    const { connection, source } = await connected([
      { type: "filter", body: { total: { $gte: 50 } }, headers: { "content-type": "application/json" } }
    ])
    const request = await send(source.url, '{"total":20}')
    await ignored(gateway, request)
    await turnTo(page, `requests/${request}`)
    await reasons.getByText("the connection's filter did not match (body)").waitFor()
    const rule = reasons.locator("pre")
    expect(JSON.parse(await rule.innerText())).toEqual({ body: { total: { $gte: 50 } } })
    await reasons.getByRole("button", { name: "Which condition?" }).click()
    await reasons
      .getByRole("status")
      .getByText(/^body\.total \$gte 50, but it is 20$/)
      .waitFor()
    await settled(page)
    expect(await violations(page)).toEqual([])
    await gateway.api("PATCH", `/connections/${connection.id}`, { rules: [{ type: "filter", body: { total: 1 } }] })
    await page.reload()
    await reasons.getByText("this is the rule as it is now").waitFor()
    await reasons.getByRole("link", { name: connection.name }).click()
    await heading(page, connection.name).waitFor()
  })

  it("A duplicate leads to the request that it repeats, and a transformation that fails to its code", async ({
    connected,
    gateway,
    page,
    reasons
  }) => {
    const same = await connected([{ type: "deduplicate", window: 60_000, include_fields: ["body.order"] }])
    const first = await send(same.source.url, '{"order":1}')
    await gateway.traced(first, 1)
    const second = await send(same.source.url, '{"order":1}')
    await ignored(gateway, second)
    await turnTo(page, `requests/${second}`)
    await reasons.getByText("an earlier request had the same key").waitFor()
    await reasons.getByText('"body.order"').waitFor()
    await reasons.getByRole("link", { name: first }).click()
    await page.waitForURL(new RegExp(`requests/${first}`))
    await reasons.waitFor({ state: "detached" })

    const transformation = await gateway.api("POST", "/transformations", {
      name: gateway.name("fails"),
      code: 'addHandler("transform", () => { throw new Error("no <b>weight</b>") })'
    })
    const failing = await connected([{ type: "transform", transformation_id: transformation.id }])
    const failed = await send(failing.source.url, "{}")
    await ignored(gateway, failed)
    await turnTo(page, `requests/${failed}`)
    await reasons
      .getByText(/no <b>weight<\/b>/)
      .first()
      .waitFor()
    await reasons.getByRole("link", { name: transformation.name }).click()
    await heading(page, transformation.name).waitFor()
  })

  it("The overview begins with senders that could not be verified, which lead to their requests and to the settings of the source", async ({
    gateway,
    page
  }) => {
    const source = await gateway.api("POST", "/sources", {
      name: gateway.name("payments"),
      type: "STRIPE",
      config: { auth: { webhook_secret_key: "whsec_of_the_shop" } }
    })
    const answer = await fetch(source.url, { method: "POST", headers: { "stripe-signature": "t=1,v1=00" }, body: "{}" })
    expect(answer.status).toBe(401)
    await gateway.eventually("the rejected request is counted", async () => {
      const { models } = await gateway.api("GET", `/metrics/sources?ids=${source.id}`)
      return models[0]?.requests_24h_rejected_count === 1 ? true : null
    })
    await turnTo(page, "")
    const entry = page
      .getByRole("list", { name: "What needs attention" })
      .getByRole("listitem")
      .filter({ hasText: source.name })
    await entry.getByText("the senders of 1 could not be verified").waitFor()
    await entry.getByRole("link", { name: "Show the unverified ones" }).click()
    await heading(page, "Requests").waitFor()
    await page.locator(".list .row").click()
    await page.getByText("It was rejected: its sender could not be verified.").waitFor()
    await page.getByRole("link", { name: "Show the settings of the source" }).click()
    await heading(page, source.name).waitFor()
  })

  it("The overview names a queue in which many events wait, and says that nothing needs attention where nothing does", async ({
    gateway,
    page,
    signedIn
  }) => {
    const other = await signedIn(await gateway.session("owner"))
    const counts = (id: string, waiting: number, failed: number) => ({
      id,
      destination_id: id,
      events_24h_failed_count: failed,
      events_24h_successful_count: 0,
      events_24h_pending_count: waiting,
      events_24h_pending_bins: [0, 0, 0, 0, 0, waiting]
    })
    for (const [waiting, reader] of [
      [100, page],
      [99, other]
    ] as const) {
      // As many events as no test sends.
      await reader.route("**/v1/destinations?*", (route) =>
        route.fulfill({ json: { models: [{ id: "des_queue", name: "Queue" }] } })
      )
      await reader.route("**/v1/metrics/destinations?*", (route) =>
        route.fulfill({ json: { models: [counts("des_queue", waiting, 0)] } })
      )
      for (const kind of ["sources", "workflows", "sources/channel-alerts", "sources/channels"])
        await reader.route(`**/v1/${kind}?*`, (route) => route.fulfill({ json: { models: [] } }))
      await reader.reload()
      await reader.getByRole("heading", { name: "What needs attention" }).waitFor()
    }
    const entry = page.getByRole("listitem").filter({ hasText: "100 events wait for Queue" })
    const link = entry.getByRole("link", { name: "Show those that wait" })
    expect(await link.getAttribute("href")).toContain("destination_id=des_queue&status=WAITING")
    const nothing = other.getByText(/^Nothing does: /)
    await nothing.waitFor({ timeout: patience })
    // What cannot be read may be in trouble.
    await other.route("**/v1/metrics/destinations?*", (route) =>
      route.fulfill({ status: 503, json: { code: "QUEUE_UNAVAILABLE", message: "The database does not answer." } })
    )
    await other.reload()
    await other.getByRole("alert").getByText("The database does not answer.").first().waitFor()
    expect(await nothing.count()).toBe(0)
    await page.unrouteAll()
  })

  it("What carries out the buttons of the reasons is in the table of actions", ({ carried }) => {
    expect(differences("Reasons", carried)).toEqual({ missing: [], unknown: [] })
  })
})
