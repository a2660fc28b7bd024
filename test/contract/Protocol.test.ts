import { expect } from "vitest"
import { request, requestBytes, talk } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** What HTTP clients in use do with every request, and a server in use has to understand. */

const it = gatewayIt.extend("path", async ({ gateway, target }) => `/e/${(await gateway.route(target)).source.id}`)

it("a sender that waits to be asked for its body is asked", async ({ gateway, path, target }) => {
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

it("an offer of another protocol is not taken, the request is", async ({ gateway, path, target }) => {
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

it("a web socket is no request of a method that the source takes", async ({ gateway, path }) => {
  const headers = [
    ["Connection", "Upgrade"],
    ["Upgrade", "websocket"],
    ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
    ["Sec-WebSocket-Version", "13"]
  ] as const
  const { final } = await talk(gateway.port, [requestBytes({ method: "GET", path, headers })], { answers: 1 })
  expect(final.status).toBe(405)
})

it("a target in absolute form is understood", async ({ gateway, path, target }) => {
  const ingress = await request(gateway.port, { path: `http://gateway.test${path}/suffix?x=1`, body: "{}" })
  expect(ingress.status).toBe(200)
  expect((await target.next())[0]!.url).toBe("/suffix?x=1")
  expect((await request(gateway.port, { method: "GET", path: "http://gateway.test/healthz" })).status).toBe(200)
})
