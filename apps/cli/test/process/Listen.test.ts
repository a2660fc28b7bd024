import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { expect } from "vitest"
import { type WebSocket, WebSocketServer } from "ws"
import { eventually } from "../../../../test/support/Waiting.ts"
import { it as base } from "./it.ts"

/**
 * `listen` with a mock of the gateway that answers what the test defines: what it creates, what it prints, and how it ends.
 */

interface Call {
  readonly method: string
  readonly path: string
  readonly body: { readonly name?: string } & Record<string, unknown>
}

const ids: Readonly<Record<string, string>> = {
  "/v1/sources": "src_1",
  "/v1/destinations": "des_1",
  "/v1/connections": "web_1"
}

const textOf = async (request: IncomingMessage): Promise<string> => {
  const parts: Array<Buffer> = []
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
  return Buffer.concat(parts).toString()
}

const it = base.extend("mockApi", async ({}, { onCleanup }) => {
  const calls: Array<Call> = []
  /** What lists have, by their paths. */
  const there: Record<string, ReadonlyArray<object>> = {}
  const sockets: Array<WebSocket> = []
  /** The tunnel of each local URL. */
  const tunnels = new Map<string | null, WebSocket>()
  const results: Array<Record<string, unknown>> = []
  const server = createServer((request, response) => {
    void textOf(request).then((text) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://gateway")
      const isAsked = (row: { readonly id?: unknown; readonly name?: unknown }): boolean =>
        (searchParams.get("name") ?? row.name) === row.name && (searchParams.get("id") ?? row.id) === row.id
      const isList = request.method === "GET"
      const body = text === "" ? {} : JSON.parse(text)
      if (!isList) calls.push({ method: request.method ?? "", path: pathname, body })
      const record = {
        ...body,
        id: ids[pathname],
        url: "http://gateway/e/src_1"
      }
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(
          JSON.stringify(
            isList ? { models: (there[pathname] ?? []).filter(isAsked), count: 0, has_more: false } : record
          )
        )
    })
  })
  const wss = new WebSocketServer({ server, handleProtocols: () => "tunnel.v1" })
  wss.on("connection", (socket, { url }) => {
    sockets.push(socket)
    tunnels.set(new URL(url ?? "", "http://gateway").searchParams.get("local_url"), socket)
    socket.on("message", (data: Buffer) => results.push(JSON.parse(data.toString())))
    socket.send(JSON.stringify({ type: "hello", cli_id: `cli_${sockets.length}`, destination_id: "des_1" }))
  })
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  onCleanup(() => {
    for (const client of wss.clients) client.terminate()
    server.closeAllConnections()
    server.close()
  })
  const deliver = (job_id: string, path: string, tunnel = sockets.at(-1)!): void => {
    const request = {
      method: "POST",
      path,
      headers: {},
      body: "{}",
      event_id: "evt_1",
      request_id: "req_1",
      attempt_number: 1
    }
    tunnel.send(JSON.stringify({ type: "delivery", job_id, timeout_ms: 30_000, request }))
  }
  return {
    calls,
    there,
    sockets,
    tunnels,
    results,
    deliver,
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
})

it("Listen command creates a source and a tunnel, delivers, reconnects and ends cleanly", async ({
  mockApi,
  starting,
  target
}) => {
  const filter = { body: { type: "order.created" } }
  const words = ["listen", String(target.port), "--source", "shop", "--create", "--name", "ada", "--path", "hooks"]
  const listening = starting([...words, "--filter", JSON.stringify(filter), "--json"], {
    env: { TIDEGATE_URL: mockApi.origin }
  })
  const first = JSON.parse(await listening.line((line) => line.includes('"listening"')))
  expect(first).toMatchObject({ url: "http://gateway/e/src_1", source_id: "src_1", destination_id: "des_1" })
  expect(mockApi.calls).toEqual([
    { method: "PUT", path: "/v1/sources", body: { name: "shop" } },
    { method: "PUT", path: "/v1/destinations", body: { name: "ada-shop", type: "CLI", config: { path: "/hooks" } } },
    {
      method: "PUT",
      path: "/v1/connections",
      body: {
        name: "ada-shop",
        source_id: "src_1",
        destination_id: "des_1",
        rules: [{ ...filter, type: "filter" }],
        disabled_at: null
      }
    }
  ])
  await listening.line((line) => line.includes('"cli_1"'))
  mockApi.deliver("1", "/hooks/\u001b[31morders")
  expect(JSON.parse(await listening.line((line) => line.includes('"delivered"')))).toMatchObject({
    event_id: "evt_1",
    status: 200
  })
  expect(await eventually("the result", () => mockApi.results[0])).toMatchObject({
    job_id: "1",
    status: 200,
    body: "ok"
  })
  mockApi.sockets[0]!.terminate()
  await listening.line((line) => line.includes('"disconnected"'))
  await listening.line((line) => line.includes('"cli_2"'))
  expect(await listening.interrupt()).toMatchObject({ code: 0, complained: "" })
  // Nobody listens: events would fail one by one.
  expect(mockApi.calls.at(-1)).toMatchObject({ method: "PUT", path: "/v1/connections/web_1/disable" })
})

