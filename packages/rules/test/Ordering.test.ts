import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { compileOrdering } from "../src/Ordering.ts"
import { requestInput } from "../src/RequestInput.ts"

const keyOf = (
  path: string,
  body: unknown,
  head: { readonly headers?: Record<string, string>; readonly query?: string } = {}
) => {
  const { headers = {}, query = "" } = head
  const request = { method: "POST", path: "/", query, headers: { "content-type": "application/json", ...headers } }
  return Result.getOrThrow(compileOrdering(path)).of(requestInput(request, Buffer.from(JSON.stringify(body))))
}

describe("Ordering key", () => {
  it("An ordering key is a short hash of the value at its path, equal for a number and its text", () => {
    const key = keyOf("body.customer.id", { customer: { id: 7 } })
    expect(key).toMatch(/^[\w-]{11}$/)
    expect(keyOf("body.customer.id", { customer: { id: "7" } })).toBe(key)
    expect(keyOf("body.customer.id", { customer: { id: "8" } })).not.toBe(key)
    expect(keyOf("headers.X-Customer", {}, { headers: { "x-customer": "7" } })).toBe(key)
    expect(keyOf("query.customer", {}, { query: "customer=7" })).toBe(key)
    expect(keyOf("body.items[1].id", { items: [{ id: 1 }, { id: 7 }] })).toBe(key)
    expect(keyOf("body.items.1.id", { items: [{ id: 1 }, { id: 7 }] })).toBe(key)
    expect(keyOf("body.flag", { flag: false })).not.toBeNull()
  })

  it("There is no ordering key if the path has no single value, or a long one", () => {
    for (const value of [undefined, null, {}, [], ["7"], "x".repeat(1_025), "ü".repeat(513)]) {
      expect(keyOf("body.id", { id: value })).toBeNull()
    }
    expect(keyOf("body.id", { id: "x".repeat(1_024) })).not.toBeNull()
    expect(keyOf("body.id.more", { id: "7" })).toBeNull()
    expect(keyOf("body.toString.name", {})).toBeNull()
    expect(keyOf("query.a", {}, { query: "a=1&a=2" })).toBeNull()
    expect(keyOf("body.id", "a text")).toBeNull()
  })

  it("The path of an ordering key leads to one value in body, headers or query", () => {
    for (const path of [
      "",
      "body",
      "headers",
      "path",
      "path.a",
      "method",
      "a.b",
      "body.a[*]",
      "body.a[$index]",
      "body..a"
    ]) {
      expect(Result.isFailure(compileOrdering(path)), path).toBe(true)
    }
  })
})
