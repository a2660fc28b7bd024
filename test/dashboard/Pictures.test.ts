import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import type { Page } from "playwright-core"
import { describe, expect } from "vitest"
import { hasBrowser, heading, it as pageIt, settled } from "../support/DashboardPage.ts"
import { FakeProviderServer } from "../support/FakeProviderServer.ts"
import { fill, slack } from "../support/Showcase.ts"
import type { Gateway } from "../support/Gateway.ts"
import { patience, sleep } from "../support/Waiting.ts"

/*
 * Pictures of every page of the dashboard, for docs. `PICTURES=5 npm test -- test/dashboard/Pictures.test.ts -u` takes them: it fills a
 * gateway with the traffic of a shop over five minutes. Otherwise no gateway is started: the suite compares the pictures with the pages.
 */

const folder = resolve(import.meta.dirname, "../../docs/dashboard/pages")
/** Over how many minutes the traffic is sent, so that charts have something to show; 0: no picture is taken. */
const minutes = Number(process.env["PICTURES"] ?? 0)

type Shop = Awaited<ReturnType<typeof fill>> & {
  /** The id of a team that the shop's owner has deleted. */
  readonly deleted: string
}

interface Shot {
  readonly at: string | ((shop: Shop) => string)
  /** What a reader does before there is something to see. */
  readonly first?: (page: Page) => Promise<unknown>
}

const picked = (label: string, option: string) => (page: Page) =>
  page.getByLabel(label, { exact: true }).selectOption(option)

const shots: Readonly<Record<string, Shot>> = {
  "/": { at: "?from=now-1h" },
  "/map": { at: "map" },
  "/requests": { at: "requests?from=now-1h" },
  "/requests/$id": { at: ({ request }) => `requests/${request}` },
  "/events": { at: "events?from=now-1h" },
  "/events/$id": { at: ({ event }) => `events/${event}` },
  "/attempts": { at: "attempts?from=now-1h" },
  "/attempts/$id": { at: ({ attempt }) => `attempts/${attempt}` },
  "/runs": { at: "runs" },
  "/bulk-operations": { at: "bulk-operations" },
  "/bulk-operations/$of/$id": { at: ({ bulk }) => `bulk-operations/events/${bulk}` },
  "/sources/new": { at: "sources/new", first: picked("Type", "STRIPE") },
  "/destinations/new": { at: "destinations/new", first: picked("Type", "CHAT_BOT") },
  "/connections/new": {
    at: "connections/new",
    first: async (page) => {
      await picked("Source", "another")(page)
      await page.getByLabel("Type of the source", { exact: true }).selectOption("STRIPE")
    }
  },
  "/sources": { at: "sources" },
  "/sources/$id": { at: ({ source }) => `sources/${source}` },
  "/destinations": { at: "destinations" },
  "/destinations/$id": { at: ({ destination }) => `destinations/${destination}` },
  "/connections": { at: "connections" },
  "/connections/$id": {
    at: ({ connection }) => `connections/${connection}`,
    first: async (page) => {
      await page.getByRole("button", { name: /^Try them/ }).click()
      await page.getByText(/^\d+ of \d+ requests become events/).waitFor()
    }
  },
  "/transformations": { at: "transformations" },
  "/transformations/new": { at: "transformations/new" },
  "/transformations/$id": {
    at: ({ transformation }) => `transformations/${transformation}`,
    first: async (page) => {
      await page.getByLabel("or its id").fill(await page.evaluate(() => sessionStorage.getItem("sample") ?? ""))
      await page.getByRole("button", { name: "Take it" }).click()
      const sample = page.getByLabel("The sample as JSON")
      await expect.poll(() => sample.inputValue(), { timeout: patience }).toContain("order-")
      await page.getByRole("button", { name: "Run it" }).click()
      await page.getByRole("region", { name: "What changed" }).waitFor()
    }
  },
  "/workflows": { at: "workflows" },
  "/workflows/new": {
    at: "workflows/new",
    first: async (page) => {
      await picked("Template", "failed-payment-alert")(page)
      await page.getByRole("button", { name: /^Failed payments only, filter/ }).waitFor()
    }
  },
  "/workflows/$id": { at: ({ workflow }) => `workflows/${workflow}` },
  "/workflows/$id/runs/$runId": { at: ({ run, workflow }) => `workflows/${workflow}/runs/${run}` },
  "/workflows/$id/edit": {
    at: ({ workflow }) => `workflows/${workflow}/edit`,
    first: async (page) => {
      await page.getByRole("button", { name: /^By size, branch/ }).click()
      await page.getByRole("button", { name: "Test", exact: true }).click()
      await page.getByText("The test ended").waitFor()
    }
  },
  "/workflows/$id/versions": { at: ({ versions }) => `workflows/${versions}/versions` },
  "/filters": { at: "filters" },
  "/filters/new": { at: "filters/new" },
  "/filters/$id": { at: ({ filter }) => `filters/${filter}` },
  "/fixtures": { at: "fixtures" },
  "/fixtures/$id": { at: ({ fixture }) => `fixtures/${fixture}` },
  "/accounts": { at: "accounts" },
  "/accounts/new": { at: "accounts/new" },
  "/accounts/$id": { at: ({ account }) => `accounts/${account}` },
  "/channels": { at: "channels" },
  "/channels/$id": { at: ({ channel }) => `channels/${channel}` },
  "/alerts": { at: "alerts" },
  "/bins": { at: "bins" },
  "/bins/$id": {
    at: "bins",
    first: async (page) => {
      await page.getByRole("link", { name: /src_/ }).first().click()
      await page.getByText("POST /orders").click()
      await page.getByText("12.50").waitFor()
    }
  },
  "/shares": { at: "shares" },
  "/workflows/$id/triggers": { at: ({ workflow }) => `workflows/${workflow}/triggers` },
  "/team": { at: "team" },
  "/team/secrets": { at: "team/secrets" },
  "/team/delete": { at: "team/delete" },
  "/team/keys/$id": { at: ({ key }) => `team/keys/${key}` },
  "/team-deletions/$id": {
    at: ({ deleted }) => `team-deletions/${deleted}`,
    first: (page) => page.locator("header .badge", { hasText: "Done" }).waitFor({ timeout: patience })
  },
  // Outside of the router: they need no sign-in.
  "/shared": { at: ({ share }) => `shared/${share}` },
  "/sign-in": { at: "" }
}