it.for<[string, object, string]>([
  ["/v1/destinations", { type: "HTTP" }, "is there already, of type HTTP"],
  ["/v1/connections", { source: { id: "src_1" }, destination: { id: "des_2" } }, "leads elsewhere"]
])("Listen command does not reuse what somebody else made: %j", async ([list, row, message], { mockApi, starting }) => {
  mockApi.there["/v1/sources"] = [{ id: "src_1", name: "shop" }]
  mockApi.there["/v1/destinations"] = [{ id: "des_1", name: "ada-shop", type: "CLI" }]
  mockApi.there[list] = [{ id: "x_1", name: "ada-shop", ...row }]
  const listening = starting(["listen", "3000", "--source", "shop", "--name", "ada"], {
    env: { TIDEGATE_URL: mockApi.origin }
  })
  expect(await listening.ended).toMatchObject({ code: 2, complained: expect.stringContaining(message) })
  expect(mockApi.calls).toEqual([])
})

it.for<[string, string]>([
  ["strpie", "tidegate: there is no source strpie; did you mean stripe?; --create makes it\n"],
  ["stripe,till", "tidegate: there is no source till; --create makes it\n"],
  ["src_2", "tidegate: there is no source src_2\n"]
])("Listen command does not create a misspelt source: %s", async ([source, message], { mockApi, starting }) => {
  mockApi.there["/v1/sources"] = [{ id: "src_1", name: "stripe" }]
  const listening = starting(["listen", "3000", "--source", source], { env: { TIDEGATE_URL: mockApi.origin } })
  expect(await listening.ended).toEqual({ code: 4, said: "", complained: message })
  expect(mockApi.calls).toEqual([])
})

it("Listen command serves several sources and ends cleanly when the terminal closes", async ({
  mockApi,
  starting,
  target
}) => {
  mockApi.there["/v1/sources"] = [
    { id: "src_1", name: "shop", url: "http://gateway/e/src_1" },
    { id: "src_2", name: "till", url: "http://gateway/e/src_2" }
  ]
  const words = ["listen", String(target.port), "--source", "shop,till", "--name", "ada"]
  const listening = starting(words, { env: { TIDEGATE_URL: mockApi.origin } })
  await listening.line((line) => line.startsWith("http://gateway/e/src_2 -> "))
  await listening.line((line) => line.startsWith("shop: ready"))
  await listening.line((line) => line.startsWith("till: ready"))
  expect(mockApi.calls.map(({ body, path }) => [path, body.name, body["source_id"]])).toEqual([
    ["/v1/destinations", "ada-shop", undefined],
    ["/v1/connections", "ada-shop", "src_1"],
    ["/v1/destinations", "ada-till", undefined],
    ["/v1/connections", "ada-till", "src_2"]
  ])
  expect(await listening.interrupt("SIGHUP")).toMatchObject({ code: 0 })
  expect(mockApi.calls.slice(4).map(({ path }) => path)).toEqual([
    "/v1/connections/web_1/disable",
    "/v1/connections/web_1/disable"
  ])
})

