import { resolve } from "node:path"
import type { Page } from "playwright-core"
import { describe, expect } from "vitest"
import { apiDocument, type KeyRights, mayByKey, operationOf, rolesOf } from "../support/ApiDocument.ts"
import { tableOf, unknownOf } from "../support/DashboardActions.ts"
import { freshIt as pageIt, hasBrowser, turnTo } from "../support/DashboardPage.ts"
import { type Offered, walk } from "../support/DashboardWalk.ts"
import { filled, routesOf } from "../support/DashboardWorld.ts"
import { FakeProviderServer } from "../support/FakeProviderServer.ts"

const root = resolve(import.meta.dirname, "../..")

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

const it = pageIt.extend("places", { scope: "file" }, async ({ gateway, startTarget }, { onCleanup }) => {
  const forge = await FakeProviderServer.start("a-token")
  onCleanup(() => forge.close())
  return (await filled(gateway, await gateway.session("owner"), (await startTarget()).origin, forge)).places
})

/** The pages that make something, as the command palette offers them. */
const formsIn = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.keyboard.press("Control+k")
  await page.getByRole("combobox", { name: "Page, name or id" }).fill("New ")
  const pages = page.getByRole("option").filter({ has: page.getByText("Page", { exact: true }) })
  const offered = await pages.locator("bdi").allInnerTexts()
  await page.keyboard.press("Escape")
  return offered
}

const callsOf = ({ actions }: Offered): ReadonlyArray<string> => actions.flatMap(({ calls }) => calls)

describe.skipIf(!hasBrowser)("What each role is offered", () => {
  it("No page offers a member a call that only owners may make, each page says why where an owner is offered one, and the table has all actions", async ({
    gateway,
    places,
    signedIn
  }) => {
    const api = await apiDocument()
    const offeredTo = async (role: "owner" | "member") => {
      const page = await signedIn(await gateway.session(role))
      return { found: await walk(page, places), forms: await formsIn(page) }
    }
    const { forms: formsOfMember, found: ofMember } = await offeredTo("member")
    expect(formsOfMember).toEqual(["New source", "New destination", "New connection"])
    const mayCall = (call: string) => rolesOf(api, call)?.includes("member") ?? true
    expect(
      [...ofMember].flatMap(([route, offered]) =>
        callsOf(offered)
          .filter((call) => !mayCall(call))
          .map((call) => `${route}: ${call}`)
      )
    ).toEqual([])
    // A button that leads to a page of which nothing is for members.
    const closed = places
      .filter(({ route }) => /(?:new|edit)$/.test(route) && ofMember.get(route)!.isExplained)
      .map(({ path }) => `/dashboard/${path}`)
    expect(closed.length).toBeGreaterThan(3)
    expect(
      [...ofMember].flatMap(([route, { links }]) =>
        links.filter((link) => closed.includes(link)).map((link) => `${route}: ${link}`)
      )
    ).toEqual([])

    const { forms: formsOfOwner, found: ofOwner } = await offeredTo("owner")
    expect(formsOfOwner).toEqual([
      ...formsOfMember,
      "New transformation",
      "New workflow",
      "New filter",
      "New provider account"
    ])
    const owners = [...ofOwner]
      .filter(([, offered]) => callsOf(offered).some((call) => !mayCall(call)))
      .map(([route]) => route)
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
    const everything = [...ofMember.values()].flatMap(callsOf)
    expect(new Set(everything).size).toBeGreaterThan(15)

    const found = [...ofOwner].flatMap(([route, { actions }]) =>
      actions.map(({ calls, label }) => `${route}: ${label}: ${operationOf(api, calls[0]!)}`)
    )
    expect(new Set(found).size).toBeGreaterThan(70)
    expect(unknownOf(found)).toEqual([])
    await expect(await tableOf(await routesOf())).toMatchFileSnapshot(resolve(root, "docs/dashboard/actions.md"))
  })

  it("No page offers a project key a call for which it lacks a scope or a grant, and what it may do is offered", async ({
    gateway,
    places,
    signedIn
  }) => {
    const api = await apiDocument()
    const owner = await gateway.session("owner")
    const read = places.filter(({ route }) => readByKeys.includes(route))
    expect(new Set(read.map(({ route }) => route))).toEqual(new Set(readByKeys))
    const walkWith = async (key: KeyRights) => {
      const made = await gateway.call("POST", "/project-api-keys", { name: gateway.name("key"), ...key }, owner)
      expect([made.status, made.body.message]).toEqual([201, undefined])
      const page = await signedIn((made.body.data ?? made.body).api_key as string)
      const isReader = (await page.getByText("Key that can only read").count()) > 0
      const forms = await formsIn(page)
      const found = [...(await walk(page, read))].flatMap(([route, offered]) =>
        callsOf(offered).map((call) => ({ route, call }))
      )
      expect(found.filter(({ call }) => !mayByKey(api, call, key))).toEqual([])
      // Some buttons call nothing before more is written.
      await turnTo(page, read[0]!.path)
      const isOffered = async (name: string) => (await page.getByRole("button", { name }).count()) > 0
      const isShared = [await isOffered("Share…"), await isOffered("Keep as fixture…")]
      const operations = new Set(found.map(({ call }) => operationOf(api, call)))
      return { forms, isReader, isShared, operations, routes: new Set(found.map(({ route }) => route)) }
    }
    const reader = await walkWith({ scopes: ["control:read"] })
    expect([reader.isReader, ...reader.isShared, reader.operations]).toEqual([true, false, false, new Set()])
    expect(reader.forms).toEqual([])
    const editor = await walkWith({ scopes: ["control:read", "control:edit"] })
    expect([editor.isReader, ...editor.isShared]).toEqual([false, true, true])
    expect(editor.forms).toEqual(["New source", "New destination", "New connection"])
    expect(editor.operations).toContain("PATCH /connections/{id}")
    const executor = await walkWith({
      scopes: ["control:read", "control:execute"],
      execute_grants: ["POST:/v1/events/:id/retry", "POST:/v1/events/bulk_operations/:id/run"]
    })
    expect([executor.isReader, ...executor.isShared]).toEqual([false, false, false])
    expect(executor.operations).toEqual(new Set(["POST /events/{id}/retry", "POST /events/bulk_operations/{id}/run"]))
    // Each of the pages has something for one of them: otherwise the walk would prove nothing.
    expect(new Set([...editor.routes, ...executor.routes])).toEqual(new Set(readByKeys))
  })
})
