import { connect } from "node:net"
import { describe, expect } from "vitest"
import type { Answered } from "../support/Contract.ts"
import { Gateway } from "../support/Gateway.ts"
import { requestBytes } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"
import { patience } from "../support/Waiting.ts"

/** The control API as its users meet it: limits, pages, write rules, errors. */

const it = gatewayIt
  .extend("settings", { scope: "file" }, { TIDEGATE_API_RATE_LIMIT: "0" })
  .extend(
    "get",
    ({ gateway }) =>
      (path: string, headers: Record<string, string> = {}, origin = gateway.origin): Promise<Response> =>
        fetch(origin + path, { headers, redirect: "manual", signal: AbortSignal.timeout(patience) })
  )
  .extend("pagesOf", ({ gateway }) => async (path: SubList): Promise<ReadonlyArray<Answered<"GET", SubList>>> => {
    const pages: Array<Answered<"GET", SubList>> = []
    let next: string | null = null
    do {
      const page: Answered<"GET", SubList> = await gateway.api(
        "GET",
        `${path}${next === null ? "" : `&cursor=${next}`}`
      )
      pages.push(page)
      next = page.next
    } while (next !== null)
    return pages
  })

type SubList = `/requests/${string}/${"events" | "ignored_events"}?limit=${number}`

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const kib = (count: number): string => "x".repeat(count * 1_024)
const mib = 1_024 * 1_024

describe("Limits of calls", () => {
  it("An API key has a limit of calls a minute, and answers state what remains", async ({ get }) => {
    const limited = await Gateway.start({ TIDEGATE_API_RATE_LIMIT: "20" })
    try {
      const ask = () => get("/v1/sources?limit=1", bearer(limited.key), limited.origin)
      const first = await ask()
      expect(first.status).toBe(200)
      expect(first.headers.get("ratelimit-policy")).toBe('"key";q=20;w=60')
      expect(first.headers.get("ratelimit")).toMatch(/^"key";r=1[89];t=\d+$/)
      expect(first.headers.get("x-ratelimit-limit")).toBe("20")
      // One more comes with every three seconds, however slow this machine is: sent until none is left.
      let over = await ask()
      for (let calls = 2; calls < 200 && over.status === 200; calls++) over = await ask()
      expect(over.status).toBe(429)
      expect(over.headers.get("ratelimit")).toMatch(/^"key";r=0;t=\d+$/)
      expect(over.headers.get("x-ratelimit-remaining")).toBe("0")
      const body = (await over.json()) as { readonly data: { readonly retry_after_seconds: number } }
      expect(Number(over.headers.get("retry-after"))).toBe(body.data.retry_after_seconds)
      expect(body.data.retry_after_seconds).toBeGreaterThanOrEqual(1)
      expect(body).toMatchObject({ code: "RATE_LIMITED", status: 429, data: { limit: 20, scope: "api_key" } })
      // Senders are not callers.
      expect((await get("/healthz", {}, limited.origin)).status).toBe(200)
    } finally {
      await limited.close()
    }
  })

  it("Calls with wrong keys are limited by address, and a valid key from there still works", async ({
    gateway,
    get
  }) => {
    const statuses: Array<number> = []
    let last = await get("/v1/sources", bearer("gwk_wrong"))
    for (let calls = 1; calls < 300 && last.status === 401; calls++) {
      expect(last.headers.get("www-authenticate")).toMatch(/^Bearer/)
      statuses.push(last.status)
      last = await get("/v1/sources", calls % 2 === 0 ? {} : bearer("gwk_wrong"))
    }
    expect(statuses.length).toBeGreaterThanOrEqual(60)
    expect(last.status).toBe(429)
    expect(last.headers.get("ratelimit-policy")).toBe('"address";q=60;w=60')
    expect(await last.json()).toMatchObject({ code: "RATE_LIMITED", data: { limit: 60, scope: "address" } })
    const good = await get("/v1/sources", bearer(gateway.key))
    expect(good.status).toBe(200)
    // Switched off for keys.
    expect(good.headers.get("ratelimit")).toBeNull()
  })
})

