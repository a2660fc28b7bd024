import { describe, expect, it } from "vitest"
import { Api } from "../src/contract/Api.ts"
import { Authorization, permissionOf } from "../src/contract/Authorization.ts"

/** Who may call what is said of every endpoint, and is what is checked. */

const endpoints = Object.values(Api.groups).flatMap((group) => Object.values(group.endpoints))

describe("every endpoint", () => {
  it("says who may call it", () => {
    expect(endpoints.length).toBeGreaterThan(50)
    for (const endpoint of endpoints) expect(() => permissionOf(endpoint)).not.toThrow()
  })

  it("is behind the check of credentials unless it is public", () => {
    const open = endpoints.filter(({ middlewares }) => !middlewares.has(Authorization as never))
    const shown = endpoints.filter((endpoint) => permissionOf(endpoint) === "public")
    const names = (some: typeof endpoints) => some.map(({ method, path }) => `${method} ${path}`).toSorted()
    expect(names(open)).toEqual(names(shown))
  })

  it("that only reads asks project keys for no more than the right to read", () => {
    for (const endpoint of endpoints.filter(({ method }) => method === "GET")) {
      const permission = permissionOf(endpoint)
      if (permission !== "public") expect(["control:read", null]).toContain(permission.scope)
    }
  })
})
