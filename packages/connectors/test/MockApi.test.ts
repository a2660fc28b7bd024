import { describe, expect, it } from "@effect/vitest"
import { answer, mockBase } from "@tidegate/connectors/MockApi"

const sent = (path: string, headers: ReadonlyArray<string> = []) => ({
  method: "PUT",
  url: mockBase + path,
  headers,
  body: Buffer.from('{"a":"ü"}')
})

describe("the mock", () => {
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
    it(`${path} answers ${status}`, () => expect(answer(sent(path)).status).toBe(status))
  }

  it("echoes the request", () => {
    const { body, headers } = answer(sent("/x?y=1", ["x-a", "1", "x-b", "2", "x-a", "3", "__proto__", "p", "x-a", "4"]))
    expect(headers).toEqual({ "content-type": "application/json" })
    const echo: unknown = JSON.parse(Buffer.from(body).toString())
    expect(echo).toEqual(
      JSON.parse(
        '{"method":"PUT","path":"/x","headers":{"x-a":["1","3","4"],"x-b":"2","__proto__":"p"},"body":"{\\"a\\":\\"ü\\"}"}'
      )
    )
  })
})
