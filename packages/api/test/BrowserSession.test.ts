import { randomBytes } from "node:crypto"
import { Headers } from "effect/http"
import { describe, expect, it } from "vitest"
import { begun, cookieCredential, ended } from "../src/dashboard/BrowserSession.ts"

const key = randomBytes(32)
const at = Date.UTC(2026, 0, 1)
const weekMs = 7 * 24 * 3_600_000
const publicUrl = "https://hooks.example.com"

const cookieOf = (setCookie: string): string => setCookie.split(";", 1)[0]!

const cookie = cookieOf(begun(key, "gwk_secret", publicUrl, at))

/** The credential of a request of the dashboard's page with these headers beside the usual ones; undefined: without that header. */
const read = (headers: Record<string, string | undefined>, by = key, now = at) => {
  const all = { cookie, host: "hooks.example.com", "x-tidegate-dashboard": "1", ...headers }
  const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return cookieCredential(by, Headers.fromInput(sent), publicUrl, now)
}

describe("Session of the dashboard", () => {
  it("A cookie returns its credential to the dashboard's page only, and only until it ends", () => {
    expect(read({})).toBe("gwk_secret")
    expect(read({ "sec-fetch-site": "same-origin" })).toBe("gwk_secret")
    expect(read({ origin: "https://hooks.example.com" })).toBe("gwk_secret")
    expect(read({}, key, at + weekMs - 1)).toBe("gwk_secret")
    expect(read({}, key, at + weekMs)).toBeNull()
  })

  it.each([
    ["without the page's header", { "x-tidegate-dashboard": undefined }],
    ["from another site", { "sec-fetch-site": "cross-site" }],
    ["from another origin of the site", { "sec-fetch-site": "same-site" }],
    ["typed into the address bar", { "sec-fetch-site": "none" }],
    ["with another origin", { origin: "https://evil.example.com" }],
    ["from a sandboxed page", { origin: "null" }],
    ["with a credential of its own", { authorization: "Bearer gwk_other" }],
    ["without a cookie", { cookie: undefined }],
    ["with an invalid cookie", { cookie: "tidegate_session=AAAA" }],
    ["with a changed cookie", { cookie: `${cookie.slice(0, -2)}AA` }]
  ])("A request %s has no session", (_, headers) => {
    expect(read(headers)).toBeNull()
  })

  it("A WebSocket's handshake has the session if it names the gateway's own origin", () => {
    const handshake = { upgrade: "websocket", "x-tidegate-dashboard": undefined }
    expect(read({ ...handshake, origin: "https://hooks.example.com" })).toBe("gwk_secret")
    expect(read(handshake)).toBeNull()
    expect(read({ ...handshake, origin: "https://evil.example.com" })).toBeNull()
  })

  it("A reverse proxy may pass on another host than the browser has called", () => {
    expect(read({ host: "10.0.0.7:8080", origin: "https://hooks.example.com" })).toBe("gwk_secret")
  })

  it("A cookie of another installation does not count", () => {
    expect(read({}, randomBytes(32))).toBeNull()
  })

  it("Scripts, other sites and sources' upstreams do not get the cookie, and it does not contain the credential", () => {
    const attributes = begun(key, "gwk_secret", "https://example.com/gateway/", at)
    expect(attributes).toMatch(
      /^tidegate_session=[\w-]+; Max-Age=604800; Path=\/gateway\/v1; HttpOnly; SameSite=Strict; Secure$/
    )
    expect(Buffer.from(cookie.slice("tidegate_session=".length), "base64url").toString("latin1")).not.toContain(
      "gwk_secret"
    )
    // Over HTTP, as on a laptop, a browser would not store a cookie that requires HTTPS.
    expect(begun(key, "gwk_secret", "http://localhost:8080", at)).not.toContain("Secure")
    expect(ended(publicUrl)).toMatch(/^tidegate_session=; Max-Age=0; Path=\/v1; HttpOnly; SameSite=Strict; Secure$/)
  })
})
