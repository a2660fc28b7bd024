import type { Locator, Page, Request } from "playwright-core"
import { describe, expect } from "vitest"
import { firstRow, freshIt as pageIt, hasBrowser, heading, open, settled } from "../support/DashboardPage.ts"
import { eventually } from "../support/Waiting.ts"

/*
 * What an open page costs, counted in requests and rows. The page's clock is the test's: minutes pass at once, and nothing depends on how
 * fast the machine is.
 */

/** The browser says that the page is in the background, or in the foreground again. */
const show = (page: Page, state: "hidden" | "visible") =>
  page.evaluate(`{
    Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true })
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))
  }`)

/** The paths that the page has asked for, and a wait until all of them are answered. */
const it = pageIt.extend("calls", ({ page }) => {
  const asked: Array<string> = []
  const underWay = new Set<Request>()
  page.on("request", (request) => {
    asked.push(new URL(request.url()).pathname)
    underWay.add(request)
  })
  page.on("requestfinished", (request) => underWay.delete(request))
  page.on("requestfailed", (request) => underWay.delete(request))
  return { asked, answered: () => eventually("no request is under way", () => (underWay.size === 0 ? true : null)) }
})

const minute = 60_000

/** A list of made-up rows, answered by the test: the newest has the number `newest`, and older ones follow down to 0. */
class MadeUp {
  newest: number
  /** How many rows arrive between two readings of the newest ones. */
  arriving = 0
  counted = 0
  /** The length of a text that each row has, and no other row (bytes). */
  weight = 0
  /** Rows are answered after this. */
  held: Promise<void> = Promise.resolve()
  readonly cursors: Array<number> = []

  constructor(newest: number) {
    this.newest = newest
  }

  async answer(page: Page): Promise<void> {
    await page.route("**/v1/requests?*", async (route) => {
      const asked = new URL(route.request().url()).searchParams
      const given = asked.get("cursor")
      if (given === null) this.newest += this.arriving
      const cursor = Number(given ?? this.newest)
      this.cursors.push(cursor)
      const length = Math.min(Number(asked.get("limit")), cursor + 1)
      const models = Array.from({ length }, (_, n) => ({
        id: `req_${String(cursor - n).padStart(26, "0")}`,
        status: "accepted",
        ingested_at: new Date(1_700_000_000_000 + cursor - n).toISOString(),
        source_id: "src_none",
        events_count: 1,
        ignored_count: 0,
        verified: false,
        rejection_cause: null,
        weight: String(cursor - n).padEnd(this.weight, "x")
      }))
      const next = cursor - length
      await this.held
      await route.fulfill({
        json: {
          models,
          next_cursor: next < 0 ? null : String(next),
          has_more: next >= 0,
          pagination: {},
          count: length
        }
      })
    })
    await page.route("**/v1/requests/count?*", async (route) => {
      this.counted++
      await route.fulfill({ json: { total: 2_000, count: 2_000, total_exact: true } })
    })
  }
}

/** Presses End until the oldest row is shown. */
const toTheEnd = async (page: Page) => {
  await page.getByRole("region", { name: "Requests", exact: true }).focus()
  await eventually("the last row is shown", async () => {
    await page.keyboard.press("End")
    return (await row(page, 0).count()) > 0 ? true : null
  })
}

/** What the page's scripts hold after a garbage collection (bytes). */
const heapOf = async (page: Page): Promise<number> => {
  const session = await page.context().newCDPSession(page)
  await session.send("HeapProfiler.collectGarbage")
  const { usedSize } = await session.send("Runtime.getHeapUsage")
  await session.detach()
  return usedSize
}

const row = (page: Page, number: number) => page.getByText(`req_${String(number).padStart(26, "0")}`)

