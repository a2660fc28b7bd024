/** The dashboard in Chromium, and what is measured in its page. */
import { existsSync } from "node:fs"
import { loadavg } from "node:os"
import * as Effect from "effect/Effect"
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core"
import { type Plan, startGateway } from "../Comparison.ts"
import { type Gateway, GatewayError } from "../Gateway.ts"

const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]

const builder = new URL("../../../apps/dashboard/build.mjs", import.meta.url).href

/** A step in the browser; it fails with what was done. */
export const inBrowser = <A>(what: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new GatewayError({ message: `${what}: ${String(cause).slice(0, 1_000)}` })
  })

/** A gateway with one source and one connection, whose dashboard is built. */
export const gatewayWithDashboard = Effect.fnUntraced(function* (plan: Plan, name: string) {
  yield* inBrowser("build the dashboard", () => import(builder))
  const gateway = yield* startGateway(plan, name)
  const targetPath = `/${name}`
  const url = yield* gateway.route({
    name,
    destinations: [{ url: `${plan.bench.targetOrigin}${targetPath}` }],
    rules: []
  })
  return { gateway, subject: { pid: gateway.pid, database: name, url, targetPaths: [targetPath] } }
})

/** Closing the scope ends the browser. */
export const launch = Effect.acquireRelease(
  inBrowser("start Chromium", async () => {
    const executablePath = places.find((path) => existsSync(path))
    if (executablePath === undefined) throw new Error("there is no Chromium on this machine")
    return chromium.launch({ executablePath, args: ["--no-sandbox", "--enable-precise-memory-info"] })
  }),
  (browser) => Effect.promise(() => browser.close())
)

/** Counts frames and long tasks from now on: `frames` are the times between two frames, `tasks` those that held the page for over 50 ms. */
const watching = `{
  globalThis.measured = { frames: [], tasks: [] }
  let last = performance.now()
  const frame = (at) => { measured.frames.push(at - last); last = at; requestAnimationFrame(frame) }
  requestAnimationFrame((at) => { last = at; requestAnimationFrame(frame) })
  new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) measured.tasks.push(duration) }).observe({ type: "longtask" })
}`

export const watchFrames = (page: Page) => page.evaluate(watching)

export interface Frames {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly longest: number
  /** Frames and tasks that took over 50 ms. */
  readonly slow: number
  readonly longTasks: number
  readonly longestTask: number
}

/** What was counted since `watchFrames`, or since the last call. */
export const framesOf = async (page: Page): Promise<Frames> => {
  const { frames, tasks } = (await page.evaluate(
    "(() => { const { frames, tasks } = measured; measured.frames = []; measured.tasks = []; return { frames, tasks } })()"
  )) as { readonly frames: ReadonlyArray<number>; readonly tasks: ReadonlyArray<number> }
  const sorted = frames.toSorted((a, b) => a - b)
  return {
    count: sorted.length,
    p50: sorted[Math.floor(sorted.length * 0.5)] ?? Number.NaN,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
    longest: sorted.at(-1) ?? Number.NaN,
    slow: sorted.filter((ms) => ms > 50).length,
    longTasks: tasks.length,
    longestTask: Math.max(0, ...tasks)
  }
}

/** A page that is signed in with the gateway's key, in a browser context of its own. */
export const signedIn = async (browser: Browser, { authorization, origin }: Gateway): Promise<Page> => {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    baseURL: `${origin}/dashboard/`
  })
  // Otherwise the first visit on the gateway's own machine is signed in as the demo user, whose team has no data.
  await context.addInitScript({ content: 'localStorage.setItem("signed-out", "yes")' })
  const page = await context.newPage()
  await page.goto("./")
  await page.getByLabel("API key").fill(authorization.slice("Bearer ".length))
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
  return page
}

/** The page's figures of its browser after a garbage collection: heap (MB), DOM nodes, listeners; and the seconds that its thread was busy. */
export const vitals = async (session: CDPSession) => {
  await session.send("HeapProfiler.collectGarbage")
  const { metrics } = await session.send("Performance.getMetrics")
  const of = (name: string) => metrics.find((one) => one.name === name)?.value ?? Number.NaN
  return {
    megabytes: of("JSHeapUsedSize") / 1e6,
    nodes: of("Nodes"),
    listeners: of("JSEventListeners"),
    busySeconds: of("TaskDuration")
  }
}

export const load = (): string => `load of the machine ${loadavg()[0]?.toFixed(1)}`
