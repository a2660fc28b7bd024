import { expect } from "vitest"
import { rowOf } from "../../packages/connectors/test/rows/Rows.ts"
import { configAt } from "../support/Mocks.ts"
import { noRedis, Redis } from "../support/Redis.ts"
import { answering, it as base } from "./apiStandIn.ts"

/** Test deliveries to destinations before they are stored or changed. */

const it = base
  .extend("redis", { scope: "file" }, async ({}, { onCleanup }) => {
    const redis = await Redis.start()
    onCleanup(() => redis.stop())
    return redis
  })
  .extend("test", ({ gateway }) => async (body: object, key?: string) => {
    const { body: answer, status } = await gateway.call("POST", "/destinations/test", body, key)
    return { status, answer }
  })

/** A number that JavaScript does not hold. */
const exact = (JSON as unknown as { readonly rawJSON: (text: string) => unknown }).rawJSON("12345678901234567890")

const faults = (answer: { readonly data: { readonly fields: ReadonlyArray<{ readonly path: string }> } }) =>
  answer.data.fields.map(({ path }) => path)

it("A test delivery sends the sample with the new settings, answers with the response, and stores nothing", async ({
  gateway,
  target,
  test
}) => {
  const before = await gateway.api("GET", "/destinations")
  target.reply = (response) =>
    void response.writeHead(201, { "content-type": "text/plain", "x-kept": "yes" }).end("you sent s3cret-value")
  const config = {
    url: `${target.origin}/hooks`,
    auth_type: "CUSTOM_HEADER",
    auth: { header_name: "x-token", value: "s3cret-value" }
  }
  const { answer, status } = await test({
    destination: { name: "new", type: "HTTP", config },
    request: { path: "/orders", query: "a=1", headers: { "X-Sent": "1" }, body: { id: exact } }
  })
  expect([status, answer]).toEqual([
    200,
    {
      successful: true,
      error_code: null,
      error_message: null,
      response_status: 201,
      response_headers: expect.objectContaining({ "x-kept": "yes" }),
      body: "you sent ****alue",
      body_encoding: "text",
      body_truncated: false,
      requested_url: `${target.origin}/hooks/orders?a=1`,
      http_method: "POST",
      duration_ms: expect.any(Number)
    }
  ])
  const [received, ...more] = target.received
  expect(more).toEqual([])
  expect([received!.url, received!.body.toString()]).toEqual(["/hooks/orders?a=1", '{"id":12345678901234567890}'])
  expect(received!.headers).toMatchObject({
    "x-token": "s3cret-value",
    "x-sent": "1",
    "content-type": "application/json"
  })
  expect(await gateway.api("GET", "/destinations")).toEqual(before)
  const attempts = await gateway.api("GET", "/attempts")
  expect(attempts.models).toEqual([])
})

it("A refused private address, a wrong secret and a target that is away are failures with the code of an attempt", async ({
  target,
  test
}) => {
  target.reply = (response) => void response.writeHead(401).end("no")
  const failed = async (url: string) => {
    const { answer, status } = await test({ destination: { name: "new", config: { url } } })
    expect(answer.error_message).toMatch(/\w{3,} \w+/)
    return [status, answer.successful, answer.error_code, answer.response_status, answer.body]
  }
  expect(await failed("http://169.254.169.254/latest/meta-data")).toEqual([
    200,
    false,
    "TARGET_NOT_ALLOWED",
    null,
    null
  ])
  expect(await failed(target.origin)).toEqual([200, false, "BAD_RESPONSE", 401, "no"])
  expect(await failed("http://127.0.0.1:1/")).toEqual([200, false, "CONNECTION_REFUSED", null, null])
})

it("A chat gets the message, and its refusal is a failure", async ({ api, calls, test }) => {
  const config = configAt("CHAT_WEBHOOK", api.origin)
  const destination = { name: "chat", type: "CHAT_WEBHOOK", config }
  api.reply = answering(rowOf("CHAT_WEBHOOK").accepted)
  expect((await test({ destination })).answer).toMatchObject({ successful: true, response_status: 200 })
  expect(calls()[0]!.body.toString()).toContain("This is a test delivery")
  api.reply = answering({ status: 404, body: "no_service" })
  expect((await test({ destination })).answer).toMatchObject({ successful: false, response_status: 404 })
})

