import { describe, expect, it } from "vitest"
import { localUrlOf } from "../../src/tunnels/LocalUrl.ts"
import { deliveryFrame, readFrame } from "../../src/tunnels/TunnelFrames.ts"

/** What is said over a tunnel: no byte of a body is changed, and of what a client says only what an HTTP target could have said is taken. */

const said = (frame: unknown, underWay: ReadonlyArray<string> = ["j"]) =>
  readFrame(Buffer.from(typeof frame === "string" ? frame : JSON.stringify(frame)), (job) => underWay.includes(job))

const resultOf = (members: object) => {
  const read = said({ type: "delivery_result", job_id: "j", ...members })
  if (read.kind !== "result") throw new Error(`${JSON.stringify(members)} is taken for ${read.kind}`)
  return read.result
}

describe("Delivery frame of a tunnel", () => {
  const frameOf = (body: Uint8Array) =>
    JSON.parse(deliveryFrame({ job_id: "j", timeout_ms: 1, request: '{"path":"/"}', body }).toString())

  it.each([
    ["text", "body", Buffer.from('ä"\\\n\u0000')],
    ["nothing", "body", Buffer.alloc(0)],
    ["what is no text", "body_base64", Buffer.from([0xff, 0xc3])],
    ["a part of a larger buffer", "body", Buffer.from("xabcx").subarray(1, 4)],
    ["much text", "body_base64", Buffer.alloc(300_000, "a")]
  ] as const)("Delivery frame carries %s unchanged", (_, member, body) => {
    const { request, ...rest } = frameOf(body)
    expect(rest).toEqual({ type: "delivery", job_id: "j", timeout_ms: 1 })
    expect(Object.keys(request)).toEqual(["path", member])
    expect(Buffer.from(request[member], member === "body" ? "utf8" : "base64").equals(body)).toBe(true)
  })
})

describe("Frames from a tunnel client", () => {
  it.each([
    "",
    "{",
    "null",
    "7",
    "[]",
    '"ping"',
    "{}",
    "[".repeat(100_000),
    { type: "hello" },
    { type: "delivery_result" },
    { type: "delivery_result", job_id: 7, status: 200 },
    { type: "delivery_result", job_id: "another", status: 200 },
    { type: "delivery_result", job_id: "__proto__", status: 200 }
  ])("Tunnel frame %j is unexpected", (frame) => {
    expect(said(frame)).toEqual({ kind: "unexpected" })
  })

  it("Tunnel frame of the type ping is read as a ping", () => {
    expect(said({ type: "ping" })).toEqual({ kind: "ping" })
  })

  it.each([
    {},
    { status: "200" },
    { status: 99 },
    { status: 600 },
    { status: 200.5 },
    { status: 200, body: {} },
    { status: 200, body_base64: 7 },
    { status: 200, body: "a", body_base64: "YQ==" }
  ])("Tunnel result with the members %j is a protocol error", (members) => {
    expect(resultOf(members)).toMatchObject({ status: null, failure: { code: "PROTOCOL_ERROR" } })
  })

  it("Tunnel result may have a body as text, as base64 or none", () => {
    expect(resultOf({ status: 204 })).toMatchObject({ status: 204, body_truncated: false, failure: null })
    expect(resultOf({ status: 204, body: null }).body).toHaveLength(0)
    expect(resultOf({ status: 200, body: "ä" }).body).toEqual(Buffer.from("ä"))
    expect(resultOf({ status: 200, body_base64: "/wA=" }).body).toEqual(Buffer.from([0xff, 0]))
    const cut = resultOf({ status: 200, body: "z".repeat(70_000) })
    expect([cut.body.length, cut.body_truncated]).toEqual([64 * 1024, true])
    expect(resultOf({ status: 200, body: "z", body_truncated: true }).body_truncated).toBe(true)
  })

  it("Tunnel result keeps only headers that a target could have sent", () => {
    const headers = {
      "Content-Type": "text/plain",
      "set-cookie": ["a=1", "b=2", 7, "c\r\n"],
      "bad name": "x",
      number: 7,
      split: "a\r\nb",
      nul: "\u0000",
      lone: "\ud800",
      none: []
    }
    expect({ ...resultOf({ status: 200, headers }).headers }).toEqual({
      "content-type": "text/plain",
      "set-cookie": ["a=1", "b=2"]
    })
    for (const wrong of [null, [], "x", 7]) expect({ ...resultOf({ status: 200, headers: wrong }).headers }).toEqual({})
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`x-${i}`, "y"]))
    expect(Object.keys(resultOf({ status: 200, headers: many }).headers)).toHaveLength(100)
    expect(Object.keys(resultOf({ status: 200, headers: { a: "b", c: "y".repeat(20_000) } }).headers)).toEqual(["a"])
    const proto = JSON.parse('{"__proto__":"x"}') as object
    expect(Object.keys(resultOf({ status: 200, headers: proto }).headers)).toEqual(["__proto__"])
  })

  it("Tunnel result has an error message that is limited and safe to show", () => {
    const { failure, status } = resultOf({ status: 502, error: `refused\u0000\n\ud800${"x".repeat(1_000)}` })
    expect([status, failure?.code]).toEqual([502, "CLI"])
    expect(failure!.message).toMatch(/^the local target could not be reached: refused/)
    expect(failure!.message).not.toMatch(/\p{Cc}/u)
    expect(failure!.message.isWellFormed()).toBe(true)
    expect(failure!.message.length).toBeLessThan(300)
  })
})

describe("Local URL of a tunnel", () => {
  it.each([
    [undefined, null],
    ["", null],
    ["http://localhost:3000", "http://localhost:3000"],
    ["https://localhost:3000/app/", "https://localhost:3000/app"],
    ["http://127.0.0.1", "http://127.0.0.1"],
    ["http://127.9.8.7/", "http://127.9.8.7"],
    ["http://[::1]:8080/", "http://[::1]:8080"]
  ])("Local URL %s is normalized to %s", (given, url) => {
    expect(localUrlOf(given)).toBe(url)
  })

  it.each([
    "http://example.com",
    "http://localhost.example.com",
    "http://app.localhost",
    "http://127.0.0.1.example.com",
    "http://10.0.0.1",
    "http://localhost@example.com",
    "http://u:p@localhost",
    "http://localhost?a",
    "http://localhost#a",
    "ftp://localhost",
    "localhost:3000",
    "nonsense",
    `http://localhost/${"x".repeat(3_000)}`
  ])("Local URL %s is refused", (given) => {
    expect(localUrlOf(given)).toBeUndefined()
  })
})
