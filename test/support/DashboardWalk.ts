import type { Page } from "playwright-core"
import { labelOf } from "./DashboardActions.ts"
import { settled, turnTo } from "./DashboardPage.ts"
import type { Place } from "./DashboardWorld.ts"
import { patience } from "./Waiting.ts"

/*
 * A walk through all pages of the dashboard, which presses every button.
 */

/**
 * Runs in the page before its scripts: calls that change something do not leave it. They are noted, and answered with a refusal, so that
 * the page stays as it is. Reads are counted while they are under way.
 */
const noting = `(() => {
  const { fetch } = globalThis
  globalThis.calls = []
  globalThis.reading = 0
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    if (request.method === "GET") {
      reading += 1
      return fetch(request).finally(() => (reading -= 1))
    }
    calls.push(request.method + " " + new URL(request.url).pathname)
    const refusal = { error: "Conflict", code: "CONFLICT", status: 409, message: "nothing is sent by this test" }
    return Response.json(refusal, { status: 409 })
  }
})()`

/**
 * Runs in the page: fills its fields, and clicks each of its buttons until no new one appears. Returns the buttons that wanted to make a
 * call, by their labels, with the calls.
 */
const pressing = `(async () => {
  const seen = new Set()
  let present = new Set()
  const actions = []
  const main = document.querySelector("main")
  const turns = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve))
  }
  // The effects of a click come in later turns of the event loop, and after its reads. Visibility is checked last, because the browser must lay out
  // the page for it.
  const isLoading = () =>
    reading > 0 || (main.textContent.includes("Loading…") && main.innerText.includes("Loading…"))
  const after = async () => {
    const end = Date.now() + ${patience}
    await turns()
    while (isLoading()) {
      if (Date.now() > end) throw new Error(location.pathname + ": " + reading + " reads are under way, and it shows " + main.innerText)
      await turns()
    }
  }
  const fill = () => {
    for (const field of main.querySelectorAll("input:not([type=checkbox], [type=file]), textarea")) {
      if (field.readOnly || field.value !== "") continue
      const isLine = field instanceof HTMLInputElement
      const { prototype } = isLine ? HTMLInputElement : HTMLTextAreaElement
      Object.getOwnPropertyDescriptor(prototype, "value").set.call(field, isLine ? "1" : "{}")
      field.dispatchEvent(new Event("input", { bubbles: true }))
    }
    // Empty fields are refused by the gateway, not by the browser.
    for (const form of main.querySelectorAll("form")) form.noValidate = true
  }
  const label = ${labelOf}
  // Two parts of a page may have a button each with the same label.
  const nameOf = (button) => {
    const part = button.closest("table, ul, .panel")
    return label(button) + " in " + (part?.getAttribute("aria-label") ?? part?.querySelector("h2")?.innerText ?? part?.tagName)
  }
  for (let pressed = 0; pressed < 100; pressed++) {
    fill()
    await after()
    const left = [...main.querySelectorAll("button")].filter((one) => !one.disabled && !seen.has(nameOf(one)))
    // First what the last click has opened: another button may close it.
    const next = left.find((one) => !present.has(nameOf(one))) ?? left[0]
    if (next === undefined) break
    present = new Set([...main.querySelectorAll("button")].map(nameOf))
    const [before, name] = [label(next), nameOf(next)]
    seen.add(name)
    const known = calls.length
    next.click()
    await after()
    // It asks whether it is meant.
    if (next.isConnected && label(next) !== before) {
      seen.add(nameOf(next))
      next.click()
      await after()
    }
    if (calls.length > known) actions.push({ label: before, calls: calls.slice(known) })
  }
  return actions
})()`

/** A button of a page that wants to change something, with the calls that it makes. */
interface Pressed {
  readonly label: string
  readonly calls: ReadonlyArray<string>
}

export interface Offered {
  readonly actions: ReadonlyArray<Pressed>
  readonly isExplained: boolean
  readonly links: ReadonlyArray<string>
}

const linksOf = `[...document.querySelectorAll("main a.button")].map(({ pathname }) => pathname)`

const joined = (one: Offered, other: Offered): Offered => ({
  actions: [...one.actions, ...other.actions],
  isExplained: one.isExplained || other.isExplained,
  links: [...one.links, ...other.links]
})

/** Opens pages one after the other, and returns what each of them offers, by its route. Nothing is changed by it. */
export const walk = async (page: Page, places: ReadonlyArray<Place>): Promise<ReadonlyMap<string, Offered>> => {
  await page.addInitScript(noting)
  await page.reload()
  const found = new Map<string, Offered>()
  for (const { path, route } of places) {
    await turnTo(page, path)
    await settled(page)
    const links = await page.evaluate<ReadonlyArray<string>>(linksOf)
    const isExplained = (await page.getByText(/Only an owner/).count()) > 0
    const here = { actions: await page.evaluate<ReadonlyArray<Pressed>>(pressing), isExplained, links }
    const before = found.get(route)
    found.set(route, before === undefined ? here : joined(before, here))
  }
  return found
}