/** The same page for other readers or on another way: it has the picture of the first one. */
const same = ["/bulk-operations/$id"]

const nameOf = (route: string): string =>
  route === "/" ? "overview" : route.slice(1).replaceAll("$", "").replaceAll("/", "-")

/** How a page is shown. Dark pictures have half the size: they show colors. */
const looks = {
  light: { width: 1280, least: 800, scheme: "light", scale: 1 },
  dark: { width: 1280, least: 800, scheme: "dark", scale: 0.5 },
  narrow: { width: 375, least: 720, scheme: "light", scale: 1 }
} as const
/** The height of the tallest picture. */
const tallest = 2000
type Look = keyof typeof looks

const fileOf = (route: string, look: Look): string => `${nameOf(route)}.${look}.webp`

const largestKiB = 90
const allMiB = 8

const gallery = (): string =>
  [
    "# Every page of the dashboard",
    "",
    "The pages of [the dashboard](../dashboard.md) of a shop, on a wide screen, in the dark theme, and on a telephone (375 pixels wide).",
    "`PICTURES=5 npm test -- test/dashboard/Pictures.test.ts -u` takes the pictures, over five minutes.",
    ...Object.keys(shots).flatMap((route) => [
      "",
      `## ${nameOf(route)}`,
      "",
      `![${nameOf(route)}, light](pages/${fileOf(route, "light")})`,
      `![${nameOf(route)}, dark](pages/${fileOf(route, "dark")})`,
      `![${nameOf(route)}, narrow](pages/${fileOf(route, "narrow")})`
    ]),
    ""
  ].join("\n")

/** Another team of the same owner, which is deleted with what it has received. */
const deleteTeam = async (gateway: Gateway, owner: string, url: string): Promise<string> => {
  const doomed = await gateway.forTeam()
  const { user } = (await gateway.call("GET", "/auth/me", undefined, owner)).body
  await gateway.sql("insert into memberships values ($1, $2, 'owner', now())", [doomed.team, user.id])
  const source = await doomed.source()
  await doomed.connection(source, await doomed.destination({ url }))
  for (let order = 0; order < 24; order++) {
    await fetch(source.url, { method: "POST", body: JSON.stringify({ order }) })
  }
  const answer = await fetch(`${gateway.origin}/v1/team/deletion`, {
    method: "POST",
    headers: { authorization: `Bearer ${owner}`, "x-team-id": doomed.team, "content-type": "application/json" },
    body: JSON.stringify({ team_id: doomed.team, team_name: doomed.team })
  })
  if (!answer.ok) throw new Error(`POST /team/deletion: ${answer.status} ${await answer.text()}`)
  return doomed.team
}