describe.skipIf(!hasBrowser)("Cost of an open dashboard", () => {
  it("A page in the background asks the gateway for nothing, and goes on when it is seen again", async ({
    calls: { answered, asked },
    page
  }) => {
    await page.clock.install()
    /** Short steps, each with its answers: a call that is not answered in 20 s is repeated. */
    const askedAgain = async (path: string) => {
      const before = asked.length
      await eventually(`${path} is read again`, async () => {
        await page.clock.runFor(5_000)
        await answered()
        return asked.length > before ? true : null
      })
    }
    for (const path of ["", "map", "requests?live=1", "bulk-operations"]) {
      await page.goto(`./${path}`)
      await page.getByRole("heading", { level: 1 }).waitFor()
      await settled(page)
      await askedAgain(path)
      await show(page, "hidden")
      await answered()
      const before = asked.length
      await page.clock.runFor(30 * minute)
      expect([path, asked.slice(before)]).toEqual([path, []])
      await show(page, "visible")
      await askedAgain(path)
    }
  })

  it("The stream of a bin ends in the background, and what came meanwhile is shown when the page is seen again", async ({
    page
  }) => {
    await open(page, "Bins")
    const [stream] = await Promise.all([
      page.waitForEvent("websocket"),
      page.getByRole("button", { name: "New bin" }).click()
    ])
    await heading(page, "Bin").waitFor()
    await page.getByText("Live", { exact: true }).waitFor()
    const url = await page.locator("dd code").first().textContent()
    await show(page, "hidden")
    await eventually("the stream has ended", () => stream.isClosed() || null)
    await fetch(`${url}/meanwhile`, { method: "POST", body: "{}" })
    await show(page, "visible")
    await page.getByText("POST /meanwhile").waitFor()
  })

  it("A long list keeps only the rows near the reader, and reads them again on the way back", async ({ page }) => {
    const list = new MadeUp(1_999)
    await list.answer(page)
    await page.goto("./requests")
    await firstRow(page).waitFor()
    await toTheEnd(page)
    expect(await page.locator(".list .row").count()).toBeLessThan(100)
    // Each page was read once, with the cursor of the page before.
    expect(list.cursors.filter((cursor) => cursor < 1_900)).toEqual(
      Array.from({ length: 19 }, (_, n) => 1_899 - 100 * n)
    )
    await page.keyboard.press("Home")
    await row(page, 1_999).waitFor()
    expect(await page.locator(".list .row").count()).toBeLessThan(100)
  })

  it("Pages of a long list that are out of sight leave the memory", async ({ page }) => {
    const list = new MadeUp(1_999)
    list.weight = 10_000
    await list.answer(page)
    await page.clock.install()
    await page.goto("./requests")
    await firstRow(page).waitFor()
    const before = await heapOf(page)
    await toTheEnd(page)
    await eventually("no more than five of its twenty pages are in memory", async () => {
      // They may stay for some seconds, in which the reader may come back.
      await page.clock.runFor(minute)
      return (await heapOf(page)) - before < 500 * list.weight || null
    })
  })

  it("A row that is selected by a key is seen as a whole: it is between the list's head and its end", async ({
    page
  }) => {
    const list = new MadeUp(1_999)
    await list.answer(page)
    await page.goto("./requests")
    await row(page, 1_999).waitFor()
    await page.locator("h1").click()
    const between = async (number: number) => {
      const selected = page.locator('.row[data-selected="true"]', { has: row(page, number) })
      await selected.waitFor()
      const boxOf = async (one: Locator) => (await one.boundingBox())!
      const head = await boxOf(page.locator(".list .head"))
      const line = await boxOf(selected)
      const list = await boxOf(page.locator(".list"))
      return line.y >= head.y + head.height && line.y + line.height <= list.y + list.height
    }
    for (let n = 0; n < 30; n++) await page.keyboard.press("j")
    expect(await between(1_970)).toBe(true)
    for (let n = 0; n < 25; n++) await page.keyboard.press("k")
    expect(await between(1_995)).toBe(true)
  })

  it("A live list of which more arrives than it shows says how much", async ({ page }) => {
    const list = new MadeUp(9_999)
    await list.answer(page)
    await page.clock.install()
    await page.goto("./requests?live=1")
    await row(page, 9_999).waitFor()
    await page.getByText(/^Live: the rows in sight are read again every \d+ seconds\.$/).waitFor()
    expect(list.counted).toBe(0)
    list.arriving = 2_000
    await eventually("what has arrived is told", async () => {
      await page.clock.runFor(2_000)
      return (await page
        .getByText(/^Live: 2,000 have arrived in [\d.]+ s, counted every thirty seconds\. The newest 60 are shown\.$/)
        .count()) > 0
        ? true
        : null
    })
    expect(list.counted).toBeGreaterThan(0)
    expect(await page.locator(".list .row").count()).toBeLessThan(100)
  })

  it("A live list that shows a sample reads its rows every four seconds at most, and counts what it does not show, and its bars, every thirty", async ({
    calls: { answered, asked },
    page
  }) => {
    const list = new MadeUp(9_999)
    list.arriving = 2_000
    await list.answer(page)
    await page.clock.install()
    await page.goto("./requests?live=1")
    await firstRow(page).waitFor()
    await answered()
    // From now on no time passes but that of the steps, in which all calls are answered.
    await page.clock.pauseAt((await page.evaluate<number>("Date.now()")) + minute)
    await answered()
    // Timers of 0 ms, which the jump has set, end in the next step: their calls are not yet those of the time that is counted.
    await page.clock.runFor(400)
    await answered()
    const before = asked.length
    for (let step = 0; step < 175; step++) {
      await page.clock.runFor(400)
      await answered()
    }
    const made = Map.groupBy(asked.slice(before), (path) => path)
    const times = (path: string): number => made.get(path)?.length ?? 0
    // An answer that the test sees late looks slow to the page, which then asks less often.
    expect(times("/v1/requests")).toBeGreaterThan(2)
    expect(times("/v1/requests")).toBeLessThanOrEqual(18)
    expect(times("/v1/requests/count")).toBeGreaterThan(0)
    expect(times("/v1/requests/count")).toBeLessThanOrEqual(3)
    expect(times("/v1/metrics/requests")).toBeGreaterThan(0)
    expect(times("/v1/metrics/requests")).toBeLessThanOrEqual(3)
    // All rows together look their names up, again after half a minute, because one of them is not known.
    expect(times("/v1/sources")).toBeLessThanOrEqual(3)
    made.delete("/v1/sources")
    expect([...made.keys()].toSorted()).toEqual(["/v1/metrics/requests", "/v1/requests", "/v1/requests/count"])
  })

  it("A live list whose gateway takes a second to answer is not read again for ten seconds", async ({
    calls: { answered, asked },
    page
  }) => {
    const list = new MadeUp(9_999)
    await list.answer(page)
    await page.clock.install()
    await page.goto("./requests?live=1")
    await firstRow(page).waitFor()
    await answered()
    await page.clock.pauseAt((await page.evaluate<number>("Date.now()")) + minute)
    await answered()
    const readings = () => asked.filter((path) => path === "/v1/requests").length
    const readAgain = async () => {
      const before = readings()
      await eventually("the list is read again", async () => {
        await page.clock.runFor(200)
        return readings() > before ? true : null
      })
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    list.held = promise
    await readAgain()
    await page.clock.runFor(1_000)
    resolve()
    await answered()
    const before = readings()
    await page.clock.runFor(9_900)
    await answered()
    expect(readings()).toBe(before)
    await readAgain()
  })
})