it.skipIf(noRedis !== null)("A Redis server gets the entry, and a wrong password is said", async ({ redis, test }) => {
  const { password, port } = new URL(redis.url)
  const destination = (secret: string) => ({
    name: "stream",
    type: "REDIS_STREAM",
    config: {
      host: "127.0.0.1",
      port: Number(port),
      stream: "tested",
      tls_mode: "disable",
      auth_type: "DATABASE_PASSWORD",
      auth: { username: "default", password: secret }
    }
  })
  const right = await test({ destination: destination(decodeURIComponent(password)) })
  expect(right.answer).toMatchObject({ successful: true, error_code: null, error_message: null })
  const wrong = await test({ destination: destination("another") })
  expect(wrong.answer).toMatchObject({ successful: false, error_code: "AUTH_REJECTED", response_status: null })
})

it("A change of a stored destination is tested with its stored secret, which goes nowhere else", async ({
  gateway,
  startTarget,
  target,
  test
}) => {
  const auth = { header_name: "x-token", value: "known-to-the-api" }
  const { id } = await gateway.destination({ url: target.origin, auth_type: "CUSTOM_HEADER", auth })
  const tested = (config: object, key?: string) => test({ destination_id: id, destination: { config } }, key)
  expect((await tested({ http_method: "PUT" })).answer).toMatchObject({ successful: true, http_method: "PUT" })
  expect((await tested({ auth: { ...auth, value: "****-api" } })).answer.successful).toBe(true)
  expect(target.received.map(({ headers, method }) => [method, headers["x-token"]])).toEqual([
    ["PUT", "known-to-the-api"],
    ["POST", "known-to-the-api"]
  ])
  const other = await startTarget()
  const moved = await tested({ url: other.origin })
  expect([moved.status, faults(moved.answer), other.received]).toEqual([400, ["destination.config.auth"], []])
  const stored = await gateway.api("GET", `/destinations/${id}`)
  expect(stored.config).toMatchObject({ http_method: null })

  const stranger = await gateway.forTeam()
  expect((await tested({}, stranger.key)).status).toBe(404)
  expect((await test({ destination_id: "dst_00000000000000000000000000" })).status).toBe(404)
  expect(target.received.length).toBe(2)
})

it("Wrong settings are reported at their members, and types whose clients fetch events are refused", async ({
  gateway,
  test
}) => {
  const wrong = await test({ destination: { name: "new", config: { url: "ftp://example.com", rate_limit: 0 } } })
  expect([wrong.status, faults(wrong.answer).toSorted()]).toEqual([
    400,
    ["destination.config.rate_limit", "destination.config.url"]
  ])
  const [missing, unknown] = [
    await test({}),
    await test({ destination: { name: "new", config: { url: "https://example.com", ulr: "x" } } })
  ]
  expect([missing.status, faults(missing.answer)]).toEqual([400, ["destination"]])
  expect([unknown.status, faults(unknown.answer)]).toEqual([400, ["destination.config.ulr"]])
  for (const destination of [
    { name: "new", type: "PULL" },
    { name: "new", type: "CLI" }
  ]) {
    const refused = await test({ destination })
    expect([refused.status, faults(refused.answer)]).toEqual([400, ["destination.type"]])
  }
  const reader = { name: gateway.name("reader"), scopes: ["control:read"] }
  const made = await gateway.call("POST", "/project-api-keys", reader, await gateway.session("owner"))
  const read = await test(
    { destination: { name: "new", config: { url: "https://example.com" } } },
    made.body.data.api_key
  )
  expect([read.status, read.answer.code]).toEqual([403, "INSUFFICIENT_SCOPE"])
})

it("A team makes four test deliveries at the same time, thirty a minute, and another team is not held up", async ({
  gateway,
  startTarget,
  target
}) => {
  const [own, other] = [await gateway.forTeam(), await gateway.forTeam()]
  const slow = await startTarget()
  const release: Array<() => void> = []
  slow.reply = (response) => void release.push(() => response.end("ok"))
  const to = (url: string) => ({ destination: { name: "new", config: { url } } })
  const tested = (url: string, key: string) => gateway.call("POST", "/destinations/test", to(url), key)
  const beside = async (): Promise<void> => {
    await gateway.eventually("all four are under way", async () => (release.length === 4 ? true : null))
    expect((await tested(target.origin, own.key)).status).toBe(429)
    expect((await tested(target.origin, other.key)).body.successful).toBe(true)
    for (const end of release) end()
  }
  const held = Array.from({ length: 4 }, () => tested(slow.origin, own.key))
  const [answers] = await Promise.all([Promise.all(held), beside()])
  expect(answers.map(({ body }) => body.successful)).toEqual([true, true, true, true])

  const statuses: Array<number> = []
  // One is allowed again every two seconds: they are fewer than the calls that are made meanwhile.
  while (statuses.length < 200 && statuses.at(-1) !== 429) {
    statuses.push((await tested(target.origin, own.key)).status)
  }
  expect(statuses.at(-1)).toBe(429)
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(25)
})
