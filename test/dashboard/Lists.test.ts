import { describe, expect } from "vitest"
import { addFilter, hasBrowser, heading, it as pageIt, settled, turnTo, violations } from "../support/DashboardPage.ts"
import { patience } from "../support/Waiting.ts"

const it = pageIt.extend("sent", { scope: "file" }, async ({ gateway, startTarget }) => {
  const target = await startTarget()
  const source = await gateway.source()
  const destination = await gateway.destination({ url: target.origin })
  await gateway.connection(source, destination)
  const answer = await fetch(source.url, { method: "POST", body: '{"id":1}' })
  const { request_id } = (await answer.json()) as { readonly request_id: string }
  await gateway.traced(request_id, 1)
  const { models } = await gateway.api("GET", `/events?request_id=${request_id}`)
  return { source, destination, request: request_id, event: models[0]!.id }
})

describe.skipIf(!hasBrowser)("Lists of the dashboard", () => {
  it("Filters are written with completion, are chips that the keyboard or a click removes, and the URL is their state", async ({
    page,
    sent
  }) => {
    await turnTo(page, "events")
    const chip = (name: string) => page.getByRole("button", { name: `Remove the filter ${name}` })
    const row = page.locator(`.list a[href$="${sent.event}"]`)
    await addFilter(page, "status:succ")
    await page.waitForURL(/status=SUCCESSFUL/)
    await row.waitFor()
    const field = page.getByRole("combobox", { name: "Add a filter" })
    await field.click()
    await page.getByRole("option", { name: "Source (source:)" }).click()
    await page.getByRole("option", { name: `Source: ${sent.source.name}`, exact: true }).click()
    await page.waitForURL(new RegExp(`source_id=${sent.source.id}`))
    await chip(`Source: ${sent.source.name}`).waitFor()
    await page.setViewportSize({ width: 375, height: 720 })
    await field.click()
    await settled(page)
    expect(await violations(page)).toEqual([])
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false)
    await page.reload()
    await chip("Status: Successful").press("Delete")
    await page.waitForURL((url) => !url.searchParams.has("status"))
    await expect.poll(() => page.evaluate("document.activeElement.className"), { timeout: patience }).toBe("chip")
    await page.keyboard.press("Backspace")
    await page.waitForURL((url) => !url.searchParams.has("source_id"))
    await addFilter(page, "status:failed")
    await addFilter(page, "error:TIMEOUT")
    await chip("Error: TIMEOUT").waitFor()
    await page.getByRole("button", { name: "Clear all" }).click()
    await page.waitForURL((url) => !url.searchParams.has("status") && !url.searchParams.has("error_code"))
    await row.waitFor()
  })

  it("Attempts of all events are narrowed to a connection and a status, a row is a link to its attempt, and keys open it", async ({
    gateway,
    page,
    sent
  }) => {
    const { models } = await gateway.api("GET", `/attempts?event_id=${sent.event}`)
    const { connection_id, id } = models[0]!
    const other = await gateway.connection(sent.source, await gateway.destination({ url: "http://127.0.0.1:9" }))
    await turnTo(page, `attempts?connection_id=${other.id}`)
    await page.getByText("There are no attempts with these filters.").waitFor()
    await turnTo(page, "attempts")
    await addFilter(page, "status:succ")
    await page.waitForURL(/status=SUCCESSFUL/)
    await turnTo(page, `attempts?connection_id=${connection_id}&status=FAILED`)
    await page.getByText("There are no attempts with these filters.").waitFor()
    await page.getByRole("button", { name: "Remove the filter Status: Failed" }).click()
    const row = page.locator(`.list a[href$="/attempts/${id}"]`)
    await row.waitFor()
    const [tab] = await Promise.all([page.context().waitForEvent("page"), row.click({ modifiers: ["ControlOrMeta"] })])
    await tab.waitForURL(new RegExp(`/attempts/${id}`))
    await tab.close()
    await page.locator("h1").click()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await heading(page, "Attempt").waitFor()
    await page.getByRole("heading", { name: "Answer of the target" }).waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByRole("link", { name: sent.event }).click()
    await heading(page, "Event").waitFor()
  })

  it("j and k move the focus over the rows of tables, and Enter does what has the focus", async ({ page, sent }) => {
    await turnTo(page, "")
    // Each table is read on its own.
    for (const { id } of [sent.source, sent.destination]) await page.locator(`main .wide a[href$="${id}"]`).waitFor()
    await page.locator("h1").click()
    const focused = () => page.evaluate("document.activeElement.closest('tr')?.querySelector('a').href ?? ''")
    const [first, second] = (await page.evaluate(
      "[...document.querySelectorAll('main .wide tbody tr')].flatMap((row) => row.querySelector('a')?.href ?? [])"
    )) as ReadonlyArray<string>
    for (const [key, row] of [
      ["j", first],
      ["j", second],
      ["k", first],
      ["k", first]
    ] as const) {
      await page.keyboard.press(key)
      expect(await focused()).toBe(row)
    }
    // In a field they are letters.
    await page.keyboard.press("/")
    await page.keyboard.type("jk")
    expect(await focused()).toBe("")
  })

  it("The page of attempts says why it shows none, and reads them again when it is told to", async ({ page, sent }) => {
    await page.route("**/v1/attempts?*", (route) =>
      route.fulfill({ status: 503, json: { code: "QUEUE_UNAVAILABLE", message: "The database does not answer." } })
    )
    await turnTo(page, "attempts")
    await page.getByRole("alert").getByText("The database does not answer.").waitFor()
    await page.unroute("**/v1/attempts?*")
    await page.getByRole("button", { name: "Try again" }).click()
    await page.locator(".list a").first().waitFor()
    expect(sent.event).toMatch(/^evt_/)
  })

  it("A search for a text reads further back when it is told to, until it is stopped, and then until the end", async ({
    gateway,
    page,
    sent
  }) => {
    const [row] = (await gateway.api("GET", "/requests?include=data&limit=1")).models
    const total = 1_350
    const at = (n: number) => new Date(Date.parse(row!.ingested_at) - n * 1_000).toISOString()
    /** The page that begins at each of these waits until it is let go. */
    const held = new Map([1_100, 1_200].map((first) => [first, Promise.withResolvers<void>()]))
    const asked: Array<number> = []
    // As many requests as no test sends: copies of one, of which the last but nine has the text in its path.
    await page.route("**/v1/requests?*", async (route) => {
      const parameters = new URL(route.request().url()).searchParams
      const first = Number(parameters.get("cursor") ?? 0)
      const models = Array.from({ length: Math.min(100, total - first) }, (_, k) => ({
        ...row,
        id: `req_${String(first + k).padStart(26, "0")}`,
        ingested_at: at(first + k),
        data: { ...row!.data, path: first + k === total - 10 ? "/the-lost-one" : "/" }
      }))
      asked.push(first)
      await held.get(first)?.promise
      const next = first + 100 < total ? String(first + 100) : null
      await route.fulfill({ json: { models, count: models.length, next_cursor: next, has_more: next !== null } })
    })
    await turnTo(page, `requests?text=the-lost-one&source_id=${sent.source.id}`)
    const note = page.getByRole("status", { name: "How far was searched" })
    await note.getByText(/^Searched: the newest 1,000 of this time, .*Older ones were not read\.$/).waitFor()
    expect(asked).toEqual([0, 100, 200, 300, 400, 500, 600, 700, 800, 900])
    const onward = page.getByRole("button", { name: "Search further back" })
    await onward.click()
    await note.getByText(/^Searching: the newest 1,100 of this time/).waitFor()
    await page.getByRole("button", { name: "Stop", exact: true }).click()
    held.get(1_100)!.resolve()
    // The part that was being read when it was stopped is the last one.
    await note.getByText(/^Searched: the newest 1,200 of this time/).waitFor()
    expect(asked.at(-1)).toBe(1_100)
    expect(await violations(page)).toEqual([])
    await onward.click()
    await note.getByText(/^Searching: the newest 1,200 of this time/).waitFor()
    held.get(1_200)!.resolve()
    await note.getByText(/^Searched: all 1,350 of this time/).waitFor()
    await page.locator(`.list a[href$="req_${String(total - 10).padStart(26, "0")}"]`).waitFor()
    expect([asked.slice(-2), await onward.count()]).toEqual([[1_200, 1_300], 0])
    await page.unroute("**/v1/requests?*")
  })

  it("Sources, destinations and connections are narrowed by name, by type and by their ends, and a list says when nothing matches", async ({
    page,
    sent
  }) => {
    await turnTo(page, "destinations")
    await page.locator(".list .row").first().waitFor()
    await addFilter(page, "type:slack")
    await page.waitForURL(/type=CHAT_BOT/)
    await page.getByText("No destination matches these filters.").waitFor()
    await page.getByRole("button", { name: "Remove the filter Type: Slack" }).click()
    await page.locator(".list .row").first().waitFor()
    await turnTo(page, "sources")
    const row = page.locator(`.list a[href$="${sent.source.id}"]`)
    await addFilter(page, `name:${sent.source.name}`)
    await page.waitForURL(new RegExp(`[?&]id=${sent.source.id}`))
    await row.waitFor()
    await addFilter(page, "type:stripe")
    await page.getByText("No source matches these filters.").waitFor()
    await row.waitFor({ state: "detached" })
    await turnTo(page, "connections")
    await addFilter(page, `source:${sent.source.name}`)
    await page.waitForURL(new RegExp(`source_id=${sent.source.id}`))
    await page.locator(".list .row").first().waitFor()
    await addFilter(page, "paused:yes")
    await page.getByText("No connection matches these filters.").waitFor()
    await turnTo(page, "workflows")
    await addFilter(page, "status:paused")
    await page.getByText("No workflow matches these filters.").waitFor()
    expect(await violations(page)).toEqual([])
  })

  it("Somebody in two teams switches between them: lists show the rows of the other team, and the page of a record becomes its list", async ({
    gateway,
    sent,
    signedIn
  }) => {
    const second = await gateway.forTeam()
    const token = await gateway.session("owner")
    const { body } = await gateway.call("GET", "/auth/me", undefined, token)
    await gateway.sql("insert into memberships values ($1, $2, 'owner', now())", [second.team, body.user.id])
    const theirs = await second.source()
    const page = await signedIn(token)
    await turnTo(page, `sources/${sent.source.id}?from=now-1h`)
    await heading(page, sent.source.name).waitFor()
    await page.getByLabel("Team", { exact: true }).selectOption(second.team)
    await page.waitForURL(/\/sources$/)
    await page.locator(`.list a[href$="${theirs.id}"]`).waitFor()
    expect(await page.locator(`.list a[href$="${sent.source.id}"]`).count()).toBe(0)
    // The browser remembers the team.
    await page.reload()
    await page.locator(`.list a[href$="${theirs.id}"]`).waitFor()
  })

  it("An event leads to the form that edits its request and sends it", async ({ page, sent }) => {
    await turnTo(page, `events/${sent.event}`)
    await page.getByRole("link", { name: "Edit and send…" }).click()
    await heading(page, "Request").waitFor()
    await page.getByRole("heading", { name: "Edit this request and send it" }).waitFor()
    expect(page.url()).toContain(sent.request)
  })
})
