import { AxeBuilder } from "@axe-core/playwright"
import { existsSync } from "node:fs"
import { chromium, type Page } from "playwright-core"
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

/** What a stranger sends so that a page runs it. */
export const hostile = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>`

const viewport = { width: 1280, height: 800 }

const keyField = (page: Page) => page.getByLabel("API key")

const signIn = async (page: Page, credential: string): Promise<void> => {
  await keyField(page).fill(credential)
  await page.getByRole("button", { name: "Sign in" }).click()
  await heading(page, "Overview").waitFor()
}

export const it = gatewayIt
  .extend("browser", { scope: "file" }, async ({}, { onCleanup }) => {
    await buildDashboard()
    const browser = await chromium.launch({ executablePath: executablePath!, args: ["--no-sandbox"] })
    onCleanup(() => browser.close())
    return browser
  })
  /** What the pages of the suite have carried out: buttons with the calls that the gateway accepted. */
  .extend("carried", { scope: "file" }, () => new Set<string>())
  /**
   * Makes a new browser, where nobody is signed in, with a list of what goes wrong in its page. Somebody has signed out there before, unless it
   * is unused: on the gateway's own machine, the first visit is signed in as the demo user.
   */
  .extend("visitor", { scope: "file" }, async ({ browser, carried, gateway }) => {
    const [document, routes] = [await apiDocument(), await routesOf()]
    return async (isUnused = false) => {
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
      return { context, faults, page }
    }
  })
  /** Opens an address in a new browser, where nobody is signed in. What goes wrong in it fails the test. */
  .extend("stranger", ({ visitor }, { onCleanup }) => {
    const opened: Array<Awaited<ReturnType<typeof visitor>>> = []
    onCleanup(async () => {
      for (const { context } of opened) await context.close()
      expect(opened.flatMap(({ faults }) => faults)).toEqual([])
    })
    return async (address: string, isUnused = false): Promise<Page> => {
      const visit = await visitor(isUnused)
      opened.push(visit)
      await visit.page.goto(address)
      return visit.page
    }
  })
  /** The same, signed in with a credential. */
  .extend("signedIn", ({ stranger }) => async (credential: string): Promise<Page> => {
    const page = await stranger("./")
    await signIn(page, credential)
    return page
  })
  /** The visitor behind `page`. */
  .extend("kept", { scope: "file" }, async ({ visitor }, { onCleanup }) => {
    const visit = await visitor()
    onCleanup(() => visit.context.close())
    return { ...visit, browsing: await visit.context.newCDPSession(visit.page) }
  })
  /**
   * A page that is signed in with the team's key. All tests of a file have the same one, loaded again, with nothing that the test before has
   * kept in it: a browser of its own for each of them takes most of the processor time of a short test.
   */
  .extend("page", async ({ gateway, kept }, { onCleanup }) => {
    const { browsing, context, faults, page } = kept
    onCleanup(() => expect(faults.splice(0)).toEqual([]))
    await context.clearPermissions()
    await page.emulateMedia({ colorScheme: "light" })
    await page.setViewportSize(viewport)
    await browsing.send("Storage.clearDataForOrigin", { origin: gateway.origin, storageTypes: "local_storage" })
    await page.goto("./")
    await heading(page, "Overview").or(keyField(page)).waitFor()
    if ((await keyField(page).count()) > 0) await signIn(page, gateway.key)
    return page
  })

/** The same with a browser for each test: for what stays in a page, such as a clock of its own, or a script before its scripts. */
export const freshIt = it.extend("page", ({ gateway, signedIn }) => signedIn(gateway.key))

/** What axe finds. The rules on colors alone for a second look at the same pages in other colors. */
export const violations = async (page: Page, onlyColors = false): Promise<ReadonlyArray<string>> => {
  // The usual mode opens a second page for each look, for frames of other origins. These pages have none.
  // To describe what passes costs a third of the look.
  const axe = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ["violations"] })
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
