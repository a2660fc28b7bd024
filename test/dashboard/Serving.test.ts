import { describe, expect } from "vitest"
import { buildDashboard } from "../support/Dashboard.ts"
import { it as gatewayIt } from "../support/it.ts"

const header = { "x-tidegate-dashboard": "1" }

const it = gatewayIt
  .extend("built", { scope: "file" }, buildDashboard)
  .extend("call", ({ built, gateway }) => {
    expect(built).toBeUndefined()
    return (path: string, options: Omit<RequestInit, "headers"> & { readonly headers?: Record<string, string> } = {}) =>
      fetch(gateway.origin + path, { redirect: "manual", ...options, headers: { ...header, ...options.headers } })
  })
  /** Signs in and returns the cookie. */
  .extend("signIn", ({ call }) => async (credential: string) => {
    const answer = await call("/dashboard/session", {
      method: "POST",
      body: JSON.stringify({ credential }),
      headers: { "content-type": "application/json" }
    })
    return { status: answer.status, cookie: answer.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "" }
  })

describe("Dashboard as it is served", () => {
  it("The dashboard's page is served for each of its paths, with links that also work below a prefix", async ({
    call
  }) => {
    for (const [path, base] of [
      ["/dashboard/", "./"],
      ["/dashboard/requests", "./"],
      ["/dashboard/requests/req_1", "../"],
      ["/dashboard/workflows/wfl_1/runs/wfr_1", "../../../"]
    ] as const) {
      const page = await call(path)
      const html = await page.text()
      expect([path, page.status, page.headers.get("content-type")]).toEqual([path, 200, "text/html"])
      expect(html).toContain(`<base href="${base}" />`)
      expect(html).not.toMatch(/https?:\/\//)
    }
    expect((await call("/dashboard")).headers.get("location")).toBe("dashboard/")
    const root = await call("/", { headers: { accept: "text/html" } })
    expect([root.status, root.headers.get("location")]).toEqual([302, "dashboard/"])
  })

  it("The page runs its own script only, cannot be framed, and is not stored", async ({ call }) => {
    const page = await call("/dashboard/")
    const policy = page.headers.get("content-security-policy") ?? ""
    const nonce = /script-src 'nonce-([^']+)' 'strict-dynamic'/.exec(policy)?.[1]
    expect(await page.text()).toContain(`nonce="${nonce}"`)
    expect(policy).toMatch(/^default-src 'none';/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(page.headers.get("cache-control")).toBe("no-store")
    expect((await call("/dashboard/")).headers.get("content-security-policy")).not.toBe(policy)
  })

  it("The first load is smaller than 180 KB, and its files are kept by name", async ({ call }) => {
    const html = await (await call("/dashboard/")).text()
    const files = [...html.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, file]) => file!)
    expect(files).toHaveLength(2)
    let bytes = html.length
    // With the files that a script imports at once. Those that it imports later are in parentheses.
    for (const file of files) {
      const answer = await call(`/dashboard/${file}`, { headers: { "accept-encoding": "gzip" } })
      expect([answer.status, answer.headers.get("content-encoding")]).toEqual([200, "gzip"])
      expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
      bytes += Number(answer.headers.get("content-length"))
      for (const [, name] of (await answer.text()).matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) {
        if (!files.includes(`assets/${name}`)) files.push(`assets/${name}`)
      }
    }
    expect(files.length).toBeGreaterThan(2)
    expect(bytes).toBeLessThan(180 * 1024)
    for (const path of ["assets/none.js", "assets/..%2Findex.html", "assets/"]) {
      expect([path, (await call(`/dashboard/${path}`, { headers: { accept: "*/*" } })).status]).not.toEqual([path, 500])
    }
    expect((await call("/dashboard/assets/none.js")).status).toBe(404)
  })

  it("A session's cookie authorizes the page's calls, and nothing else does", async ({ call, gateway, signIn }) => {
    const { cookie, status } = await signIn(gateway.key)
    expect(status).toBe(200)
    const me = await call("/v1/auth/me", { headers: { cookie } })
    expect([me.status, ((await me.json()) as { active_team_id: string }).active_team_id]).toEqual([200, gateway.team])
    const made = await call("/v1/sources", {
      method: "POST",
      headers: { cookie, "content-type": "application/json", origin: gateway.origin },
      body: JSON.stringify({ name: "made on the dashboard" })
    })
    expect(made.status).toBe(200)
    const refused: ReadonlyArray<Record<string, string>> = [
      header,
      { cookie },
      { ...header, cookie, "sec-fetch-site": "cross-site" },
      { ...header, cookie, origin: "https://evil.example" }
    ]
    for (const headers of refused) expect((await fetch(`${gateway.origin}/v1/auth/me`, { headers })).status).toBe(401)
  })

  it("A wrong credential begins no session, and signing out ends one", async ({ call, gateway, signIn }) => {
    expect(await signIn("gwk_wrong")).toEqual({ status: 401, cookie: "" })
    expect((await signIn("")).status).toBe(401)
    const foreign = await fetch(`${gateway.origin}/dashboard/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ credential: gateway.key })
    })
    expect(foreign.status).toBe(404)
    expect(foreign.headers.getSetCookie()).toEqual([])
    const ended = await call("/dashboard/session", { method: "DELETE" })
    expect(ended.headers.getSetCookie()[0]).toMatch(/^tidegate_session=; Max-Age=0;/)
  })

  it("A session that has ended at the API has ended in the browser, too", async ({ call, gateway, signIn }) => {
    const token = await gateway.session("member")
    const { cookie } = await signIn(token)
    expect((await call("/v1/sources", { headers: { cookie } })).status).toBe(200)
    expect((await gateway.call("POST", "/auth/logout", undefined, token)).status).toBe(200)
    expect((await call("/v1/sources", { headers: { cookie } })).status).toBe(401)
  })
})
