import { Context } from "effect"
import { describe, expect, it } from "vitest"
import { editing } from "@tidegate/model/Permission"
import { holdsStoredPayload } from "@tidegate/model/StoredPayload"
import { Api } from "../src/contract/Api.ts"
import { Authorization, CallableBy, leaksPayloads, permissionOf } from "../src/contract/Authorization.ts"

/** Who may call what is said of every endpoint, and is what is checked. */

const endpoints = Object.values(Api.groups).flatMap((group) => Object.values(group.endpoints))

describe("Permission of every endpoint", () => {
  it("Every endpoint declares who may call it", () => {
    expect(endpoints.length).toBeGreaterThan(50)
    for (const endpoint of endpoints) expect(() => permissionOf(endpoint)).not.toThrow()
  })

  it("Every endpoint checks credentials unless it is public", () => {
    const open = endpoints.filter(({ middlewares }) => !middlewares.has(Authorization as never))
    const shown = endpoints.filter((endpoint) => permissionOf(endpoint) === "public")
    const names = (some: typeof endpoints) => some.map(({ method, path }) => `${method} ${path}`).toSorted()
    expect(names(open)).toEqual(names(shown))
  })

  it("Endpoint whose answer schema holds stored payloads requires the scope to read", () => {
    const payloads = endpoints.filter((endpoint) => [...endpoint.success].some(holdsStoredPayload))
    const names = payloads.map(({ method, path }) => `${method} ${path}`)
    for (const one of ["POST /requests/:id/share", "POST /request-fixtures", "POST /filters/test", "GET /requests"]) {
      expect(names).toContain(one)
    }
    expect(endpoints.filter(leaksPayloads)).toEqual([])
    const share = payloads.find(({ path }) => path === "/requests/:id/share")!
    expect(leaksPayloads({ ...share, annotations: Context.make(CallableBy, editing) })).toBe(true)
  })

  it("Endpoint that only reads requires no project key scope beyond reading", () => {
    for (const endpoint of endpoints.filter(({ method }) => method === "GET")) {
      const permission = permissionOf(endpoint)
      if (permission !== "public") expect(["control:read", "any", null]).toContain(permission.scope)
    }
  })
})
