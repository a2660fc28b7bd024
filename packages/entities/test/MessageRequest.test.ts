import { describe, expect, it } from "@effect/vitest"
import type { Received } from "@tidegate/connectors/Subscriptions"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { loopLimits, makeLoops } from "../src/Loops.ts"
import { requestOf } from "../src/Subscription/MessageRequest.ts"

const loops = makeLoops(["a key"], loopLimits)

const received = (change: Partial<Received> = {}): Received => ({
  receipt: 1,
  id: "m1",
  contentType: "application/json",
  contentEncoding: null,
  facts: { "x-gateway-routing-key": "order.paid" },
  headers: [],
  body: Buffer.from("{}"),
  size: 2,
  ...change
})

const headersOf = (change: Partial<Received>) => {
  const request = requestOf(received(change), loops)
  if (typeof request === "string") throw new Error(request)
  return request.headers
}

describe("Request of a message", () => {
  it("The body is unchanged, and what the broker says is in headers of the gateway", () => {
    expect(requestOf(received(), loops)).toEqual({
      method: "POST",
      path: "/",
      query: "",
      headers: {
        "content-type": "application/json",
        "x-gateway-message-id": "m1",
        "x-gateway-routing-key": "order.paid"
      },
      body: Buffer.from("{}")
    })
  })

  it("Headers of the message are kept, except those that others set, that are secrets, or that HTTP has not", () => {
    const headers = headersOf({
      id: null,
      contentType: null,
      facts: { "x-gateway-routing-key": "" },
      headers: [
        ["X-Kind", "paid"],
        ["Authorization", "Bearer secret"],
        ["x-gateway-message-id", "forged"],
        ["x-gateway-routing-key", "forged"],
        ["content-length", "9"],
        ["host", "other"],
        ["__proto__", "x"],
        ["two words", "x"],
        ["line", "a\r\nb: c"],
        ["wide", "\u20ac"],
        ["empty", ""]
      ]
    })
    expect(headers).toEqual({ "x-kind": "paid", ["__proto__"]: "x" })
  })

  it("A message that is too large, or that has led back too often, becomes no request", () => {
    expect(requestOf(received({ body: null, size: 2_000_000 }), loops)).toBe(
      "a message of 2000000 bytes is too large: at most 1048576 become a request"
    )
    let chain: Record<string, string> = {}
    const deep = Array.from({ length: loopLimits.hops + 1 }, () => {
      chain = { [loopHeader]: loops.next(chain, "req_01kaxg3j7qzfn8m4s2v6w9t5bc") }
      return chain[loopHeader]!
    })
    const last = (value: string) => requestOf(received({ headers: [[loopHeader, value]] }), loops)
    expect(last(deep[0]!)).toMatchObject({ headers: { [loopHeader]: deep[0] } })
    expect(last(deep.at(-1)!)).toBe("a message has led back to the gateway too often")
  })
})
