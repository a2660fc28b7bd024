import { describe, expect } from "vitest"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** Pages of other origins call the control API where an operator has named them, and nothing else. */

const page = "https://app.example.com"

const it = gatewayIt
  .extend("settings", { scope: "file" }, () => ({ TIDEGATE_CORS_ORIGINS: `${page}, http://localhost:5173` }))
  .extend(
    "from",
    ({ gateway }) =>
      (origin: string, method: string, path: string, more: ReadonlyArray<[string, string]> = [], body?: string) =>
        request(gateway.port, {
          method,
          path,
          headers: [["Origin", origin], ...more],
          ...(body === undefined ? {} : { body })
        })
  )

const cors = (headers: object): ReadonlyArray<string> =>
  Object.keys(headers).filter((name) => name.startsWith("access-control-"))

describe("Page of another origin", () => {
  it("A page of a configured origin may call the API and read the answer", async ({ from, gateway }) => {
    const preflight = await from(page, "OPTIONS", "/v1/sources/src_x", [
      ["Access-Control-Request-Method", "PATCH"],
      ["Access-Control-Request-Headers", "authorization,content-type"]
    ])
    expect(preflight.status).toBe(204)
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": page,
      vary: "Origin",
      "access-control-allow-headers": expect.stringContaining("authorization, content-type, x-team-id, idempotency-key")
    })
    expect(String(preflight.headers["access-control-allow-methods"]).split(", ").toSorted()).toEqual([
      "DELETE",
      "GET",
      "PATCH",
      "PUT"
    ])
    for (const [credential, status] of [
      [`Bearer ${gateway.key}`, 200],
      ["Bearer gwk_nobodys", 401]
    ] as const) {
      const answer = await from(page, "GET", "/v1/sources", [["Authorization", credential]])
      expect([answer.status, answer.headers["access-control-allow-origin"], answer.headers["vary"]]).toEqual([
        status,
        page,
        "Origin"
      ])
      expect(answer.headers["access-control-expose-headers"]).toContain("etag")
      // A cookie would be sent by whatever page a browser is on.
      expect(answer.headers["access-control-allow-credentials"]).toBe(undefined)
    }
    const made = await from(
      "http://localhost:5173",
      "POST",
      "/sources",
      [
        ["Authorization", `Bearer ${gateway.key}`],
        ["Content-Type", "application/json"]
      ],
      JSON.stringify({ name: "by a page", type: "WEBHOOK" })
    )
    expect([made.status, made.headers["access-control-allow-origin"]]).toEqual([200, "http://localhost:5173"])
  })

  it("A page of any other origin gets no CORS headers, and caches keep the answers apart", async ({ from }) => {
    for (const origin of [
      "https://app.example.com.evil.test",
      "http://app.example.com",
      "https://app.example.com:444",
      "null"
    ]) {
      for (const [method, more] of [
        ["GET", []],
        ["OPTIONS", [["Access-Control-Request-Method", "GET"]]]
      ] as const) {
        const answer = await from(origin, method, "/v1/sources", [...more] as Array<[string, string]>)
        expect([origin, cors(answer.headers), answer.headers["vary"]]).toEqual([origin, [], "Origin"])
      }
    }
  })

  it("A page of a configured origin has no special access to sources or public resources", async ({
    from,
    gateway
  }) => {
    const source = await gateway.source()
    const sent = await from(page, "POST", `/e/${source.id}`, [], "{}")
    expect([sent.status, cors(sent.headers)]).toEqual([200, []])
    const shared = await from(page, "GET", `/v1/shares/request/rsh_${"0".repeat(48)}`)
    expect(shared.headers["access-control-allow-origin"]).toBe("*")
  })
})
