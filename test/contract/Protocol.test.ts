import { expect } from "vitest"
import { request, requestBytes, talk } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** What HTTP clients in use do with every request, and a server in use has to understand. */

const it = gatewayIt.extend("path", async ({ gateway, target }) => `/e/${(await gateway.route(target)).source.id}`)

it("A sender that expects 100-continue is asked for its body", async ({ gateway, path, target }) => {
  const { answers } = await talk(
    gateway.port,
    [
      `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n`,
      "ok"
    ],
    { answers: 1, pause: 30 }
  )
  expect(answers.map(({ status }) => status)).toEqual([100, 200])
  const [delivery] = await target.next()
  expect(delivery!.body.toString()).toBe("ok")
  expect(delivery!.headers).not.toHaveProperty("expect")
})

it("An offered protocol upgrade is ignored, and the request is accepted", async ({ gateway, path, target }) => {
  const headers = [
    ["Connection", "Upgrade, HTTP2-Settings"],
    ["Upgrade", "h2c"],
    ["HTTP2-Settings", "AAMAAABkAAQAAP__"]
  ] as const
  const { final } = await talk(gateway.port, [requestBytes({ path, headers, body: "offered" })], { answers: 1 })
  expect(final.status).toBe(200)
  const [delivery] = await target.next()
  expect(delivery!.body.toString()).toBe("offered")
  for (const gone of ["upgrade", "http2-settings"]) expect(delivery!.headers).not.toHaveProperty(gone)
})

it("A web socket request to a source is refused with 405", async ({ gateway, path }) => {
  const headers = [
    ["Connection", "Upgrade"],
    ["Upgrade", "websocket"],
    ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
    ["Sec-WebSocket-Version", "13"]
  ] as const
  const { final } = await talk(gateway.port, [requestBytes({ method: "GET", path, headers })], { answers: 1 })
  expect(final.status).toBe(405)
})

it("A request target in absolute form is accepted", async ({ gateway, path, target }) => {
  const ingress = await request(gateway.port, { path: `http://gateway.test${path}/suffix?x=1`, body: "{}" })
  expect(ingress.status).toBe(200)
  expect((await target.next())[0]!.url).toBe("/suffix?x=1")
  expect((await request(gateway.port, { method: "GET", path: "http://gateway.test/healthz" })).status).toBe(200)
})
