import { describe, expect, it } from "@effect/vitest"
import { isUtf8 } from "node:buffer"
import { answer, mockUrl } from "../src/MockApi.ts"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import { processorTime } from "../../runtime/test/processorTime.ts"

const sent = (path: string, headers: ReadonlyArray<string> = []) => ({
  method: "PUT",
  url: mockUrl + path.slice(1),
  headers,
  body: Buffer.from('{"a":"ü"}')
})

describe("MOCK_API destination", () => {
  const statuses: ReadonlyArray<readonly [path: string, status: number]> = [
    ["/", 200],
    ["/orders", 200],
    ["/status/201", 201],
    ["/status/404", 404],
    ["/a/b/status/599", 599],
    ["/status/503?x=1", 503],
    ["/status/199", 200],
    ["/status/600", 200],
    ["/status/50", 200],
    ["/status/500/more", 200],
    ["/status/abc", 200]
  ]
  for (const [path, status] of statuses) {
    it(`MOCK_API destination answers ${status} for ${path}`, () => expect(answer(sent(path)).status).toBe(status))
  }

  it("MOCK_API destination echoes the request", () => {
    const { body, headers } = answer(sent("/x?y=1", ["x-a", "1", "x-b", "2", "x-a", "3", "__proto__", "p", "x-a", "4"]))
    expect(headers).toEqual({ "content-type": "application/json" })
    const echo: unknown = JSON.parse(Buffer.from(body).toString())
    expect(echo).toEqual(
      JSON.parse(
        '{"method":"PUT","path":"/x","query":"y=1","headers":{"x-a":["1","3","4"],"x-b":"2","__proto__":"p"},"body":"{\\"a\\":\\"ü\\"}"}'
      )
    )
  })

  it("MOCK_API destination cuts a long echo to the captured size between characters", () => {
    for (const shift of ["", "a", "ab"]) {
      const request = { ...sent("/x"), body: Buffer.from(shift + "\u20ac".repeat(4_000_000)) }
      const { body, bodyTruncated } = answer(request)
      expect(bodyTruncated).toBe(true)
      expect(body.length).toBeGreaterThan(maxCapturedBytes - 3)
      expect(body.length).toBeLessThanOrEqual(maxCapturedBytes)
      expect(isUtf8(body)).toBe(true)
      expect(body.toString()).toBe(`${head}${shift}${"\u20ac".repeat(4_000_000)}`.slice(0, body.toString().length))
    }
  })
  const head = '{"method":"PUT","path":"/x","query":"","headers":{},"body":"'

  it("MOCK_API destination keeps an echo whole that has exactly the captured size", () => {
    const fits = maxCapturedBytes - head.length - 2
    for (const [length, truncated] of [
      [fits, false],
      [fits + 1, true]
    ] as const) {
      const { body, bodyTruncated } = answer({ ...sent("/x"), body: Buffer.alloc(length, "a") })
      expect([body.length, bodyTruncated]).toEqual([maxCapturedBytes, truncated])
    }
  })

  it("MOCK_API destination answers a 10 MiB body or twenty thousand headers within a fraction of a second", () => {
    const repeated = Array.from({ length: 20_000 }, () => ["x", "1"]).flat()
    const spent = processorTime()
    for (let i = 0; i < 5; i++) answer({ ...sent("/x", repeated), body: Buffer.alloc(10 * 1024 * 1024, "\0") })
    // The limit is generous, because other processes may use the processor too.
    expect(spent() / 5).toBeLessThan(300)
  })
})
