/** The first load of the dashboard, and bodies of 10 MiB: how long they take, and for how long they hold the page. */
import * as Effect from "effect/Effect"
import { request } from "undici"
import { atMost, type Outcome, type Plan } from "../Comparison.ts"
import { makeRow } from "../Report.ts"
import { framesOf, gatewayWithDashboard, inBrowser, launch, load, signedIn, watchFrames } from "./Chromium.ts"

const mebibyte = 1024 * 1024

/** Bodies of 10 MiB that are expensive in different ways. */
const bodies = {
  "many small objects": `[${'{"a":1.50},'.repeat(Math.floor((10 * mebibyte - 4) / 11))}{}]`,
  "one line of text": "x".repeat(10 * mebibyte),
  "bytes that are no text": Buffer.alloc(10 * mebibyte, 0xff)
}

export const dashboardLoad = Effect.fnUntraced(function* (plan: Plan) {
  const { gateway, subject } = yield* gatewayWithDashboard(plan, "dashboard_load")
  const browser = yield* launch
  const page = yield* inBrowser("sign in", () => signedIn(browser, gateway))
  const loads: Array<{ readonly files: number; readonly answers: number; readonly interactive: number }> = []
  for (let round = 0; round < plan.settings.rounds; round++) {
    const one = yield* inBrowser("load the overview", async () => {
      const session = await page.context().newCDPSession(page)
      await session.send("Network.enable")
      // The cache is empty, as for a reader who opens the dashboard for the first time.
      await session.send("Network.clearBrowserCache")
      const bytes = { files: 0, answers: 0 }
      const answers = new Set<string>()
      session.on("Network.responseReceived", ({ requestId, response }) => {
        if (new URL(response.url).pathname.startsWith("/v1/")) answers.add(requestId)
      })
      session.on("Network.loadingFinished", ({ encodedDataLength, requestId }) => {
        bytes[answers.has(requestId) ? "answers" : "files"] += encodedDataLength / 1024
      })
      await page.goto("./")
      await page.getByRole("navigation", { name: "Pages" }).waitFor()
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
      // The page responds when the key `/` moves the focus to the field for ids.
      await page.keyboard.press("/")
      const interactive = Number(
        await page.evaluate(
          `new Promise((done) => { const look = () => document.activeElement?.getAttribute("type") === "search" ? done(performance.now()) : requestAnimationFrame(look); look() })`
        )
      )
      await session.detach()
      return { ...bytes, interactive }
    })
    loads.push(one)
  }
  yield* plan.progress(`dashboard-load: ${load()}`)
  const scenario = "First load of the dashboard"
  const rows = [
    makeRow({
      scenario,
      measure: "page, scripts and styles over the wire",
      unit: "KiB",
      gateway: loads.map((one) => one.files),
      required: atMost("value", 180)
    }),
    makeRow({
      scenario,
      measure: "answers of the overview's calls",
      unit: "KiB",
      gateway: loads.map((one) => one.answers)
    }),
    makeRow({
      scenario,
      measure: "until a key is answered",
      unit: "ms",
      gateway: loads.map((one) => one.interactive),
      required: atMost("value", 1_000)
    })
  ]
  for (const [name, body] of Object.entries(bodies)) {
    const found = yield* inBrowser(`a body of ${name}`, async () => {
      const answer = await request(subject.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body
      })
      const { request_id } = (await answer.body.json()) as { readonly request_id: string }
      await page.goto("./")
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
      await watchFrames(page)
      const began = performance.now()
      await page.getByLabel("Open by id").fill(request_id)
      await page.keyboard.press("Enter")
      await page.getByRole("button", { name: "Download" }).waitFor()
      const took = performance.now() - began
      return { took, ...(await framesOf(page)) }
    })
    const of = (measure: string, figure: number) =>
      makeRow({ scenario: `The page of a request with 10 MiB, ${name}`, measure, unit: "ms", gateway: [figure] })
    rows.push(of("until it is shown", found.took), of("longest task of the page", found.longestTask))
  }
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
}, Effect.scoped)
