/** A live list while requests arrive: how old its rows are, how busy the page is, and whether its memory grows. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { atMost, type Outcome, type Plan, single } from "../Comparison.ts"
import { median, slope } from "../Report.ts"
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

/**
 * `fresh`: the age of the newest row's event when the row is drawn, each time the newest row changes. `stale`: the age of the newest row, four times
 * a second; if the page keeps up, it is older by at most one reading.
 */
const lagging = `{
  globalThis.lag = { fresh: [], stale: [], notes: 0 }
  let newest = ""
  const age = () => Date.now() - Date.parse(document.querySelector(".list .row time")?.dateTime ?? "")
  new MutationObserver(() => {
    const id = document.querySelector(".list .row")?.getAttribute("href")
    if (id === newest) return
    newest = id
    lag.fresh.push(age())
    if (/ have arrived in /.test(document.querySelector(".list + p")?.textContent)) lag.notes++
  }).observe(document.querySelector("main"), { childList: true, subtree: true, attributes: true, characterData: true })
  setInterval(() => lag.stale.push(age()), 250)
}`

const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN

/** Looks at the page every `everySeconds`, for some minutes with this many requests a second. */
const watched = Effect.fnUntraced(function* (
  plan: Plan,
  name: string,
  {
    everySeconds,
    minutes,
    perSecond
  }: { readonly minutes: number; readonly perSecond: number; readonly everySeconds: number }
) {
  const { bench } = plan
  const { gateway, subject } = yield* gatewayWithDashboard(plan, name)
  const browser = yield* launch
  const { page, session } = yield* inBrowser("open the live list", async () => {
    const page = await signedIn(browser, gateway)
    const session = await page.context().newCDPSession(page)
    await session.send("Performance.enable")
    return { page, session }
  })
  const sending = yield* Effect.forkScoped(
    bench.generator.call("offer", {
      urls: [subject.url],
      run: bench.nextRun(),
      perSecond,
      seconds: minutes * 60 + everySeconds + 30,
      connections: 100
    })
  )
  yield* inBrowser("watch the live list", async () => {
    await page.goto("./events?live=1")
    await page.locator(".list .row").first().waitFor()
    await page.evaluate(lagging)
    await watchFrames(page)
  })
  // What is made once is made by then.
  yield* Effect.sleep(everySeconds * 1_000)
  const looks = [yield* inBrowser("look", () => vitals(session))]
  const began = performance.now()
  const at = [0]
  const frames: Array<Frames> = []
  for (let n = 1; n * everySeconds <= minutes * 60; n++) {
    yield* Effect.sleep(Math.max(0, n * everySeconds * 1_000 - (performance.now() - began)))
    const look = yield* inBrowser("look", () => vitals(session))
    at.push((performance.now() - began) / 3_600_000)
    looks.push(look)
    // The page keeps none of these values, so that the measurement does not increase its memory.
    frames.push(yield* inBrowser("frames", () => framesOf(page)))
    yield* plan.progress(
      `${name}: heap ${look.megabytes.toFixed(1)} MB, ${look.nodes} nodes, ${look.listeners} listeners, ${load()}`
    )
  }
  const lag = (yield* inBrowser("lag", () => page.evaluate("lag"))) as {
    readonly fresh: ReadonlyArray<number>
    readonly stale: ReadonlyArray<number>
    readonly notes: number
  }
  yield* Fiber.interrupt(sending)
  const first = looks[0]!
  const last = looks.at(-1)!
  const growth = (of: (look: typeof first) => number) => slope(looks.map((look, n) => [at[n]!, of(look)] as const))
  const scenario = `A live list of events for ${minutes} minutes with ${perSecond} requests/s`
  return {
    lag: [
      single(scenario, "times that the list was drawn anew", "", lag.fresh.length),
      single(scenario, "times that it said how many it does not show", "", lag.notes),
      single(scenario, "age of the newest event when it is drawn, p50", "ms", median(lag.fresh)),
      single(
        scenario,
        "age of the newest event when it is drawn, most",
        "ms",
        Math.max(...lag.fresh),
        atMost("value", 1_000)
      ),
      single(
        scenario,
        "age of the newest row at any time, p99",
        "ms",
        percentile(lag.stale, 0.99),
        // Read every two seconds, or every four while it shows a sample.
        atMost("value", 5_000)
      ),
      single(
        scenario,
        "share of its time that the page is busy",
        "%",
        ((last.busySeconds - first.busySeconds) / (at.at(-1)! * 3_600)) * 100
      ),
      single(
        scenario,
        "frames over 50 ms",
        "",
        frames.reduce((sum, { slow }) => sum + slow, 0)
      ),
      single(scenario, "longest task", "ms", Math.max(...frames.map(({ longestTask }) => longestTask)))
    ],
    memory: [
      single(scenario, "heap at the beginning", "MB", first.megabytes),
      single(scenario, "heap at the end", "MB", last.megabytes),
      single(
        scenario,
        "growth of the heap",
        "MB/h",
        growth((look) => look.megabytes),
        atMost("value", 5)
      ),
      single(scenario, "DOM nodes at the beginning", "", first.nodes),
      single(scenario, "DOM nodes at the end", "", last.nodes),
      single(scenario, "listeners at the beginning", "", first.listeners),
      single(scenario, "listeners at the end", "", last.listeners)
    ]
  }
})

const none = { reference: [], gateway: [] }

export const dashboardLive = Effect.fnUntraced(function* (plan: Plan) {
  const { perSecond, rounds } = plan.settings
  const { lag, memory } = yield* watched(plan, "dashboard_live", {
    perSecond,
    everySeconds: 10,
    minutes: rounds === 1 ? 0.5 : 2
  })
  return {
    rows: [...lag, ...memory.filter(({ measure }) => !measure.startsWith("growth"))],
    measured: { offered: none, saturated: none }
  } satisfies Outcome
}, Effect.scoped)

/** At a fifth of the rate: the disk has to hold the events of the hour, and each reading still shows other rows than the one before. */
export const dashboardHour = Effect.fnUntraced(function* (plan: Plan) {
  const { minutes, perSecond } = plan.settings
  const { lag, memory } = yield* watched(plan, "dashboard_hour", {
    perSecond: perSecond / 5,
    everySeconds: 30,
    minutes
  })
  return { rows: [...lag, ...memory], measured: { offered: none, saturated: none } } satisfies Outcome
}, Effect.scoped)
