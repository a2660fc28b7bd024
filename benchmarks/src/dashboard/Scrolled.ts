/** Scrolls a list of 100,000 events to its end, with the wheel and then with the keyboard. */
import * as Effect from "effect/Effect"
import type { Page } from "playwright-core"
import { atLeast, atMost, type Outcome, type Plan, single } from "../Comparison.ts"
import { fill } from "../Measurement.ts"
import {
  type Frames,
  framesOf,
  gatewayWithDashboard,
  inBrowser,
  launch,
  load,
  signedIn,
  vitals,
  watchFrames
} from "./Chromium.ts"

const events = 100_000
const rowHeight = 36

/** Scrolls until the list has not grown for a while, and returns the number of its rows. */
const toTheEnd = async (page: Page, move: () => Promise<void>): Promise<number> => {
  const look = `(() => { const list = document.querySelector(".list"); return [list.scrollHeight, list.scrollTop + list.clientHeight >= list.scrollHeight - 2, list.querySelectorAll(".row.muted").length] })()`
  let last = 0
  // At the end a page may still be on its way.
  for (let still = 0; still < 60;) {
    await move()
    const [height, isAtEnd, waiting] = (await page.evaluate(look)) as [number, boolean, number]
    still = isAtEnd && height === last && waiting === 0 ? still + 1 : 0
    last = height
  }
  return Math.floor(last / rowHeight)
}

export const dashboardList = Effect.fnUntraced(function* (plan: Plan) {
  const count = plan.settings.rounds === 1 ? events / 10 : events
  const { gateway, subject } = yield* gatewayWithDashboard(plan, "dashboard_list")
  const filled = yield* fill(plan.bench, subject.url, count, 300)
  yield* plan.progress(`dashboard-list: ${filled.acknowledged} events, ${load()}`)
  const browser = yield* launch
  const found = yield* inBrowser("scroll", async () => {
    const page = await signedIn(browser, gateway)
    const session = await page.context().newCDPSession(page)
    await session.send("Performance.enable")
    await page.goto("./events")
    await page.locator(".list .row").first().waitFor()
    const list = page.getByRole("region", { name: "Events", exact: true })
    const before = await vitals(session)
    await list.hover()
    await watchFrames(page)
    const wheel = await toTheEnd(page, () => page.mouse.wheel(0, 2_000))
    const byWheel = await framesOf(page)
    const after = await vitals(session)
    await list.focus()
    await page.keyboard.press("Home")
    await page.locator(".list .row").first().waitFor()
    await framesOf(page)
    const keys = await toTheEnd(page, () => page.keyboard.press("End"))
    return { before, after, wheel, keys, byWheel, byKeys: await framesOf(page) }
  })
  yield* plan.progress(`dashboard-list: ${load()}`)
  const of = (how: string, rows: number, frames: Frames) => {
    const scenario = `${count.toLocaleString("en-US")} events scrolled to the end by the ${how}`
    return [
      single(scenario, "rows at the end", "", rows, atLeast("value", filled.acknowledged)),
      single(scenario, "frames", "", frames.count),
      single(scenario, "frames over 50 ms", "", frames.slow, atMost("value", 0)),
      single(scenario, "frame p50", "ms", frames.p50),
      single(scenario, "frame p99", "ms", frames.p99),
      single(scenario, "longest frame", "ms", frames.longest),
      single(scenario, "tasks over 50 ms", "", frames.longTasks, atMost("value", 0)),
      single(scenario, "longest of these tasks", "ms", frames.longestTask)
    ]
  }
  const scenario = "Memory of the page of events"
  const rows = [
    ...of("wheel", found.wheel, found.byWheel),
    ...of("keyboard", found.keys, found.byKeys),
    single(scenario, "heap before", "MB", found.before.megabytes),
    // It has the pages of the last seconds. All pages would take 70 MB.
    single(scenario, "heap at the end of the list", "MB", found.after.megabytes, atMost("value", 30)),
    single(scenario, "DOM nodes at the end of the list", "", found.after.nodes)
  ]
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
}, Effect.scoped)
