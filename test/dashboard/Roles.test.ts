import { resolve } from "node:path"
import { describe, expect } from "vitest"
import { apiDocument, mayByKey, operationOf, rolesOf } from "../support/ApiDocument.ts"
import { tableOf, unknownOf } from "../support/DashboardActions.ts"
import { hasBrowser, it as pageIt } from "../support/DashboardPage.ts"
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

const callsOf = ({ actions }: Offered): ReadonlyArray<string> => actions.flatMap(({ calls }) => calls)

describe.skipIf(!hasBrowser)("What each role is offered", () => {
  it("No page offers a member a call that only owners may make, each page says why where an owner is offered one, and the table has all actions", async ({
    gateway,
    places,
    signedIn
  }) => {
    const api = await apiDocument()
    const offeredTo = async (role: "owner" | "member") => walk(await signedIn(await gateway.session(role)), places)
    const ofMember = await offeredTo("member")
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

    const ofOwner = await offeredTo("owner")
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
    await expect(tableOf(await routesOf())).toMatchFileSnapshot(resolve(root, "docs/dashboard/actions.md"))
  }, 300_000)

  it("No page that a project key can read offers a key which may only read a call that it may not make", async ({
    gateway,
    places,
    signedIn
  }) => {
    const api = await apiDocument()
    const owner = await gateway.session("owner")
    const read = places.filter(({ route }) => readByKeys.includes(route))
    expect(new Set(read.map(({ route }) => route))).toEqual(new Set(readByKeys))
    const walkWith = async (scopes: ReadonlyArray<string>) => {
      const body = { name: gateway.name("key"), scopes }
      const made = await gateway.call("POST", "/project-api-keys", body, owner)
      expect([made.status, made.body.message]).toEqual([201, undefined])
      const page = await signedIn((made.body.data ?? made.body).api_key as string)
      const isReader = (await page.getByText("Key that can only read").count()) > 0
      const found = await walk(page, read)
      return { found: new Map([...found].map(([route, offered]) => [route, callsOf(offered)])), isReader }
    }
    const scopes = ["control:read"]
    const reader = await walkWith(scopes)
    expect(reader.isReader).toBe(true)
    expect(
      [...reader.found].flatMap(([route, calls]) =>
        calls.filter((call) => !mayByKey(api, call, scopes)).map((call) => `${route}: ${call}`)
      )
    ).toEqual([])
    // The same pages offer a key that may change things what the first one may not: otherwise the walk would prove nothing.
    const editor = await walkWith(["control:read", "control:edit"])
    expect(editor.isReader).toBe(false)
    const silent = [...editor.found].filter(([, calls]) => !calls.some((call) => !mayByKey(api, call, scopes)))
    expect(silent.map(([route]) => route)).toEqual([])
  }, 300_000)
})