describe("API page", () => {
  it("Every answer forbids framing, content sniffing and scripts", async ({ gateway, get }) => {
    for (const path of [
      "/",
      "/v1/sources",
      "/nowhere",
      "/v1/sources/%zz",
      "/openapi.json",
      "/readyz",
      "/v1/workflow-activity"
    ]) {
      const { headers } = await get(path, bearer(gateway.key))
      expect([path, headers.get("x-content-type-options")]).toEqual([path, "nosniff"])
      expect([path, headers.get("x-frame-options")]).toEqual([path, "DENY"])
      expect([path, headers.get("content-security-policy")]).toEqual([
        path,
        expect.stringContaining("default-src 'none'")
      ])
    }
  })

  it("The path / redirects browsers to the dashboard and lists the addresses for programs", async ({ get }) => {
    const browser = await get("/", { accept: "text/html,application/xhtml+xml,*/*;q=0.8" })
    expect([browser.status, browser.headers.get("location")]).toEqual([302, "dashboard/"])
    expect(await (await get("/", { accept: "*/*" })).json()).toMatchObject({ docs: "/docs", openapi: "/openapi.json" })
  })

  it("The API page has the guides beside it with working links and serves no other file", async ({ get }) => {
    const list = await (await get("/docs/guides/")).text()
    expect(list).toContain('<a href="cli.md">The command line</a>')
    const cli = await get("/docs/guides/cli.md")
    expect([cli.status, cli.headers.get("content-type")]).toEqual([200, expect.stringContaining("text/html")])
    expect(cli.headers.get("content-security-policy")).not.toMatch(/script/)
    const html = await cli.text()
    expect(html).toContain('<h1 id="the-command-line">')
    for (const [, link] of html.matchAll(/<a href="([a-z-]+\.md)[^"]*"/g)) {
      expect([link, (await get(`/docs/guides/${link}`)).status]).toEqual([link, 200])
    }
    const rules = await (await get("/docs/guides/rules.md")).text()
    expect(rules).toContain('id="filter"')
    const [under, away] = [
      await get("/docs/guides/destinations/email.md"),
      await get("/docs/guides", { accept: "*/*" })
    ]
    expect([under.status, away.status]).toEqual([200, 302])
    for (const path of ["none.md", "..%2FREADME.md", "%2e%2e/package.json", "examples/", "cli.md/"]) {
      expect([path, (await get(`/docs/guides/${path}`)).status]).toEqual([path, 404])
    }
  })

  it("The API page is small, runs only its own script and calls no other server", async ({ get }) => {
    const page = await get("/docs")
    const html = await page.text()
    expect(html.length).toBeLessThan(4_000)
    const policy = page.headers.get("content-security-policy") ?? ""
    const nonce = /script-src 'nonce-([^']+)'/.exec(policy)?.[1]
    expect(policy).toContain("connect-src 'self'")
    expect(policy).not.toMatch(/script-src[^;]*(?:unsafe|self|http|\*)/)
    const scripts = [...html.matchAll(/<script([^>]*)>/g)].map(([, attributes]) => attributes)
    expect(scripts).toHaveLength(2)
    for (const attributes of scripts) expect(attributes).toContain(`nonce="${nonce}"`)
    expect(html).not.toMatch(/https?:\/\//)
    expect(html).toContain('"telemetry":false')
    expect((await get("/docs")).headers.get("content-security-policy")).not.toBe(policy)
  })

  it("The API page's script is sent once, compressed, with a name made from its content", async ({ gateway, get }) => {
    for (const [path, base] of [
      ["/docs", "/"],
      ["/docs/", "/docs/"],
      ["/v1/docs", "/v1/"]
    ] as const) {
      const source = /<script src="([^"]+)"/.exec(await (await get(path)).text())?.[1] ?? ""
      const { pathname } = new URL(source, gateway.origin + base)
      const script = await get(pathname, { "accept-encoding": "gzip, br" })
      expect([path, script.status]).toEqual([path, 200])
      expect(script.headers.get("content-encoding")).toBe("br")
      expect(script.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
      expect(Number(script.headers.get("content-length"))).toBeLessThan(mib)
      expect(await script.text()).toContain("createApiReference")
      const zipped = await get(pathname, { "accept-encoding": "gzip, br;q=0" })
      expect(zipped.headers.get("content-encoding")).toBe("gzip")
    }
    expect((await get("/docs/scalar-0123456789abcdef.js")).status).toBe(404)
  })
})

