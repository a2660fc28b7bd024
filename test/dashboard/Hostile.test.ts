import type { Page } from "playwright-core"
import { describe, expect } from "vitest"
import { firstRow, freshIt as pageIt, hasBrowser, heading, open, settled, turnTo } from "../support/DashboardPage.ts"
import { eventually } from "../support/Waiting.ts"

/*
 * What strangers send is shown, and never run, followed or fetched: whatever would load something names a server of its own, which counts
 * what it is asked for. And pages of this server, which is another origin, try to use the session of the reader.
 */

/** Text that runs or fetches something in a page that takes it for HTML, CSS or Markdown; and characters that turn the text around it. */
const attackOn = (origin: string): string =>
  [
    `<img src="${origin}/image" onerror="alert(1)"><script src="${origin}/script"></script><script>alert(1)</script>`,
    `<iframe src="${origin}/frame"></iframe><link rel="stylesheet" href="${origin}/style"><svg onload="alert(1)"></svg>`,
    `<a href="javascript:alert(1)">x</a><form action="${origin}/form"><button autofocus onfocus="alert(1)">x</button></form>`,
    `<meta http-equiv="refresh" content="0;url=${origin}/refresh"><base href="${origin}/base/">`,
    `<style>@import url(${origin}/import)</style>![x](${origin}/markdown) {{constructor.constructor("alert(1)")()}}`,
    `"><img src='${origin}/quoted'> \u202egnp.exe\u2066 ${origin}/plain`
  ].join("")

/** The same as a header or a name has it: on one line, in ASCII. */
const shortAttackOn = (origin: string): string =>
  `"><img src=${origin}/short onerror=alert(1)><script>alert(1)</script>`

const mebibyte = 1024 * 1024

const it = pageIt
  /** The server of the stranger. No page may ask it for anything. */
  .extend("planted", { scope: "file" }, async ({ startTarget }) => {
    const target = await startTarget(
      (response) => void response.writeHead(200, { "access-control-allow-origin": "*" }).end("")
    )
    return target
  })
  .extend("hostile", { scope: "file" }, async ({ gateway, planted, startTarget }) => {
    const attack = attackOn(planted.origin)
    const short = shortAttackOn(planted.origin)
    const target = await startTarget((response) => {
      response.writeHead(500, {
        "content-type": "text/html",
        link: `<${planted.origin}/preload>; rel=preload; as=script`,
        refresh: `0;url=${planted.origin}/refresh`,
        "x-hostile": short
      })
      response.end(attack)
    })
    const source = await gateway.api("POST", "/sources", { name: `s ${short}` })
    const destination = await gateway.api("POST", "/destinations", {
      name: `d ${short}`,
      type: "HTTP",
      config: { url: `${target.origin}/${encodeURIComponent(short)}` }
    })
    const connection = await gateway.connection(source, destination)
    const transformation = await gateway.api("POST", "/transformations", {
      name: `t ${short}`,
      code: `addHandler("transform", (request) => { console.log(${JSON.stringify(attack)}); return request })`
    })
    const workflow = await gateway.api("POST", "/workflows", {
      name: `w ${short}`,
      source_id: source.id,
      status: "draft",
      steps: [{ id: "large", kind: "filter", name: `k ${short}`, config: { conditions: { body: { a: 1 } } } }],
      edges: [{ source_type: "trigger", target_step_id: "large" }]
    })
    const send = async (body: string | Uint8Array<ArrayBuffer>, type: string, headers: Record<string, string> = {}) => {
      const answer = await fetch(`${source.url}/${encodeURIComponent(short)}?q=${encodeURIComponent(attack)}`, {
        method: "POST",
        headers: { "content-type": type, "x-hostile": short, ...headers },
        body
      })
      const { request_id } = (await answer.json()) as { request_id: string }
      await gateway.traced(request_id)
      return request_id
    }
    const many = Object.fromEntries(Array.from({ length: 230 }, (_, n) => [`x-${n}`, "<i>"]))
    return {
      ids: { source, destination, connection, transformation, workflow },
      html: await send(attack, "text/html"),
      json: await send(
        JSON.stringify({ [attack]: attack, __proto__: { url: planted.origin } }),
        "application/json",
        many
      ),
      binary: await send(
        Uint8Array.from({ length: 5_000 }, (_, n) => n % 256),
        "image/svg+xml"
      ),
      large: await send(`[${'{"a":1.50},'.repeat(Math.floor((10 * mebibyte - 4) / 11))}{}]`, "application/json"),
      send
    }
  })

