import { expect } from "vitest"
import { tcpTarget } from "../../packages/egress/test/targets.ts"
import {
  broker,
  calls,
  metadataAnswer,
  producedAnswer,
  writtenIn
} from "../../packages/foreign-databases/test/FakeKafka.ts"
import type { Config } from "@tidegate/connectors/Settings"
import type { Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import { allMethods, it as proxyingIt } from "./proxying.ts"
import { begin, edge } from "./workflowRuns.ts"

/** What leads back to the gateway ends, in depth and in breadth, and each refused request is stored with its cause. */

/** Fewer than usual, so that it is soon over. */
const descendants = 200

const it = proxyingIt.extend("settings", { scope: "file" }, () => ({
  TIDEGATE_LOOP_DESCENDANTS: String(descendants)
}))

const send = (port: number, id: string) => request(port, { path: `/e/${id}`, body: "{}" })

it("Two destinations that lead back to their source multiply a request only up to its loop budget", async ({
  gateway
}) => {
  const source = await gateway.source()
  for (const path of ["/a", "/b"]) {
    const back = await gateway.destination({ url: `${gateway.origin}/e/${source.id}${path}`, max_concurrency: 64 })
    await gateway.connection(source, back)
  }
  await send(gateway.port, source.id)
  await gateway.eventually("nothing comes back any more", async () => {
    const [{ pending }] = await gateway.sql("select count(*)::int as pending from deliveries")
    return pending === 0 ? true : null
  })
  const [{ accepted, causes, rejected }] = await gateway.sql(
    `select count(*) filter (where status = 'accepted')::int as accepted, count(*) filter (where status = 'rejected')::int as rejected,
      array_agg(distinct rejection_cause) filter (where status = 'rejected') as causes from requests where source_id = $1`,
    [source.id]
  )
  // The first one, and those that have come of it; what these have sent on is stored, too.
  expect([accepted, causes]).toEqual([1 + descendants, ["LOOP_DETECTED"]])
  expect(rejected).toBe(2 * accepted - descendants)
  const [attempt] = await gateway.sql(
    "select response_status from attempts where response_status <> 200 order by id desc limit 1"
  )
  expect(attempt.response_status).toBe(508)
})

it("A source that is its own upstream is called up to the maximum chain length", async ({ gateway, proxying }) => {
  const source = await proxying({ target_url: "http://127.0.0.1:1" })
  await gateway.api("PATCH", `/sources/${source.id}`, {
    config: {
      allowed_http_methods: [...allMethods],
      proxy: { enabled: true, target_url: `${gateway.origin}/e/${source.id}` }
    }
  })
  const answer = await send(gateway.port, source.id)
  expect([answer.status, JSON.parse(answer.body)]).toMatchObject([508, { code: "LOOP_DETECTED" }])
  const rows = await gateway.requests(source.id)
  expect(rows.map((row) => row.rejection_cause)).toEqual([...Array.from({ length: 11 }, () => null), "LOOP_DETECTED"])
})

/** A source whose requests go to a broker, and the messages of the broker to the source. The mark comes as brokers' subscribers pass it on. */
const throughBroker = async (gateway: Gateway, type: string, config: Config) => {
  const source = await gateway.source()
  await gateway.connection(
    source,
    await gateway.api("POST", "/destinations", { name: gateway.name("broker"), type, config })
  )
  return source
}

const comesBack = (port: number, id: string, mark: string | undefined) =>
  request(port, { path: `/e/${id}`, headers: mark === undefined ? [] : [["gateway-loop", mark]], body: "{}" })

const endsInDepth = async (gateway: Gateway, id: string) => {
  await send(gateway.port, id)
  const rows = await gateway.eventually("a request is refused", async () => {
    const all = await gateway.requests(id)
    return all.some((row) => row.status === "rejected") ? all : null
  })
  expect(rows.map((row) => row.rejection_cause)).toEqual([...Array.from({ length: 11 }, () => null), "LOOP_DETECTED"])
}

it("A loop through a topic of Pub/Sub ends by the mark in the attributes of its messages", async ({
  gateway,
  target
}) => {
  let id = ""
  target.reply = async (response, { body }) => {
    const { messages } = JSON.parse(body.toString()) as { messages: [{ attributes: Record<string, string> }] }
    await comesBack(gateway.port, id, messages[0].attributes["gateway-loop"])
    response.writeHead(200, { "content-type": "application/json" }).end('{"messageIds":["1"]}')
  }
  const config = { project_id: "my-shop", topic: "orders", endpoint: target.origin, auth_type: "NO_AUTH" }
  ;({ id } = await throughBroker(gateway, "GCP_PUBSUB", config))
  await endsInDepth(gateway, id)
})

it("A loop through a topic of Kafka ends by the mark in the headers of its records", async ({ gateway }) => {
  let id = ""
  await using kafka = await tcpTarget(
    broker((call, { localPort }) => {
      if (call.key === calls.metadata) {
        return metadataAnswer({ brokers: [[1, "127.0.0.1", localPort!]], leaders: [1] })
      }
      if (call.key !== calls.produce) return undefined
      const { batch, partition } = writtenIn(call)
      // The header's name, the length of its value, and the value.
      const mark = /gateway-loop[^]{2}(tidegate;r=req_\w{26};n=\d+;s=[\w-]{22})/.exec(batch.toString("latin1"))?.[1]
      // One that is not answered is missing among the requests.
      comesBack(gateway.port, id, mark).catch(() => {})
      return producedAnswer(partition)
    })
  )
  const servers = { bootstrap_servers: `127.0.0.1:${kafka.port}`, topic: "orders", tls_mode: "disable" }
  ;({ id } = await throughBroker(gateway, "KAFKA", { ...servers, auth_type: "NO_AUTH" }))
  await endsInDepth(gateway, id)
})

it("A transformation that removes the loop mark does not restart the chain", async ({ gateway }) => {
  const source = await gateway.source()
  const back = await gateway.destination({ url: `${gateway.origin}/e/${source.id}` })
  const { id } = await gateway.api("POST", "/transformations", {
    name: gateway.name("forgetful"),
    code: `addHandler("transform", (request) => {
      delete request.headers["gateway-loop"]
      return { ...request, headers: { "content-type": "application/json" }, body: { again: true } }
    })`
  })
  await gateway.connection(source, back, [{ type: "transformation", transformation_id: id }])
  await send(gateway.port, source.id)
  const rows = await gateway.eventually("a request is refused", async () => {
    const all = await gateway.requests(source.id)
    return all.some((row) => row.status === "rejected") ? all : null
  })
  expect(rows.map((row) => row.rejection_cause)).toEqual([...Array.from({ length: 11 }, () => null), "LOOP_DETECTED"])
})

it("A workflow step that replays its own request continues the request's chain", async ({ gateway }) => {
  const saved = await gateway.call("POST", "/actions", {
    name: gateway.name("replays"),
    provider_key: "http",
    action_key: "request",
    auth_mode: "bearer",
    credentials: { token: gateway.key },
    inputs: { method: "POST", url: `${gateway.origin}/v1/requests` }
  })
  const { post, source, workflow } = await begin(
    gateway,
    [
      {
        id: "again",
        kind: "action",
        resource_id: saved.body.id,
        invocation_inputs: {
          method: "POST",
          url: `${gateway.origin}/v1/requests/{{trigger.request_id}}/retry`,
          body: {}
        }
      }
    ],
    [edge(null, "again")]
  )
  await post()
  const last = await gateway.eventually("a step is refused", async () => {
    const [row] = await gateway.sql("select * from workflow_runs where workflow_id = $1 and status = 'failed'", [
      workflow.id
    ])
    return row
  })
  expect(last.error_message).toContain("508")
  expect((await gateway.requests(source.id)).length).toBe(11)
})

it("A workflow step that sends test requests to its own source continues the request's chain", async ({ gateway }) => {
  const saved = await gateway.call("POST", "/actions", {
    name: gateway.name("tests"),
    provider_key: "http",
    action_key: "request",
    auth_mode: "bearer",
    credentials: { token: gateway.key },
    inputs: { method: "POST", url: `${gateway.origin}/v1/sources` }
  })
  const { post, source, workflow } = await begin(
    gateway,
    [
      {
        id: "again",
        kind: "action",
        resource_id: saved.body.id,
        invocation_inputs: {
          method: "POST",
          url: `${gateway.origin}/v1/sources/{{trigger.source.id}}/test-request`,
          body: {}
        }
      }
    ],
    [edge(null, "again")]
  )
  await post()
  const last = await gateway.eventually("a step is refused", async () => {
    const [row] = await gateway.sql("select * from workflow_runs where workflow_id = $1 and status = 'failed'", [
      workflow.id
    ])
    return row
  })
  expect(last.error_message).toContain("508")
  expect((await gateway.requests(source.id)).length).toBe(11)
})

it("Workflow steps that publish to their own source for each item are limited in number", async ({ gateway }) => {
  const { post, source, workflow } = await begin(
    gateway,
    [
      {
        id: "spread",
        kind: "action",
        action: { provider_key: "gateway", action_key: "publish" },
        invocation_inputs: { source_id: "{{source.id}}", body: { items: "{{trigger.body.items}}" } },
        config: { for_each: "{{trigger.body.items}}" }
      }
    ],
    [edge(null, "spread")]
  )
  await post({ body: JSON.stringify({ items: Array.from({ length: 30 }, (_, i) => i) }) })
  await gateway.eventually("all runs have ended", async () => {
    const [{ left }] = await gateway.sql("select count(*)::int as left from workflow_queue")
    return left === 0 ? true : null
  })
  expect((await gateway.requests(source.id)).length).toBe(1 + descendants)
  const [{ causes }] = await gateway.sql(
    "select array_agg(distinct error_code) as causes from workflow_runs where workflow_id = $1 and status = 'failed'",
    [workflow.id]
  )
  expect(causes).toEqual(["LOOP_DETECTED"])
})