const it = pageIt
  .extend("chat", { scope: "file" }, ({ startTarget }) =>
    startTarget((response) => void response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}'))
  )
  .extend("settings", { scope: "file" }, ({ chat }) => ({ TIDEGATE_API_ORIGINS: `${slack}=${chat.origin}` }))
  .extend("shop", { scope: "file" }, async ({ chat, gateway, startTarget }, { onCleanup }): Promise<Shop> => {
    const forge = await FakeProviderServer.start("a-token")
    onCleanup(() => forge.close())
    const shop = await fill(gateway, startTarget, forge, { rounds: minutes, pause: () => sleep(60_000) })
    return { ...shop, deleted: await deleteTeam(gateway, shop.owner, chat.origin) }
  })

/** How much of the page cannot be seen, in pixels. */
const hidden = `(() => {
  const page = document.querySelector(".page") ?? document.documentElement
  page.scrollTop = 0
  return page.scrollHeight - page.clientHeight
})()`

/** Takes the picture as high as the page is. */
const take = async (page: Page, look: Look): Promise<Buffer> => {
  const { least, scale, width } = looks[look]
  let height: number = least
  await page.setViewportSize({ width, height })
  // A part may grow with the window.
  for (let again = 0; again < 3 && height < tallest; again++) {
    height = Math.min(tallest, height + (await page.evaluate<number>(hidden)))
    await page.setViewportSize({ width, height })
  }
  await page.waitForLoadState("networkidle")
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send("Page.captureScreenshot", {
    format: "webp",
    quality: 70,
    clip: { x: 0, y: 0, width, height, scale }
  })
  await session.detach()
  return Buffer.from(data, "base64")
}

describe("Pictures of the dashboard", () => {
  it.runIf(minutes > 0 && hasBrowser)(
    "A picture is taken of every page",
    async ({ gateway, shop, signedIn, stranger }) => {
      await rm(folder, { recursive: true, force: true })
      await mkdir(folder, { recursive: true })
      const page = await signedIn(shop.owner)
      await page.evaluate((sample) => sessionStorage.setItem("sample", sample), shop.request)
      await page.goto("./bins")
      await page.getByRole("button", { name: "New bin" }).click()
      await heading(page, "Bin").waitFor()
      const url = await page.locator("dd code").first().textContent()
      await fetch(`${url}/orders`, { method: "POST", body: '{"order":"order-1","total":12.50}' })
      await page.getByText("POST /orders").waitFor()
      const outside = await stranger(`${gateway.origin}/dashboard/`)
      const wider: Array<string> = []
      for (const [route, { at, first }] of Object.entries(shots)) {
        const of = route === "/sign-in" ? outside : page
        for (const look of Object.keys(looks) as ReadonlyArray<Look>) {
          await of.setViewportSize({ width: looks[look].width, height: 800 })
          await of.emulateMedia({ colorScheme: looks[look].scheme })
          await of.goto(`./${typeof at === "string" ? at : at(shop)}`)
          await of.getByRole("heading", { level: 1 }).waitFor()
          await settled(of)
          await first?.(of)
          await settled(of)
          await writeFile(join(folder, fileOf(route, look)), await take(of, look))
          if ((await of.evaluate("document.documentElement.scrollWidth > innerWidth")) === true)
            wider.push(`${route} ${look}`)
        }
      }
      expect(wider).toEqual([])
    },
    1_200_000
  )

  it("Every page of the router has its pictures, and they weigh little", async () => {
    const router = await readFile(resolve(import.meta.dirname, "../../apps/dashboard/src/router.tsx"), "utf8")
    const routes = [...router.matchAll(/^ {2}\["(\/[^"]*)",/gm)].map(([, route]) => route!)
    expect(routes.length).toBeGreaterThan(30)
    expect([...Object.keys(shots), ...same].toSorted()).toEqual([...routes, "/shared", "/sign-in"].toSorted())
    const wanted = Object.keys(shots).flatMap((route) =>
      (Object.keys(looks) as ReadonlyArray<Look>).map((look) => fileOf(route, look))
    )
    expect((await readdir(folder)).toSorted()).toEqual(wanted.toSorted())
    const sizes = await Promise.all(wanted.map(async (name) => [name, (await stat(join(folder, name))).size] as const))
    expect(sizes.filter(([, size]) => size > largestKiB * 1024)).toEqual([])
    expect(sizes.reduce((all, [, size]) => all + size, 0)).toBeLessThan(allMiB * 1024 * 1024)
    await expect(gallery()).toMatchFileSnapshot(join(folder, "../pages.md"))
  })
})