/** Everything that a page does which it must not do. */
const watch = async (page: Page, own: string) => {
  const done: Array<string> = []
  page.on("dialog", (dialog) => {
    done.push(`dialog ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on("request", (request) => {
    const url = request.url()
    if (!url.startsWith(`${own}/`) && !/^(?:blob|data):/.test(url)) done.push(`request of ${url}`)
  })
  page.on("popup", (popup) => done.push(`window ${popup.url()}`))
  await page.exposeFunction("violated", (what: string) => done.push(`violation ${what}`))
  await page.addInitScript(
    `addEventListener("securitypolicyviolation", ({ blockedURI, violatedDirective }) => violated(violatedDirective + " " + blockedURI))`
  )
  return done
}

/** What in the page can load or run something, or leads to the stranger's server. */
const dangerous = (page: Page, origin: string): Promise<number> =>
  page
    .locator(
      `main :is(img, script, iframe, object, embed, link, style, meta, base, [onerror], [onload], [onfocus], a[href^="javascript:"], [href^="${origin}"], [src^="${origin}"], [action])`
    )
    .count()

describe.skipIf(!hasBrowser)("Hostile content in the dashboard", () => {
  it("Names, headers, bodies and answers are shown on every page, and none of them runs, leads away or loads anything", async ({
    gateway,
    hostile,
    page,
    planted
  }) => {
    const done = await watch(page, gateway.origin)
    const { connection, destination, source, transformation, workflow } = hostile.ids
    const shown: ReadonlyArray<readonly [path: string, text: string]> = [
      ["", "Overview"],
      ["map", "onerror"],
      ["sources", "onerror"],
      ["destinations", "onerror"],
      ["connections", "onerror"],
      ["transformations", "onerror"],
      ["workflows", "onerror"],
      ["requests", "onerror"],
      ["events", "onerror"],
      [`sources/${source.id}`, "onerror"],
      [`destinations/${destination.id}`, "onerror"],
      [`connections/${connection.id}`, "onerror"],
      [`transformations/${transformation.id}`, "console"],
      [`workflows/${workflow.id}`, "onerror"],
      [`workflows/${workflow.id}/edit`, "onerror"],
      [`requests/${hostile.html}`, "http-equiv"],
      [`requests/${hostile.json}`, "http-equiv"],
      [`requests/${hostile.binary}`, "bytes that are no text"]
    ]
    // The watch begins with a load.
    await page.reload()
    for (const [path, text] of shown) {
      await turnTo(page, path)
      await page.getByRole("heading", { level: 1 }).waitFor()
      await settled(page)
      await page.locator("main").getByText(text).first().waitFor({ state: "attached" })
      expect([path, await dangerous(page, planted.origin), await page.title()]).toEqual([path, 0, "Tidegate"])
    }
    await turnTo(page, `requests/${hostile.json}`)
    await page.getByRole("tab", { name: "Tree" }).first().click()
    for (const part of await page.locator(".tree summary").all()) await part.click()
    await page.locator(".tree").getByText("http-equiv").first().waitFor()
    expect(await dangerous(page, planted.origin)).toBe(0)
    // The destination's answer, with its headers.
    await turnTo(page, `events?destination_id=${destination.id}&status=FAILED`)
    await firstRow(page).click()
    await heading(page, "Event").waitFor()
    await page.locator("main").getByText("rel=preload").first().waitFor()
    expect(await dangerous(page, planted.origin)).toBe(0)
    await page.keyboard.press("Control+k")
    await page.getByRole("dialog").getByRole("combobox").fill("onerror")
    await page.getByRole("dialog").getByText("onerror").first().waitFor()
    expect(await page.locator("dialog :is(img, script, iframe)").count()).toBe(0)
    expect([done, planted.received.map(({ url }) => url)]).toEqual([[], []])
  })

  it("What would be found is found: a page that loads from another server breaks the policy, and the server is not asked", async ({
    browser,
    gateway,
    planted
  }) => {
    const context = await browser.newContext()
    const page = await context.newPage()
    const done = await watch(page, gateway.origin)
    await page.goto(`${gateway.origin}/dashboard/`)
    await page.evaluate(`document.body.append(Object.assign(new Image(), { src: "${planted.origin}/mine" }))`)
    await eventually("a violation", () => done.find((one) => one.startsWith("violation img-src")))
    expect(planted.received).toEqual([])
    await context.close()
  })

  it("Of 10 MiB and of hundreds of headers a page draws a part and says so, and 10,000 headers are refused", async ({
    hostile,
    page
  }) => {
    const drawn = async () => Number(await page.evaluate(`document.querySelector("main").textContent.length`))
    await turnTo(page, `requests/${hostile.large}`)
    await page.getByText(/^The first 200,000 of 10,\d{3},\d{3} characters are shown\.$/).waitFor()
    expect(await drawn()).toBeLessThan(400_000)
    // The page does what it is told.
    await open(page, "Overview")
    await turnTo(page, `events?request_id=${hostile.large}`)
    await firstRow(page).click()
    await page.getByText(/^The body is too large to be shown here as a whole\./).waitFor()
    expect(await drawn()).toBeLessThan(400_000)
    await turnTo(page, `requests/${hostile.json}`)
    await page
      .getByText(/^200 of 2\d\d headers are shown\.$/)
      .first()
      .waitFor()
    const headers = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`x-${n}`, ""]))
    const refused = await fetch(hostile.ids.source.url, { method: "POST", headers }).then(
      ({ status }) => status,
      () => "cut off"
    )
    expect([431, "cut off"]).toContain(refused)
  })

  it("A page of another origin in the same browser reads nothing, changes nothing, frames nothing and opens no stream", async ({
    gateway,
    hostile,
    page,
    planted
  }) => {
    planted.reply = (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<title>x</title>")
    const foreign = await page.context().newPage()
    // Another port is the same site for a browser: it sends the session's cookie. Another name is another site.
    for (const origin of [planted.origin, planted.origin.replace("127.0.0.1", "localhost")]) {
      await foreign.goto(`${origin}/page`)
      const tried = await foreign.evaluate(`(async () => {
        const made = { name: "forged" }
        const call = (path, options) => fetch(${JSON.stringify(gateway.origin)} + path, { credentials: "include", ...options }).then(({ status }) => status, () => "refused")
        const socket = new WebSocket("${gateway.origin.replace("http", "ws")}/v1/bins/${hostile.ids.source.id}/stream")
        const framed = document.createElement("iframe")
        const loaded = new Promise((resolve) => {
          framed.onload = () => resolve(framed.contentDocument === null ? "nothing to be seen" : "seen")
        })
        const joined = new Promise((resolve) => {
          socket.onmessage = () => resolve("joined")
          socket.onclose = ({ code }) => resolve(code)
        })
        framed.src = "${gateway.origin}/dashboard/"
        document.body.append(framed)
        return {
          read: await call("/v1/auth/me"),
          withHeader: await call("/v1/sources", { method: "POST", headers: { "x-tidegate-dashboard": "1" }, body: JSON.stringify(made) }),
          simple: await call("/v1/sources", { method: "POST", mode: "no-cors", body: JSON.stringify(made) }),
          session: await call("/dashboard/session", { method: "DELETE", mode: "no-cors" }),
          socket: await joined,
          framed: await loaded
        }
      })()`)
      expect([origin, tried]).toEqual([
        origin,
        {
          read: "refused",
          withHeader: "refused",
          // The answer to a simple request is opaque; what it did is looked for below.
          simple: 0,
          session: "refused",
          // A browser shows no status of a refused handshake, so the gateway ends the WebSocket with the status.
          socket: 4401,
          framed: "nothing to be seen"
        }
      ])
      const frame = foreign.frames().find((one) => one !== foreign.mainFrame())
      expect(frame?.url()).not.toContain("/dashboard")
    }
    await foreign.evaluate(`{
      const form = document.createElement("form")
      Object.assign(form, { method: "POST", action: "${gateway.origin}/v1/sources", enctype: "text/plain" })
      const field = Object.assign(document.createElement("input"), { name: '{"name":"forged","x":"', value: '"}' })
      form.append(field)
      document.body.append(form)
      form.submit()
    }`)
    await foreign.waitForURL(/\/v1\/sources$/)
    const { models } = await gateway.api("GET", "/sources?limit=100")
    expect(models.map((one: { name: string }) => one.name)).not.toContain("forged")
    // The session is still there, and the same stream opens from the dashboard's own page.
    await page.goto("./sources")
    const own = await page.evaluate(`new Promise((resolve) => {
      const socket = new WebSocket("${gateway.origin.replace("http", "ws")}/v1/bins/${hostile.ids.source.id}/stream")
      socket.onmessage = () => resolve("joined")
      socket.onclose = ({ code }) => resolve(code)
    })`)
    expect(own).toBe("joined")
  })
})
