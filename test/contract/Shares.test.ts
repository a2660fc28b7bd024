import { describe, expect } from "vitest"
import type { Body } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** Everyone who has a share's link can read its request, without the secrets in it, until the link expires. */

const it = gatewayIt
  .extend(
    "receive",
    ({ gateway }) =>
      async (body: string, headers: ReadonlyArray<[string, string]> = [], path = "") => {
        const source = await gateway.source()
        await request(gateway.port, { path: `/e/${source.id}${path}`, headers, body })
        const [stored] = await gateway.requests(source.id)
        return stored.id as string
      }
  )
  .extend(
    "open",
    ({ gateway }) =>
      (url: string): Promise<Response> =>
        fetch(gateway.origin + new URL(url).pathname)
  )

const secret = "Tr0ub4dor-hunter2"

describe("Share", () => {
  it("A share shows the request without its secrets to everyone who has the link", async ({
    gateway,
    open,
    receive
  }) => {
    const id = await receive(
      JSON.stringify({ user: "u", password: secret, inner: JSON.stringify({ api_key: secret }), ssn: secret }),
      [
        ["Content-Type", "application/json"],
        ["Authorization", `Bearer ${secret}`],
        ["X-Shop", "s"]
      ],
      `/orders?token=${secret}&page=2`
    )
    const made = await gateway.call("POST", `/requests/${id}/share`, { label: "Bug 12", redact_keys: ["S-S-N"] })
    expect(made.status).toBe(201)
    expect(made.body).toMatchObject({ request_id: id, title: "Bug 12", access_count: 0, revoked_at: null })
    expect(made.body.share_url).toBe(made.body.url)
    const answer = await open(made.body.url)
    expect(answer.status).toBe(200)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "cache-control": "no-store",
      "x-robots-tag": "noindex, nofollow",
      "access-control-allow-origin": "*",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff"
    })
    const text = await answer.text()
    const shown = JSON.parse(text)
    expect(Object.keys(shown).toSorted()).toEqual(["created_at", "expires_at", "request", "sanitized", "title"])
    expect(shown.request).toMatchObject({
      id,
      path: "/orders",
      url: "/orders?token=[redacted]&page=2",
      query: { token: "[redacted]", page: "2" },
      headers: { authorization: "[redacted]", "x-shop": "s" },
      body: { user: "u", password: "[redacted]", inner: '{"api_key":"[redacted]"}', ssn: "[redacted]" },
      body_truncated: false
    })
    for (const kept of [secret, gateway.team, made.body.token]) expect(text).not.toContain(kept)
  })

  it("A share ends when it is revoked", async ({ gateway, open, receive }) => {
    const id = await receive("x")
    const { body } = await gateway.call("POST", `/requests/${id}/share`)
    expect((await open(body.url)).status).toBe(200)
    for (let times = 0; times < 2; times++) {
      const revoked = await gateway.call("DELETE", `/requests/${id}/share/${body.id}`)
      expect(revoked).toEqual({ status: 200, body: { id: body.id, deleted: true } })
    }
    const gone = await open(body.url)
    expect([gone.status, ((await gone.json()) as Body).code]).toEqual([410, "SHARE_REVOKED"])
    expect(gone.headers.get("x-robots-tag")).toBe("noindex, nofollow")
  })

  it("The shares of a request can be listed and revoked together", async ({ gateway, open, receive }) => {
    const id = await receive("x")
    const other = await receive("y")
    const shared = async (of: string) => (await gateway.call("POST", `/requests/${of}/share`, { title: of })).body
    const [first, second, kept] = [await shared(id), await shared(id), await shared(other)]
    await open(second.url)
    await gateway.call("DELETE", `/requests/${id}/share/${first.id}`)

    const listed = async (query: string): Promise<ReadonlyArray<Body>> =>
      (await gateway.call("GET", `/shares?${query}`)).body.models
    const of = await listed(`request_id=${id}`)
    expect(of.map((one) => [one.id, one.status, one.access_count])).toEqual([
      [second.id, "active", 1],
      [first.id, "revoked", 0]
    ])
    expect((await listed(`request_id=${id},${other}&status=active`)).map((one) => one.id)).toEqual([kept.id, second.id])
    for (const hidden of [first.token, second.token, first.url, "snapshot"]) {
      expect(JSON.stringify(of)).not.toContain(hidden)
    }

    const ended = await gateway.call("DELETE", `/requests/${id}/share`)
    expect(ended).toEqual({ status: 200, body: { request_id: id, revoked: 1 } })
    expect((await gateway.call("DELETE", `/requests/${id}/share`)).body).toEqual({ request_id: id, revoked: 0 })
    expect([(await open(second.url)).status, (await open(kept.url)).status]).toEqual([410, 200])
    expect((await listed(`request_id=${id}`)).map((one) => one.status)).toEqual(["revoked", "revoked"])
    expect((await gateway.call("DELETE", "/requests/req_00000000000000000000000000/share")).status).toBe(404)
  })

  it("A share's duration has one value, under whichever names it is written", async ({ gateway, receive }) => {
    const id = await receive("x")
    const share = async (body: object) => {
      const { body: answer, status } = await gateway.call("POST", `/requests/${id}/share`, body)
      return [status, answer.data?.fields?.[0]?.path]
    }
    expect(await share({ ttl: 60, ttl_seconds: 120 })).toEqual([400, "ttl"])
    expect(await share({ ttl: 60, expires_in_seconds: 61 })).toEqual([400, "ttl"])
    expect(await share({ ttl: 60, ttl_seconds: 60, expires_in_seconds: 60 })).toEqual([201, undefined])
  })

  it("An unknown share is answered with 404, whether its token is well-formed or not", async ({ gateway, receive }) => {
    for (const token of [`rsh_${"0".repeat(48)}`, "rsh_", "x", "%27"]) {
      const answer = await fetch(`${gateway.origin}/shares/request/${token}`)
      expect([token, answer.status, ((await answer.json()) as Body).code]).toEqual([token, 404, "SHARE_NOT_FOUND"])
    }
    const id = await receive("x")
    expect((await gateway.call("DELETE", `/requests/${id}/share/shr_${"0".repeat(24)}`)).status).toBe(404)
    expect((await gateway.call("POST", "/requests/req_00000000000000000000000000/share")).status).toBe(404)
  })

  it("A share lasts as long as requested within limits", async ({ gateway, receive }) => {
    const id = await receive("x")
    const lasts = async (body: object): Promise<number> => {
      const { body: made } = await gateway.call("POST", `/requests/${id}/share`, body)
      return Math.round((Date.parse(made.expires_at) - Date.parse(made.created_at)) / 1_000)
    }
    const about = (seconds: number) => expect.closeTo(seconds, -1)
    expect(await lasts({})).toEqual(about(7 * 86_400))
    expect(await lasts({ ttl: 60 })).toEqual(about(60))
    expect(await lasts({ ttl_seconds: 1e9 })).toEqual(about(30 * 86_400))
    const hour = new Date(Date.now() + 3_600_000).toISOString()
    expect(await lasts({ expires_at: hour, expires_in_seconds: 90_000 })).toEqual(about(3_600))
    for (const wrong of [
      { ttl: 59 },
      { ttl: 1.5 },
      { expires_at: "now-1h" },
      { expires_at: "soon" },
      { title: "x".repeat(121) },
      { redact_keys: Array(101).fill("x") },
      { redact_keys: "x" },
      { include_body: "no" }
    ]) {
      const { body, status } = await gateway.call("POST", `/requests/${id}/share`, wrong)
      expect([status, body.code], JSON.stringify(wrong)).toEqual([400, "VALIDATION_ERROR"])
    }
  })

  it("A share omits the body on request, and when a large body cannot be redacted", async ({ gateway, receive }) => {
    const shown = async (id: string, body: object = {}) =>
      (await gateway.call("POST", `/requests/${id}/share`, body)).body.request
    expect(await shown(await receive("text"), { include_body: false })).toMatchObject({
      body: null,
      body_truncated: false
    })
    expect(await shown(await receive("a".repeat(70_000), [["Content-Type", "text/plain"]]))).toMatchObject({
      body: "a".repeat(65_536),
      body_truncated: true
    })
    const large = JSON.stringify(Array(40_000).fill("abc"))
    expect(await shown(await receive(large, [["Content-Type", "application/json"]]))).toMatchObject({
      body: null,
      body_truncated: true
    })
  })

  it("The opening of shares is limited per minute and address", async ({ gateway }) => {
    // Not the address of the other tests.
    const open = () =>
      request(gateway.port, { method: "GET", path: `/v1/shares/request/rsh_${"0".repeat(48)}`, from: "127.0.0.9" })
    let last = await open()
    for (let times = 0; times < 200 && last.status !== 429; times++) last = await open()
    expect(last.status).toBe(429)
    expect(Number(last.headers["retry-after"])).toBeGreaterThan(0)
    expect(JSON.parse(last.body).code).toBe("RATE_LIMITED")
  })
})
