import { AxeBuilder } from "@axe-core/playwright"
import { existsSync } from "node:fs"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { expect } from "vitest"
import { apiDocument } from "./ApiDocument.ts"
import { buildDashboard } from "./Dashboard.ts"
import { actionOf, watching } from "./DashboardActions.ts"
import { routesOf } from "./DashboardWorld.ts"
import { it as gatewayIt } from "./it.ts"
import { patience } from "./Waiting.ts"

/*
 * Pages of the dashboard in a real browser, against a real gateway. A machine without Chromium skips the suites, and says so.
 */

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) =>
  existsSync(path)
)
export const hasBrowser = executablePath !== undefined
if (!hasBrowser) console.log("No Chromium on this machine: the dashboard's pages are not opened.")

/** Content that a stranger sends so that a page runs it. */
export const hostile = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>`

const viewport = { width: 1280, height: 800 }

/** The browser of this process. Like the gateway, its suites share it, because a start takes longer than most tests. */
let sharedBrowser: Promise<Browser> | null = null

const launch = async (): Promise<Browser> => {
  await buildDashboard()
  return chromium.launch({ executablePath: executablePath!, args: ["--no-sandbox"] })
}

const startBrowser = async (): Promise<Browser> => {
  sharedBrowser ??= launch()
  const browser = await sharedBrowser
  if (browser.isConnected()) return browser
  // It has died. The next suites get a new one.
  sharedBrowser = null
  return startBrowser()
}

const closeBrowser = async (): Promise<void> => {
  const browser = sharedBrowser
  sharedBrowser = null
  await (await browser)?.close()
}

const keyField = (page: Page) => page.getByLabel("API key")

const signIn = async (page: Page, credential: string): Promise<void> => {
  await keyField(page).fill(credential)
  await page.getByRole("button", { name: "Sign in" }).click()
  await heading(page, "Overview").waitFor()
}

/** A browser with one page. */
interface Visit {
  readonly context: BrowserContext
  readonly page: Page
  /** What has gone wrong in the page. */
  readonly faults: Array<string>
  /** The credential of the last test that has used it, which may have signed out since. Null: nobody was signed in. */
  signedInWith: string | null
}

/**
 * Leaves nothing of a test but its session, and no page that goes on asking the gateway. The address is of the same origin: for another one, the
 * browser would start another process, which compiles the dashboard again.
 */
const forget = async ({ context, page }: Visit): Promise<void> => {
  const { origin } = new URL(page.url())
  await page.goto(`${origin}/healthz`)
  await page.unrouteAll()
  await context.clearPermissions()
  await page.emulateMedia({ colorScheme: "light" })
  await page.setViewportSize(viewport)
  const session = await context.newCDPSession(page)
  await session.send("Storage.clearDataForOrigin", { origin, storageTypes: "local_storage" })
  await session.detach()
}

export const it = gatewayIt
  /** All suites of a worker have the same one. What a suite leaves in it is in its contexts, which end with the suite. */
  .extend("browser", { scope: "worker" }, ({}, { onCleanup }) => {
    onCleanup(closeBrowser)
    return startBrowser()
  })
  /** The actions that the pages of the suite have carried out: buttons with the calls that the gateway accepted. */
  .extend("carried", { scope: "file" }, () => new Set<string>())
  /** Whether each page of the suite is a new browser: for what stays in a page, such as a clock of its own, or a script before its scripts. */
  .extend("isFresh", { scope: "file" }, (): boolean => false)
  /**
   * Makes a new browser, where nobody is signed in, with a list of what goes wrong in its page. Somebody has signed out there before, unless it
   * is unused: on the gateway's own machine, the first visit is signed in as the demo user.
   */
  .extend("visitor", { scope: "file" }, async ({ browser, carried, gateway }) => {
    const [document, routes] = [await apiDocument(), await routesOf()]
    return async (isUnused: boolean): Promise<Visit> => {
      const faults: Array<string> = []
      const context = await browser.newContext({ viewport, baseURL: `${gateway.origin}/dashboard/` })
      context.setDefaultTimeout(patience)
      await context.exposeFunction("carriedOut", ({ path, ...more }: Parameters<typeof actionOf>[2]) => {
        carried.add(actionOf(document, routes, { path: path.replace(/^\/dashboard/, ""), ...more }))
      })
      await context.addInitScript(watching)
      // A page without an address has no storage.
      const remembers = 'try { localStorage.setItem("signed-out", "yes") } catch {}'
      if (!isUnused) await context.addInitScript({ content: remembers })
      const page = await context.newPage()
      page.on("pageerror", (error) => faults.push(error.message))
      page.on("console", (message) => {
        if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
          faults.push(message.text())
      })
      return { context, faults, page, signedInWith: null }
    }
  })
  /**
   * The visitors of the tests before. The next test has one of them, with nothing that was kept in it: to start a browser, and to compile the
   * dashboard in it, takes most of the processor time of a short test.
   */
  .extend("idle", { scope: "file" }, ({}, { onCleanup }) => {
    const idle: Array<Visit> = []
    onCleanup(async () => {
      for (const { context } of idle) await context.close()
    })
    return idle
  })
  /** Gives a visitor to the test: one that is signed in with this credential if there is one, and otherwise one where nobody is signed in. */
  .extend("visit", ({ gateway, idle, isFresh, visitor }, { onCleanup }) => {
    const given: Array<{ readonly visit: Visit; readonly isUnused: boolean }> = []
    onCleanup(async () => {
      for (const { isUnused, visit } of given) {
        if (isFresh || isUnused) await visit.context.close()
        else {
          await forget(visit)
          idle.push(visit)
        }
      }
      expect(given.flatMap(({ visit }) => visit.faults.splice(0))).toEqual([])
    })
    const takeIdle = (isGood: (visit: Visit) => boolean): Visit | undefined => {
      const at = idle.findIndex(isGood)
      return at === -1 ? undefined : idle.splice(at, 1)[0]
    }
    return async (credential: string | null, isUnused = false): Promise<Visit> => {
      const same = isUnused || credential === null ? undefined : takeIdle((one) => one.signedInWith === credential)
      // That of the team's key stays signed in for the next test.
      const other = isUnused ? undefined : (same ?? takeIdle((one) => one.signedInWith !== gateway.key))
      if (other !== undefined && other !== same) await other.context.clearCookies()
      const visit = other ?? (await visitor(isUnused))
      visit.signedInWith = credential
      given.push({ visit, isUnused })
      return visit
    }
  })
  /** Opens an address in a browser where nobody is signed in. What goes wrong in it fails the test. */
  .extend("stranger", ({ visit }) => async (address: string, isUnused = false): Promise<Page> => {
    const { page } = await visit(null, isUnused)
    await page.goto(address)
    return page
  })
  /** The same, signed in with a credential. */
  .extend("signedIn", ({ visit }) => async (credential: string): Promise<Page> => {
    const { page } = await visit(credential)
    await page.goto("./")
    await heading(page, "Overview").or(keyField(page)).waitFor()
    if ((await keyField(page).count()) > 0) await signIn(page, credential)
    return page
  })
  /** A page that is signed in with the team's key. */
  .extend("page", ({ gateway, signedIn }) => signedIn(gateway.key))

/** The same with a browser for each test. */
export const freshIt = it.extend("isFresh", { scope: "file" }, true)

/** Returns the violations that axe finds. When the same pages are checked in other colors, only the rules on colors run. */
export const violations = async (page: Page, onlyColors = false): Promise<ReadonlyArray<string>> => {
  // Each check would load the half megabyte of axe twice. A page that has loaded it runs a comment instead.
  const isThere = await page.evaluate<boolean>("typeof axe === 'object'")
  // By default, axe opens a second page for each check, for frames of other origins. These pages have none. Reporting passed rules would take a third
  // of the time.
  const axe = new AxeBuilder({ page, ...(isThere ? { axeSource: "/* axe is there */" } : {}) })
    .setLegacyMode()
    .options({ resultTypes: ["violations"] })
  const found = await (
    onlyColors ? axe.withRules(["color-contrast"]) : axe.withTags(["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"])
  ).analyze()
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}

/** Waits until all parts of a page are loaded. */
export const settled = (page: Page): Promise<void> =>
  expect.poll(() => page.getByText("Loading…").count(), { timeout: patience }).toBe(0)

/**
 * Opens another page of the dashboard without loading it again: through an address that has no page, so that what is seen afterwards is
 * not of the page before.
 */
export const turnTo = async (page: Page, path: string): Promise<void> => {
  const go = (to: string) =>
    page.evaluate(`history.pushState({}, "", new URL(${JSON.stringify(to)}, document.baseURI))`)
  const nowhere = page.getByText("There is no such page.")
  await go("./nowhere")
  await nowhere.waitFor()
  await go(`./${path}`)
  await nowhere.waitFor({ state: "detached" })
  await page.locator("main h1, main [role=alert]").first().waitFor()
}

/** Opens each page in a theme: light on a wide screen, dark on a narrow one. Everybody can use it, and nothing of it is cut off. */
export const usable = async (page: Page, theme: "light" | "dark", paths: ReadonlyArray<string>): Promise<void> => {
  await page.emulateMedia({ colorScheme: theme })
  await page.setViewportSize(theme === "dark" ? { width: 375, height: 720 } : { width: 1280, height: 800 })
  // The page of a share is not of the router.
  const isApart = (path: string) => path.startsWith("shared/")
  for (const [at, path] of paths.entries()) {
    if (at === 0 || isApart(path) || isApart(paths[at - 1]!)) await page.goto(`./${path}`)
    else await turnTo(page, path)
    await page.getByRole("heading", { level: 1 }).waitFor()
    await settled(page)
    expect([path, await violations(page, theme === "dark")]).toEqual([path, []])
    const isWider = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    expect([path, isWider]).toEqual([path, false])
  }
}

export const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name, exact: true })

export const open = async (page: Page, name: string) => {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click()
  await heading(page, name).waitFor()
}

export const firstRow = (page: Page) => page.locator(".list .row").first()

/** Adds a filter to a list as it is written: `status:failed`. */
export const addFilter = async (page: Page, text: string) => {
  const field = page.getByRole("combobox", { name: "Add a filter" })
  await field.fill(text)
  await field.press("Enter")
}
