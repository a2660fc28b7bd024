import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect } from "vitest"
import { freePort } from "../../../../test/support/Ports.ts"
import { eventually } from "../../../../test/support/Waiting.ts"
import { it } from "./MockApi.ts"

/**
 * `listen` with a mock of the gateway that answers what the test defines: what it creates, what it prints, and how it ends.
 */

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
    at: expect.stringMatching(/^\d{4}-.*Z$/),
    event_id: "evt_1",
    event_type: "order.paid",
    link: `${mockApi.origin}/dashboard/events/evt_1`,
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

it.for<[string, ReadonlyArray<string>, string]>([
  ["a source", [], "there is no source shop; --create makes it"],
  ["a destination", ["/v1/sources"], "--create makes the destination and connection ada-shop"],
  ["a connection", ["/v1/sources", "/v1/destinations"], "--create makes the destination and connection ada-shop"]
])("Listen command creates nothing unless it is told to: %s", async ([, lists, message], { mockApi, starting }) => {
  const rows = {
    "/v1/sources": { id: "src_1", name: "shop" },
    "/v1/destinations": { id: "des_1", name: "ada-shop", type: "CLI" }
  }
  for (const list of lists) mockApi.there[list] = [rows[list as keyof typeof rows]]
  const listening = starting(["listen", "3000", "--source", "shop", "--name", "ada"], {
    env: { TIDEGATE_URL: mockApi.origin }
  })
  expect(await listening.ended).toMatchObject({ code: 4, complained: expect.stringContaining(message) })
  expect(mockApi.calls).toEqual([])
})

it("Listen command uses what is there, and says how many events wait", async ({ mockApi, starting, target }) => {
  mockApi.there["/v1/sources"] = [{ id: "src_1", name: "shop", url: "http://gateway/e/src_1" }]
  mockApi.there["/v1/destinations"] = [{ id: "des_1", name: "ada-shop", type: "CLI" }]
  mockApi.there["/v1/connections"] = [
    { id: "web_1", name: "ada-shop", source: { id: "src_1" }, destination: { id: "des_1" } }
  ]
  mockApi.waiting.count = 3
  const words = ["listen", String(target.port), "--source", "shop", "--name", "ada"]
  const listening = starting(words, { env: { TIDEGATE_URL: mockApi.origin } })
  await listening.line((line) => line === "3 events wait: what is due arrives now")
  expect(mockApi.calls.map(({ path }) => path)).toEqual(["/v1/destinations", "/v1/connections"])
  mockApi.waiting.count = 1
  mockApi.sockets[0]!.terminate()
  await listening.line((line) => line === "1 event waits: what is due arrives now")
  expect(await listening.interrupt()).toMatchObject({ code: 0 })
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
  const words = ["listen", String(target.port), "--source", "shop,till", "--name", "ada", "--create"]
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
  const words = ["listen", `shop=${urls[0]}`, `till=${urls[1]}/base`, "--name", "ada", "--create"]
  const listening = starting(words, { env: { TIDEGATE_URL: mockApi.origin } })
  await listening.line((line) => line === `http://gateway/e/src_1 -> ${urls[0]}/`)
  await listening.line((line) => line === `http://gateway/e/src_2 -> ${urls[1]}/base/`)
  await listening.line((line) => line.startsWith("shop: ready"))
  await listening.line((line) => line.startsWith("till: ready"))
  mockApi.deliver("1", "/paid", mockApi.tunnels.get(`${urls[1]}/base`))
  await listening.line((line) => /^till: \d\d:\d\d:\d\d 200 POST \/paid order\.paid \d+ ms /.test(line))
  expect(await eventually("the result", () => mockApi.results[0])).toMatchObject({ job_id: "1", body: "of the till" })
  expect(asked).toEqual(["/base/paid"])
  expect(target.received).toEqual([])
  mockApi.deliver("2", "/order", mockApi.tunnels.get(`${urls[0]}/`))
  await listening.line((line) => /^shop: \d\d:\d\d:\d\d 200 POST \/order order\.paid /.test(line))
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
  const port = await freePort()
  const listening = starting(["listen", `http://127.0.0.1:${port}`, "--create"], {
    env: { TIDEGATE_URL: mockApi.origin }
  })
  await listening.line((line) => line === `http://gateway/e/src_1 -> http://127.0.0.1:${port}/`)
  await listening.line((line) => line.startsWith("nothing listens at"))
  await listening.line((line) => line.startsWith("ready"))
  mockApi.deliver("1", "/\u001b[31mred")
  const line = await listening.line((line) => /^[\d:]{8} 502 /.test(line))
  expect(line).toMatch(
    /^[\d:]{8} 502 POST \/\ufffd\[31mred order\.paid \d+ ms ECONNREFUSED.* http:\S+\/dashboard\/events\/evt_1$/
  )
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