describe("Largest bodies", () => {
  it("A source accepts 50 response rules of 64 KiB", async ({ gateway }) => {
    const rules = Array.from({ length: 50 }, (_, index) => ({
      match: { path: `/${index}` },
      response: { content_type: "text", body: kib(64) }
    }))
    const source = await gateway.source({ custom_response: { content_type: "text", body: kib(64), rules } })
    expect(source.config.custom_response?.rules).toHaveLength(50)
    const response = await fetch(`${gateway.origin}/e/${source.id}/49`, { method: "POST", body: "{}" })
    expect((await response.text()).length).toBe(64 * 1_024)
  })

  it("A connection accepts an inline transformation of 1 MiB", async ({ gateway }) => {
    const head = 'addHandler("transform", (request) => request)\n//'
    const code = head + "x".repeat(mib - head.length)
    const [source, destination] = [await gateway.source(), await gateway.destination({ path: "/" }, "MOCK_API")]
    const transformation = { name: gateway.name("large"), code }
    const connection = await gateway.connection(source, destination, [{ type: "transform", transformation }])
    expect(connection.rules[0]!["transformation_id"]).toMatch(/^trs_/)
    const written = await gateway.call("POST", "/transformations", { name: gateway.name("larger"), code: `${code}x` })
    expect(written).toMatchObject({ status: 400, body: { code: "VALIDATION_ERROR" } })
  })

  it("A transformation test accepts a sample of 9 MiB", async ({ gateway }) => {
    const sample = { note: kib(9 * 1_024) }
    const run = await gateway.call("POST", "/transformations/run", {
      code: 'addHandler("transform", (request) => ({ ...request, body: { length: request.body.note.length } }))',
      request: { body: sample, headers: { "content-type": "application/json" } }
    })
    expect(run).toMatchObject({ status: 200, body: { error: null, request: { body: { length: 9 * mib } } } })
    const tooLarge = await gateway.call("POST", "/transformations/run", {
      code: "x",
      request: { body: kib(17 * 1_024) }
    })
    expect(tooLarge).toMatchObject({ status: 413, body: { code: "PAYLOAD_TOO_LARGE" } })
  })

  it("Only a few large calls run at once, the others wait, and small calls do not", async ({ gateway }) => {
    const large = (headers: ReadonlyArray<readonly [string, string]>) => {
      const path = "/v1/transformations/run"
      const all = [
        ["Authorization", `Bearer ${gateway.key}`],
        ["Content-Type", "application/json"],
        ...headers
      ] as const
      return requestBytes({ path, headers: all, keepAlive: true })
    }
    // Eight that are promised and never sent, then one that would be sent at once.
    const open = Array.from({ length: 8 }, () => {
      const socket = connect(gateway.port, "127.0.0.1")
      socket.on("error", () => {})
      socket.write(large([["Content-Length", String(5 * mib)]]))
      return socket
    })
    try {
      const sample = { code: 'addHandler("transform", (r) => ({ ...r, body: 1 }))', request: { body: kib(2 * 1_024) } }
      await gateway.eventually("a ninth is refused", async () => {
        const answer = await gateway.call("POST", "/transformations/run", sample)
        return answer.status === 503 ? answer : null
      })
      expect((await gateway.call("POST", "/transformations/run", { ...sample, request: {} })).status).toBe(200)
    } finally {
      for (const socket of open) socket.destroy()
    }
    const sample = { code: 'addHandler("transform", (r) => ({ ...r, body: 1 }))', request: { body: kib(2 * 1_024) } }
    await gateway.eventually("their places are free again", async () => {
      const answer = await gateway.call("POST", "/transformations/run", sample)
      return answer.status === 200 ? answer : null
    })
  })

  it("Rules accept patterns of 512 characters", async ({ gateway }) => {
    const rule = (length: number) => [{ type: "filter", path: { $regex: "a".repeat(length) } }] as const
    const [source, destination] = [await gateway.source(), await gateway.destination({ path: "/" }, "MOCK_API")]
    await gateway.connection(source, destination, rule(512))
    const ends = { source_id: source.id, destination_id: destination.id }
    const refused = await gateway.call("POST", "/connections", { name: "long", ...ends, rules: rule(513) })
    expect(refused).toMatchObject({ status: 400, body: { code: "RULE_INVALID" } })
    const matcher = { rules: [{ match: { path: { $regex: "a".repeat(513) } }, response: {} }] }
    const response = await gateway.call("POST", "/sources", { name: "long", config: { custom_response: matcher } })
    expect(response.status).toBe(400)
  })
})

