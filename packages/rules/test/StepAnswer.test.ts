import { describe, expect, it } from "vitest"
import { stepAnswer } from "../src/StepAnswer.ts"

describe("Answer of a workflow's step", () => {
  it("An output with a status is the answer, with the headers that a source may set", () => {
    const headers = { "X-Kind": "a", "Set-Cookie": "a=1", "transfer-encoding": "chunked", "content-type": "text/xml" }
    expect(stepAnswer({ status: 404, headers, body: "<no/>" })).toEqual({
      status: 404,
      contentType: "application/xml; charset=utf-8",
      headers: expect.objectContaining({ "x-kind": "a", "x-content-type-options": "nosniff" }),
      body: "<no/>"
    })
    const answered = Object.keys(stepAnswer({ status: 200, headers, body: null })!.headers)
    expect(answered).not.toContain("set-cookie")
    expect(answered).not.toContain("transfer-encoding")
    expect(stepAnswer({ status: 204, headers: {}, body: "x" })).toMatchObject({ status: 204, body: "" })
  })

  it("Of an output with a body and no status the body is the answer, without its headers", () => {
    expect(
      stepAnswer({ headers: { "x-own": "1" }, body: { a: 1 }, method: "POST", path: "/", query: {} })
    ).toMatchObject({
      status: 200,
      contentType: "application/json; charset=utf-8",
      body: '{"a":1}'
    })
    expect(stepAnswer({ headers: { "x-own": "1" }, body: 1 })!.headers).not.toHaveProperty("x-own")
  })

  it("Any other output is answered as JSON, and a text as plain text", () => {
    expect(stepAnswer({ result: "a", status: "done" })).toMatchObject({
      status: 200,
      body: '{"result":"a","status":"done"}'
    })
    expect(stepAnswer("<b>hi</b>")).toMatchObject({ contentType: "text/plain; charset=utf-8", body: "<b>hi</b>" })
    expect(stepAnswer({ status: 200, headers: { "content-type": "text/html" }, body: "<b>" })).toMatchObject({
      contentType: "text/plain; charset=utf-8"
    })
    expect(stepAnswer(null)).toMatchObject({ status: 200, body: "" })
  })

  it("An output that is too long is no answer", () => {
    expect(stepAnswer("x".repeat(1_048_577))).toBeNull()
  })
})