it("Listen command delivers the events of each source to the app that is written behind it", async ({
  mockApi,
  onTestFinished,
  starting,
  target
}) => {
  mockApi.there["/v1/sources"] = [
    { id: "src_1", name: "shop", url: "http://gateway/e/src_1" },
    { id: "src_2", name: "till", url: "http://gateway/e/src_2" }
  ]
  const asked: Array<string | undefined> = []
  const other = createServer((request, response) => {
    asked.push(request.url)
    response.end("of the till")
  })
  await new Promise<void>((resolve) => void other.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void other.close())
  const urls = [target.port, (other.address() as AddressInfo).port].map((port) => `http://127.0.0.1:${port}`)
  const words = ["listen", `shop=${urls[0]}`, `till=${urls[1]}/base`, "--name", "ada"]
  const listening = starting(words, { env: { TIDEGATE_URL: mockApi.origin } })
  await listening.line((line) => line === `http://gateway/e/src_1 -> ${urls[0]}/`)
  await listening.line((line) => line === `http://gateway/e/src_2 -> ${urls[1]}/base/`)
  await listening.line((line) => line.startsWith("shop: ready"))
  await listening.line((line) => line.startsWith("till: ready"))
  mockApi.deliver("1", "/paid", mockApi.tunnels.get(`${urls[1]}/base`))
  await listening.line((line) => line.startsWith("till: 200 POST /paid evt_1 "))
  expect(await eventually("the result", () => mockApi.results[0])).toMatchObject({ job_id: "1", body: "of the till" })
  expect(asked).toEqual(["/base/paid"])
  expect(target.received).toEqual([])
  mockApi.deliver("2", "/order", mockApi.tunnels.get(`${urls[0]}/`))
  await listening.line((line) => line.startsWith("shop: 200 POST /order evt_1 "))
  expect(target.received.map(({ url }) => url)).toEqual(["/order"])
  expect(await listening.interrupt()).toMatchObject({ code: 0 })
})

it.for<[ReadonlyArray<string>, number, string]>([
  [["3000", "4000"], 2, "say which source goes to which port: shop=3000 till=4000"],
  [["shop=3000", "4000"], 2, "write either source=port for each app, or one port and --source"],
  [["shop=3000", "--source", "shop"], 2, "write either source=port for each app, or one port and --source"],
  [["shop=3000", "src_1=4000"], 2, "the source shop is there twice"],
  [["shop=3000", "till=4000"], 4, "there is no source till; --create makes it"]
])(
  "Listen command does nothing when its sources and ports are wrong: %j",
  async ([words, expected, message], { mockApi, starting }) => {
    mockApi.there["/v1/sources"] = [{ id: "src_1", name: "shop", url: "http://gateway/e/src_1" }]
    const { code, complained } = await starting(["listen", ...words], { env: { TIDEGATE_URL: mockApi.origin } }).ended
    expect(complained).toContain(message)
    expect([code, mockApi.calls]).toEqual([expected, []])
  }
)

it("Listen command reports in plain words that nothing listens at the local port", async ({ mockApi, starting }) => {
  const nobody = createServer()
  await new Promise<void>((resolve) => void nobody.listen(0, "127.0.0.1", resolve))
  const { port } = nobody.address() as AddressInfo
  await new Promise((resolve) => nobody.close(resolve))
  const listening = starting(["listen", `http://127.0.0.1:${port}`], {
    env: { TIDEGATE_URL: mockApi.origin }
  })
  await listening.line((line) => line === `http://gateway/e/src_1 -> http://127.0.0.1:${port}/`)
  await listening.line((line) => line.startsWith("nothing listens at"))
  await listening.line((line) => line.startsWith("ready"))
  mockApi.deliver("1", "/\u001b[31mred")
  const line = await listening.line((line) => line.startsWith("502 "))
  expect(line).toMatch(/^502 POST \/\ufffd\[31mred evt_1 \d+ ms ECONNREFUSED/)
  mockApi.sockets.at(-1)!.close(4409, "replaced")
  expect(await listening.ended).toMatchObject({
    code: 1,
    complained: expect.stringContaining("another listener has taken over")
  })
})

it.for<[ReadonlyArray<string>, string]>([
  [["listen", "http://example.com"], "the local URL must be http or https on localhost"],
  [["listen", "3000", "--filter", "nothing"], "--filter must be a JSON object"],
  [["listen", "3000", "--max-connections", "51"], "must be from 1 to 50"]
])("CLI refuses the arguments %j", async ([words, message], { mockApi, starting }) => {
  const { code, complained, said } = await starting(words, { env: { TIDEGATE_URL: mockApi.origin } }).ended
  expect(said + complained).toContain(message)
  expect([code, mockApi.calls]).toEqual([2, []])
})