describe("Members that a write leaves out", () => {
  it("An upsert keeps what it leaves out, and a PUT by id of a destination resets it", async ({ gateway }) => {
    const name = gateway.name("kept")
    const whole = { name, type: "MOCK_API", description: "d", config: { path: "/a", rate_limit: 7 } }
    const { id } = await gateway.api("PUT", "/destinations", whole)
    const upserted = await gateway.api("PUT", "/destinations", { name, type: "MOCK_API", config: { path: "/b" } })
    expect(upserted).toMatchObject({ id, description: "d", config: { path: "/b", rate_limit: 7 } })
    const cleared = await gateway.api("PUT", "/destinations", { name, config: { rate_limit: null, path: "/b" } })
    expect(cleared).toMatchObject({ id, type: "MOCK_API", config: { rate_limit: null } })
    expect((await gateway.call("PATCH", `/destinations/${id}`, { rate_limit: 9 })).status).toBe(200)
    const replaced = await gateway.api("PUT", `/destinations/${id}`, { name, type: "MOCK_API", config: { path: "/c" } })
    expect(replaced).toMatchObject({ id, description: null, config: { path: "/c", rate_limit: null } })
  })

  it("An upsert of an HTTP destination requires its target URL, whether the name exists or not", async ({
    gateway
  }) => {
    const name = gateway.name("target")
    await gateway.api("PUT", "/destinations", { name, config: { url: "http://127.0.0.1:9/" } })
    for (const taken of [name, gateway.name("free")]) {
      const answer = await gateway.call("PUT", "/destinations", { name: taken, config: { rate_limit: 1 } })
      expect(answer).toMatchObject({ status: 400, body: { data: { fields: [{ path: "config.url" }] } } })
    }
  })

  it("A transformation keeps its variables, also when written inside a rule, and null removes them", async ({
    gateway
  }) => {
    const [name, code] = [gateway.name("env"), 'addHandler("transform", (r) => r)']
    const { id } = await gateway.api("PUT", "/transformations", { name, code, env: { A: "1" } })
    expect(await gateway.api("PUT", "/transformations", { name, code })).toMatchObject({ id, env: { A: "1" } })
    const [source, destination] = [await gateway.source(), await gateway.destination({ path: "/" }, "MOCK_API")]
    await gateway.connection(source, destination, [{ type: "transform", transformation: { name, code } }])
    expect(await gateway.api("GET", `/transformations/${id}`)).toMatchObject({ env: { A: "1" } })
    expect(await gateway.api("PUT", "/transformations", { name, code, env: null })).toMatchObject({ id, env: {} })
  })

  it("An upsert keeps a source's verification and a connection's rules", async ({ gateway }) => {
    const source = await gateway.source({ auth_type: "API_KEY", auth: { api_key: "a long secret" } })
    const again = await gateway.api("PUT", "/sources", { name: source.name, description: "d" })
    expect(again).toMatchObject({ id: source.id, description: "d", config: { auth_type: "API_KEY" } })
    const destination = await gateway.destination({ path: "/" }, "MOCK_API")
    const connection = await gateway.connection(source, destination, [{ type: "delay", delay: 5 }])
    const { name } = connection
    expect(await gateway.api("PUT", "/connections", { name, source_id: source.id, description: "d" })).toMatchObject({
      id: connection.id,
      rules: [{ type: "delay", delay: 5 }]
    })
  })
})

