import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { readNumber } from "@tidegate/json/ExactNumber"
import { callOf } from "@tidegate/actions/Providers"
import { noCredentials } from "@tidegate/actions/Provider"

const request = { provider_key: "http", action_key: "request", version: "1.0.0" }

describe("HTTP action", () => {
  it("HTTP action builds its request from inputs and credentials", () => {
    const call = Result.getOrThrow(
      callOf(
        request,
        {
          url: "https://api.example.com/a?x=1",
          method: "POST",
          query: { y: ["2", 3] },
          headers: { "X-A": 1 },
          body: {}
        },
        { mode: "api_key", values: { api_key: "a-secret-key", in: "query", name: "key" } }
      )
    )
    expect(call).toMatchObject({
      kind: "http",
      secrets: ["a-secret-key"],
      request: {
        method: "POST",
        url: "https://api.example.com/a?x=1&y=2&y=3&key=a-secret-key",
        shownUrl: "https://api.example.com/a?x=1&y=2&y=3",
        headers: ["x-a", "1", "user-agent", "event-gateway/1", "content-type", "application/json"]
      }
    })
  })

  it("HTTP action keeps all digits of numbers in its query and its headers", () => {
    const id = readNumber("12345678901234567891") as unknown as number
    const call = Result.getOrThrow(
      callOf(
        request,
        { url: "https://api.example.com/", method: "GET", query: { id, more: [1, id] }, headers: { "x-id": id } },
        noCredentials
      )
    )
    expect(call).toMatchObject({
      request: {
        url: "https://api.example.com/?id=12345678901234567891&more=1&more=12345678901234567891",
        headers: expect.arrayContaining(["x-id", "12345678901234567891"])
      }
    })
  })

  it("HTTP action refuses a wrong input and names it", () => {
    expect(callOf(request, { url: "ftp://example.com" }, noCredentials)).toEqual(
      Result.fail({ code: "INPUT_INVALID", message: "url: must be an absolute http or https URL" })
    )
    expect(callOf(request, { url: "https://example.com", headers: { host: "x" } }, noCredentials)).toEqual(
      Result.fail({ code: "INPUT_INVALID", message: "headers.host: is set by the gateway itself" })
    )
  })
})
