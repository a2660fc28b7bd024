import { expect } from "vitest"
import { request, type RequestParts } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** A gateway behind a reverse proxy, here 127.0.0.2, with an origin for its sources and another one for its API. */

const api = "api.example.com"
const hooks = "hooks.example.com"

const it = gatewayIt
  .extend("settings", { scope: "file" }, () => ({
    PUBLIC_URL: `https://${api}`,
    TIDEGATE_INGRESS_URL: `https://${hooks}`,
    TIDEGATE_TRUSTED_PROXIES: "127.0.0.2/32, ::1"
  }))
  /** A request by the proxy, for whom it says. */
  .extend(
    "proxied",
    ({ gateway }) =>
      (host: string, client: string, { headers = [], ...parts }: RequestParts) =>
        request(gateway.port, {
          method: "GET",
          from: "127.0.0.2",
          ...parts,
          headers: [["Host", host], ["X-Forwarded-For", client], ...headers]
        })
  )

it("Sources and the API are each available only at their own origin", async ({ gateway, proxied }) => {
  const source = await gateway.source()
  expect(source.url).toBe(`https://${hooks}/e/${source.id}`)
  const path = `/e/${source.id}`
  const post = { method: "POST", path, body: "{}" }
  expect((await proxied(hooks, "198.51.100.1", post)).status).toBe(200)
  expect((await proxied(`${hooks}:443`, "198.51.100.1", post)).status).toBe(200)
  const elsewhere = await proxied(api, "198.51.100.1", post)
  expect([elsewhere.status, JSON.parse(elsewhere.body).code]).toEqual([404, "NOT_FOUND"])
  expect(elsewhere.headers).toMatchObject({ "x-content-type-options": "nosniff" })
  for (const other of ["/v1/sources", "/docs", "/openapi.json", "/healthz", "/"]) {
    expect([other, (await proxied(hooks, "198.51.100.1", { path: other })).status]).toEqual([other, 404])
  }
  expect((await proxied(api, "198.51.100.1", { path: "/openapi.json" })).status).toBe(200)
  expect((await gateway.requests(source.id)).length).toBe(2)
})

it("Nobody becomes the demo user by default through a proxy, and the dashboard does not offer it", async ({
  proxied
}) => {
  const login = await proxied(api, "198.51.100.1", { method: "POST", path: "/v1/auth/demo/login" })
  expect([login.status, JSON.parse(login.body).code]).toEqual([403, "LOGIN_DISABLED"])
  const ways = await proxied(api, "198.51.100.1", {
    path: "/dashboard/session",
    headers: [["x-tidegate-dashboard", "1"]]
  })
  expect(JSON.parse(ways.body)).toEqual({ identity_provider: false, demo: false })
})

it("Links to the API and URLs of sources use their own origins", async ({ gateway, proxied }) => {
  const source = await gateway.source()
  const sent = await proxied(hooks, "198.51.100.1", { method: "POST", path: `/e/${source.id}`, body: "{}" })
  const { request_id } = JSON.parse(sent.body)
  const { url } = await gateway.api("POST", `/requests/${request_id}/share`, {})
  expect(url).toMatch(new RegExp(`^https://${api}/v1/shares/request/`))
  const { body: bin } = await gateway.call("POST", "/public-bins", {})
  expect(bin.endpoint).toMatch(new RegExp(`^https://${hooks}/e/src_`))
})

it("Records and deliveries contain the client address that the proxy reports", async ({ gateway, proxied, target }) => {
  const { source } = await gateway.route(target)
  const post = { method: "POST", path: `/e/${source.id}`, body: "{}" }
  await proxied(hooks, "127.0.0.1, 198.51.100.7", post)
  await proxied(hooks, "[2001:db8::7]:4711", post)
  // A stranger says so too, and is not believed.
  const headers = [
    ["Host", hooks],
    ["X-Forwarded-For", "198.51.100.7"]
  ] as const
  await request(gateway.port, { ...post, headers, from: "127.0.0.3" })
  const addresses = ["198.51.100.7", "2001:db8::7", "127.0.0.3"]
  expect((await gateway.requests(source.id)).map((row) => row.original_ip)).toEqual(addresses)
  const calls = await target.next(3)
  expect(new Set(calls.map((call) => call.headers["x-gateway-original-ip"]))).toEqual(new Set(addresses))
})

it("A client with too many failures is limited without limiting others or its permitted calls", async ({
  gateway,
  proxied
}) => {
  const source = await gateway.source()
  const sent = await proxied(hooks, "198.51.100.1", { method: "POST", path: `/e/${source.id}`, body: "{}" })
  const { url } = await gateway.api("POST", `/requests/${JSON.parse(sent.body).request_id}/share`, {})
  const share = new URL(url).pathname
  const open = async (client: string, path: string) => (await proxied(api, client, { path })).status
  const unknown = share.replace(/[^/]+$/, "shr_unknown")
  const guesses = await Promise.all(Array.from({ length: 200 }, () => open("203.0.113.1", unknown)))
  expect(new Set(guesses)).toEqual(new Set([404, 429]))
  expect(await open("203.0.113.2", unknown)).toBe(404)
  // Requests with the right link are not limited, even for the client that guessed too often.
  const right = await Promise.all(Array.from({ length: 125 }, () => open("203.0.113.1", share)))
  expect(new Set(right)).toEqual(new Set([200]))

  const key = (client: string) =>
    proxied(api, client, { path: "/v1/sources", headers: [["Authorization", "Bearer gwk_wrong_key_0"]] })
  const wrong = await Promise.all(Array.from({ length: 120 }, () => key("203.0.113.1")))
  expect(wrong.some(({ status }) => status === 429)).toBe(true)
  expect((await key("203.0.113.2")).status).toBe(401)
})