describe("Lists", () => {
  const connections = 12
  let requestId: string
  let otherId: string

  it.beforeAll(async ({ gateway }) => {
    const source = await gateway.source()
    const destination = await gateway.destination({ path: "/" }, "MOCK_API")
    for (let index = 0; index < connections; index++) {
      await gateway.connection(source, destination)
      await gateway.connection(source, destination, [{ type: "filter", path: "/nowhere" }])
    }
    const send = async () => {
      const response = await fetch(source.url, { method: "POST", body: "{}" })
      return ((await response.json()) as { readonly request_id: string }).request_id
    }
    requestId = await send()
    otherId = await send()
    await gateway.traced(requestId, 2 * connections)
    await gateway.traced(otherId, 2 * connections)
  })

  for (const list of ["events", "ignored_events"] as const) {
    it(`The ${list} of a request continue where a page ends`, async ({ gateway, pagesOf }) => {
      const pages = await pagesOf(`/requests/${requestId}/${list}?limit=5`)
      expect(pages.map(({ count, next }) => [count, next !== null])).toEqual([
        [5, true],
        [5, true],
        [2, false]
      ])
      const ids = pages.flatMap(({ models }) => models.map((model) => model.id))
      expect(new Set(ids).size).toBe(connections)
      expect(ids).toEqual([...ids].sort((a, b) => (a < b ? -1 : 1)))
      expect((await pagesOf(`/requests/${requestId}/${list}?limit=12`)).length).toBe(1)
      const { next } = pages[0]!
      const foreign = await gateway.call("GET", `/requests/${otherId}/${list}?limit=5&cursor=${next}`)
      expect(foreign).toMatchObject({ status: 400, body: { code: "INVALID_CURSOR" } })
    })
  }

  it("Events of a request are found, whenever it was received", async ({ gateway }) => {
    const old = await gateway.sql("select id from events where request_id = $1 order by id", [requestId])
    const list = await gateway.api("GET", `/events?request_id=${requestId}`)
    expect(list.models.map((model) => model.id).toSorted()).toEqual(old.map(({ id }) => id))
    expect(list).toMatchObject({ total: connections, total_exact: true, next_cursor: null })
    expect(Date.parse(list.applied_range.from)).toBe(0)
    const both = await gateway.api("GET", `/events/count?request_id=${requestId},${otherId}`)
    expect(both.total).toBe(2 * connections)
    expect(await gateway.api("GET", `/events?request_id=${requestId}&limit=5`)).toMatchObject({
      count: 5,
      total_exact: false,
      next_cursor: expect.any(String)
    })
    expect((await gateway.api("GET", "/events?request_id=req_nothing")).count).toBe(0)
  })

  it("Lists of resources state whether there are more and accept no cursor", async ({ gateway }) => {
    const [source, otherSource] = [await gateway.source(), await gateway.source()]
    const mock = () => gateway.destination({}, "MOCK_API")
    const [destination, otherDestination] = [await mock(), await mock()]
    const code = 'addHandler("transform", (r) => r)'
    const transformation = () => gateway.api("POST", "/transformations", { name: gateway.name("listed"), code })
    for (const [list, ...made] of [
      ["sources", source, otherSource],
      ["destinations", destination, otherDestination],
      ["connections", await gateway.connection(source, destination), await gateway.connection(source, destination)],
      ["transformations", await transformation(), await transformation()]
    ] as const) {
      const own = `id=${made.map(({ id }) => id).join(",")}`
      expect(await gateway.api("GET", `/${list}?${own}&limit=2`)).toMatchObject({ count: 2, has_more: false })
      expect(await gateway.api("GET", `/${list}?limit=1`)).toMatchObject({ count: 1, has_more: true })
      const first = await gateway.api("GET", `/${list}?${own}&limit=1`)
      expect(first).toMatchObject({ count: 1, has_more: true })
      const second = await gateway.api("GET", `/${list}?${own}&limit=1&cursor=${first.next_cursor}`)
      expect(second).toMatchObject({ count: 1, has_more: false, next_cursor: null })
      expect([first, second].map(({ models }) => models[0]!.id)).toEqual(made.map(({ id }) => id).toReversed())
      for (const name of ["cursor", "next"]) {
        const refused = await gateway.call("GET", `/${list}?${name}=abc`)
        expect(refused).toMatchObject({ status: 400, body: { code: "INVALID_CURSOR" } })
      }
      const refused = await gateway.call("GET", `/${list}?prev=abc`)
      expect(refused).toMatchObject({ status: 400, body: { data: { fields: [{ path: "prev" }] } } })
    }
  })

  it("A list of large resources ends before it is too large and says so", async ({ gateway }) => {
    const name = gateway.name("heavy")
    const body = `"${"x".repeat(65_534)}"`
    const rules = Array.from({ length: 15 }, (_, index) => ({ match: { path: `/${index}` }, response: { body } }))
    const heavy: Array<string> = []
    for (let index = 0; index < 6; index++) {
      const source = await gateway.api("POST", "/sources", {
        name: `${name}-${index}`,
        config: { custom_response: { rules } }
      })
      heavy.push(source.id)
    }
    const list = await gateway.api("GET", `/sources?id=${heavy.join(",")}`)
    expect(list).toMatchObject({ count: 4, has_more: true, pagination: { limit: 100 } })
    expect(list.models.map((model) => model.id)).toEqual(heavy.toReversed().slice(0, 4))
    expect(JSON.stringify(list).length).toBeLessThan(5 * 1024 * 1024)
    const rest = await gateway.api("GET", `/sources?id=${heavy.join(",")}&cursor=${list.next_cursor}`)
    expect(rest.models.map((model) => model.id)).toEqual(heavy.toReversed().slice(4))
    expect(rest).toMatchObject({ has_more: false, next_cursor: null })
    // What a connection shows of its source counts as well.
    const destination = await gateway.destination({ path: "/" }, "MOCK_API")
    for (let index = 0; index < 6; index++) await gateway.connection({ id: heavy[0]! }, destination)
    const connections = await gateway.api("GET", `/connections?source_id=${heavy[0]}`)
    expect(connections).toMatchObject({ count: 4, has_more: true })
    expect(await gateway.api("GET", `/sources?id=${heavy.slice(0, 4).join(",")}`)).toMatchObject({
      count: 4,
      has_more: false
    })
  })

  it("A list's limit must be written in digits", async ({ gateway }) => {
    const lists = ["/sources", "/requests", "/events", "/attempts", `/requests/${requestId}/events`]
    for (const path of lists) {
      for (const limit of ["1e2", "%2B5", "5.0", "0x10", "%205", ""]) {
        const refused = await gateway.call("GET", `${path}?limit=${limit}`)
        expect([path, limit, refused.status]).toEqual([path, limit, 400])
        expect(refused.body.message).toMatch(/^limit must be a whole number/)
      }
      expect((await gateway.call("GET", `${path}?limit=5`)).status).toBe(200)
    }
  })
})
