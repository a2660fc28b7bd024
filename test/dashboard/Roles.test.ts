import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import type { Page } from "playwright-core"
import { describe, expect } from "vitest"
import { hasBrowser, it as pageIt, settled } from "../support/DashboardPage.ts"
import type { Gateway } from "../support/Gateway.ts"

const root = resolve(import.meta.dirname, "../..")

interface Api {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { readonly security?: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>> }>>
    >
  >
}

/** The credentials that may make a call, as the API's document says; none: everybody may. */
const securityOf = ({ paths }: Api, call: string): ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>> => {
  const [method = "", path = ""] = call.split(" ")
  // A path without parameters is meant before one with them.
  const known = Object.keys(paths).toSorted((a, b) => a.split("{").length - b.split("{").length)
  const found = known.find(
    (one) =>
      paths[one]![method.toLowerCase()] !== undefined &&
      new RegExp(`^(?:/v1)?${one.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path)
  )
  if (found === undefined) throw new Error(`the document has no ${call}`)
  return paths[found]![method.toLowerCase()]!.security ?? []
}

/** The roles that may make a call; null: everybody. */
const rolesOf = (api: Api, call: string): ReadonlyArray<string> | null => {
  const security = securityOf(api, call)
  return security.length === 0 ? null : security.flatMap(({ session = [] }) => session)
}

/** Whether a project key with these scopes may make a call. */
const mayByKey = (api: Api, call: string, scopes: ReadonlyArray<string>): boolean => {
  const security = securityOf(api, call)
  const needed = security.flatMap(({ project_key }) => (project_key === undefined ? [] : [project_key]))
  return security.length === 0 || needed.some((all) => all.every((scope) => scopes.includes(scope)))
}

const documentOf = async () => JSON.parse(await readFile(resolve(root, "packages/client/openapi.json"), "utf8")) as Api

/**
 * Runs in the page before its scripts: calls that change something do not leave it. They are noted, and answered with a refusal, so that
 * the page stays as it is.
 */
const noting = `(() => {
  const { fetch } = globalThis
  globalThis.calls = []
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    if (request.method === "GET") return fetch(request)
    calls.push(request.method + " " + new URL(request.url).pathname)
    const refusal = { error: "Conflict", code: "CONFLICT", status: 409, message: "nothing is sent by this test" }
    return Response.json(refusal, { status: 409 })
  }
})()`

/** Runs in the page: fills its fields, and clicks each of its buttons until no new one appears. Returns the calls that it wanted to make. */
const pressing = `(async () => {
  const seen = new Set()
  const main = document.querySelector("main")
  // What a click begins goes on in the next turns of the event loop.
  const after = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve))
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
  const label = (button) => button.getAttribute("aria-label") ?? button.innerText
  for (let pressed = 0; pressed < 100; pressed++) {
    fill()
    await after()
    const next = [...main.querySelectorAll("button")].find((one) => !one.disabled && !seen.has(label(one)))
    if (next === undefined) break
    const before = label(next)
    seen.add(before)
    next.click()
    await after()
    // It asks whether it is meant.
    if (next.isConnected && label(next) !== before) {
      seen.add(label(next))
      next.click()
      await after()
    }
  }
  return calls
})()`

const linksOf = `[...document.querySelectorAll("main a.button")].map(({ pathname }) => pathname)`

/** A team with one of everything, and where each page of the router shows it. */
const filled = async (gateway: Gateway, owner: string, url: string) => {
  const make = async (path: string, body: object, key?: string): Promise<string> => {
    const { body: made, status } = await gateway.call("POST", path, body, key)
    expect([path, Math.floor(status / 100), made.message]).toEqual([path, 2, undefined])
    return (made.data ?? made).id as string
  }
  const source = await gateway.api("POST", "/sources", { name: gateway.name("shown") })
  const destination = await gateway.destination({ url })
  const { id: connection } = await gateway.connection(source, destination)
  const answer = await fetch(source.url, { method: "POST", body: '{"id":1}' })
  const { request_id: request } = (await answer.json()) as { readonly request_id: string }
  await gateway.traced(request, 1)
  const { models } = await gateway.api("GET", `/events?request_id=${request}`)
  const workflow = await make("/workflows", {
    name: gateway.name("asking"),
    source_id: source.id,
    steps: [{ id: "step_ask", kind: "wait", config: { for: "approval", amount: 1, unit: "hours" } }],
    edges: [{ source_type: "trigger", target_step_id: "step_ask" }]
  })
  const waiting = await make(`/workflows/${workflow}/runs`, {})
  await gateway.eventually("the run waits", async () => {
    const { steps } = await gateway.api("GET", `/workflows/${workflow}/runs/${waiting}`)
    return steps[0]?.wait?.kind === "signal" ? true : null
  })
  const bulk = (of: string) => make(`/${of}/bulk_operations`, { all: true, confirm: false })
  const planned = await bulk("workflow_runs")
  await gateway.eventually("the operation is planned", async () => {
    const { planned_at } = (await gateway.call("GET", `/workflow_runs/bulk_operations/${planned}`)).body
    return planned_at === null ? null : true
  })
  const filter = await make("/filters", { name: gateway.name("f"), conditions: { body: { a: 1 } } }, owner)
  const key = await make("/project-api-keys", { name: gateway.name("key"), scopes: ["control:read"] }, owner)
  const transformation = await make("/transformations", {
    name: gateway.name("t"),
    code: "addHandler('transform', (r) => r)"
  })
  const fixture = await make("/request-fixtures", { request_id: request, name: gateway.name("fixture") })
  const ids: Readonly<Record<string, string>> = {
    "/requests/$id": `requests/${request}`,
    "/events/$id": `events/${models[0]!.id}`,
    "/bulk-operations/$id": `bulk-operations/${await bulk("events")}`,
    "/bulk-operations/$of/$id": `bulk-operations/workflow_runs/${planned}`,
    "/sources/$id": `sources/${source.id}`,
    "/destinations/$id": `destinations/${destination.id}`,
    "/connections/$id": `connections/${connection}`,
    "/transformations/$id": `transformations/${transformation}`,
    "/workflows/$id": `workflows/${workflow}`,
    "/workflows/$id/runs/$runId": `workflows/${workflow}/runs/${waiting}`,
    "/workflows/$id/edit": `workflows/${workflow}/edit`,
    "/workflows/$id/triggers": `workflows/${workflow}/triggers`,
    "/filters/$id": `filters/${filter}`,
    "/fixtures/$id": `fixtures/${fixture}`,
    "/team/keys/$id": `team/keys/${key}`,
    // `Operate.test.ts` makes an account with a channel, `Forms.test.ts` deletes a team: here they are not found.
    "/accounts/$id": "accounts/pac_none",
    "/channels/$id": `channels/${source.id}`,
    "/bins/$id": "bins/src_none",
    "/team-deletions/$id": "team-deletions/tm_none"
  }
  const router = await readFile(resolve(root, "apps/dashboard/src/router.tsx"), "utf8")
  return [...router.matchAll(/^ {2}\["(\/[^"]*)",/gm)].map(([, route = ""]) => {
    if (route.includes("$") && ids[route] === undefined) throw new Error(`this suite does not say where ${route} is`)
    return { route, path: ids[route] ?? route.slice(1) }
  })
}

interface Offered {
  readonly calls: ReadonlyArray<string>
  readonly isExplained: boolean
  readonly links: ReadonlyArray<string>
}

const offered = async (page: Page, path: string): Promise<Offered> => {
  await page.goto(`./${path}`)
  await page.locator("main h1, main [role=alert]").first().waitFor()
  await settled(page)
  const links = await page.evaluate<ReadonlyArray<string>>(linksOf)
  const isExplained = (await page.getByText(/Only an owner/).count()) > 0
  return { calls: await page.evaluate<ReadonlyArray<string>>(pressing), isExplained, links }
}

/** The pages with actions that a project key can read. */
const readByKeys = [
  "/requests/$id",
  "/events/$id",
  "/sources/new",
  "/sources/$id",
  "/destinations/$id",
  "/connections/$id",
  "/bulk-operations/$id",
  "/fixtures/$id"
]

const it = pageIt.extend("pages", { scope: "file" }, async ({ gateway, startTarget }) =>
  filled(gateway, await gateway.session("owner"), (await startTarget()).origin)
)

describe.skipIf(!hasBrowser)("What each role is offered", () => {
  it("No page offers a member a call that only owners may make, and each page says why where an owner is offered one", async ({
    gateway,
    pages,
    signedIn
  }) => {
    const api = await documentOf()
    const walk = async (role: "owner" | "member") => {
      const page = await signedIn(await gateway.session(role))
      await page.addInitScript(noting)
      const found = new Map<string, Offered>()
      for (const { path, route } of pages) found.set(route, await offered(page, path))
      return found
    }
    const ofMember = await walk("member")
    const mayCall = (call: string) => rolesOf(api, call)?.includes("member") ?? true
    expect(
      [...ofMember].flatMap(([route, { calls }]) =>
        calls.filter((call) => !mayCall(call)).map((call) => `${route}: ${call}`)
      )
    ).toEqual([])
    // A button that leads to a page of which nothing is for members.
    const closed = pages
      .filter(({ route }) => /(?:new|edit)$/.test(route) && ofMember.get(route)!.isExplained)
      .map(({ path }) => `/dashboard/${path}`)
    expect(closed.length).toBeGreaterThan(3)
    expect(
      [...ofMember].flatMap(([route, { links }]) =>
        links.filter((link) => closed.includes(link)).map((link) => `${route}: ${link}`)
      )
    ).toEqual([])

    const ofOwner = await walk("owner")
    const owners = [...ofOwner].filter(([, { calls }]) => calls.some((call) => !mayCall(call))).map(([route]) => route)
    expect(owners.filter((route) => !ofMember.get(route)!.isExplained)).toEqual([])
    // The walk finds them: otherwise it would prove nothing.
    expect(owners).toEqual(
      expect.arrayContaining([
        "/runs",
        "/workflows/new",
        "/workflows/$id",
        "/workflows/$id/runs/$runId",
        "/workflows/$id/edit",
        "/transformations/$id",
        "/filters/$id",
        "/bulk-operations/$of/$id",
        "/alerts",
        "/team",
        "/team/secrets",
        "/team/delete",
        "/team/keys/$id"
      ])
    )
    expect([...ofOwner.values()].every(({ isExplained }) => !isExplained)).toBe(true)
    // Members are offered what they may do.
    const everything = [...ofMember.values()].flatMap(({ calls }) => calls)
    expect(new Set(everything).size).toBeGreaterThan(15)
  }, 300_000)

  it("No page that a project key can read offers a key which may only read a call that it may not make", async ({
    gateway,
    pages,
    signedIn
  }) => {
    const api = await documentOf()
    const owner = await gateway.session("owner")
    const read = pages.filter(({ route }) => readByKeys.includes(route))
    expect(read.map(({ route }) => route).toSorted()).toEqual(readByKeys.toSorted())
    const walk = async (scopes: ReadonlyArray<string>) => {
      const body = { name: gateway.name("key"), scopes }
      const made = await gateway.call("POST", "/project-api-keys", body, owner)
      expect([made.status, made.body.message]).toEqual([201, undefined])
      const page = await signedIn((made.body.data ?? made.body).api_key as string)
      await page.addInitScript(noting)
      const isReader = (await page.getByText("Key that can only read").count()) > 0
      const found = new Map<string, ReadonlyArray<string>>()
      for (const { path, route } of read) found.set(route, (await offered(page, path)).calls)
      return { found, isReader }
    }
    const scopes = ["control:read"]
    const reader = await walk(scopes)
    expect(reader.isReader).toBe(true)
    expect(
      [...reader.found].flatMap(([route, calls]) =>
        calls.filter((call) => !mayByKey(api, call, scopes)).map((call) => `${route}: ${call}`)
      )
    ).toEqual([])
    // The same pages offer a key that may change things what the first one may not: otherwise the walk would prove nothing.
    const editor = await walk(["control:read", "control:edit"])
    expect(editor.isReader).toBe(false)
    const silent = [...editor.found].filter(([, calls]) => !calls.some((call) => !mayByKey(api, call, scopes)))
    expect(silent.map(([route]) => route)).toEqual([])
  }, 300_000)
})
