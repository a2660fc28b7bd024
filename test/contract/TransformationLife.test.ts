import { createHash } from "node:crypto"
import { describe, expect } from "vitest"
import { it as transformingIt, handler, identity } from "./transforming.ts"

/** Code over time: its changes, its retries, the records of its executions, and its API. */

/** What all tables hold is compared: nobody else may write to them. */
const it = transformingIt.extend("settings", { scope: "file" }, {})

describe("Change of a transformation", () => {
  it("Changed code applies from the first request after the answer, and executions show their code", async ({
    executions,
    gateway,
    send,
    target,
    through
  }) => {
    const { source, transformation: made } = await through(handler('request.body = "0"; return request'))
    const hashes: Array<string> = []
    for (let i = 0; i < 5; i++) {
      target.reset()
      const code = handler(`request.body = "version ${i}"; return request`)
      const changed = await gateway.api("PATCH", `/transformations/${made.id}`, { code })
      expect(changed.code_hash).toBe(createHash("sha256").update(code).digest("hex"))
      hashes.unshift(changed.code_hash)
      await send(source)
      expect((await target.next())[0]!.body.toString()).toBe(`version ${i}`)
    }
    expect((await executions(made)).map(({ code_hash }) => code_hash)).toEqual(hashes)
  })

  it("A change of only the variables applies from the next request on", async ({ gateway, send, target, through }) => {
    const { source, transformation: made } = await through(handler("request.body = process.env.V; return request"), {
      env: { V: "one" }
    })
    await send(source)
    expect((await target.next())[0]!.body.toString()).toBe("one")
    target.reset()
    await gateway.api("PATCH", `/transformations/${made.id}`, { env: { V: "two" } })
    await send(source)
    expect((await target.next())[0]!.body.toString()).toBe("two")
    const [row] = await gateway.sql("select row_to_json(t)::text as row from transformations t where id = $1", [
      made.id
    ])
    expect(row.row).not.toContain("two")
  })

  it("A transformation that is removed from the rules does not run anymore", async ({
    gateway,
    send,
    target,
    through
  }) => {
    const { connection, source } = await through(handler('request.body = "made"; return request'))
    await gateway.api("PATCH", `/connections/${connection.id}`, { rules: [] })
    await send(source, { body: '"as it came"' })
    expect((await target.next())[0]!.body.toString()).toBe('"as it came"')
  })
})

describe("Retries of transformed events", () => {
  it("A retry by hand sends the transformed payload, whatever the code is now", async ({
    executions,
    gateway,
    send,
    target,
    through
  }) => {
    const { source, transformation: made } = await through(
      handler(
        'request.body = { at: Math.random() }; request.headers["x-made"] = "1"; request.path = "/made"; return request'
      )
    )
    const { events } = await gateway.traced(await send(source))
    const [first] = await target.next()
    await gateway.eventually("the event is successful", async () => {
      const event = await gateway.api("GET", `/events/${events[0]!.id}`)
      return event.status === "SUCCESSFUL" ? event : null
    })
    await gateway.api("PATCH", `/transformations/${made.id}`, { code: handler('throw new Error("not any more")') })
    const { replay_event_id } = await gateway.api("POST", `/events/${events[0]!.id}/retry`)
    const [, second] = await target.next(2)
    expect(second!.body.equals(first!.body)).toBe(true)
    expect([second!.url, second!.headers["x-made"]]).toEqual(["/made", "1"])
    expect(second!.headers["x-gateway-event-id"]).toBe(replay_event_id)
    expect((await executions(made)).length).toBe(1)
    const retried = await gateway.api("GET", `/events/${replay_event_id}`)
    expect(retried.data?.request).toMatchObject({ path: "/made", body: JSON.parse(first!.body.toString()) })
  })

  it("An event without its transformed payload cannot be retried", async ({ gateway, send, target, through }) => {
    const { source } = await through(handler('request.body = "made"; return request'))
    const id = await send(source)
    const { events } = await gateway.traced(id)
    await target.next()
    await gateway.eventually("the event is successful", async () => {
      const event = await gateway.api("GET", `/events/${events[0]!.id}`)
      return event.status === "SUCCESSFUL" ? event : null
    })
    // As retention does.
    await gateway.sql("delete from event_data where request_id = $1", [id])
    const { body, status } = await gateway.call("POST", `/events/${events[0]!.id}/retry`)
    expect([status, body.code]).toEqual([409, "PAYLOAD_UNAVAILABLE"])
    expect(target.received.length).toBe(1)
  })

  it("An automatic retry sends the transformed payload", async ({ send, target, through }) => {
    const { source } = await through(handler('request.body = "made " + Math.random(); return request'), {
      rules: [{ type: "retry", strategy: "linear", count: 1, interval: 1_000 }]
    })
    let refused = false
    target.reply = (response) => {
      response.writeHead(refused ? 200 : 500).end()
      refused = true
    }
    await send(source)
    const [first, second] = await target.next(2)
    expect(first!.body.toString()).toMatch(/^made 0\./)
    expect(second!.body.equals(first!.body)).toBe(true)
  })
})

describe("Records of executions", () => {
  it("An execution is shown in the trace, the timeline, the list and its own record", async ({
    executions,
    gateway,
    send,
    target,
    through
  }) => {
    const {
      connection,
      source,
      transformation: made
    } = await through(handler('console.info("seen"); request.body = { b: request.body.a }; return request'))
    const sentAt = performance.now()
    const id = await send(source, { body: '{"a":[1,2]}' })
    await target.next()
    const trace = await gateway.eventually("the attempt is shown", async () => {
      const trace = await gateway.traced(id)
      return trace.counts.attempts === 1 ? trace : null
    })
    expect(trace.counts).toEqual({
      events: 1,
      ignored_events: 0,
      attempts: 1,
      skipped_connections: 0,
      workflow_runs: 0,
      transformations: 1,
      proxy_exchanges: 0
    })
    const event = trace.events[0]!
    expect(trace.transformations_by_event_id[event.id]).toEqual(trace.transformations)
    expect(trace.timeline.map((item) => item.kind)).toEqual(["request", "transformation", "event", "attempt"])
    const item = trace.timeline[1]!
    expect(item).toMatchObject({
      label: "Transformed",
      status: "SUCCESSFUL",
      event_id: event.id,
      connection_id: connection.id
    })

    const listed = (await executions(made))[0]!
    expect(listed).toMatchObject({
      id: item.transformation_execution_id,
      event_id: event.id,
      runtime: "js-v1",
      error_code: null,
      log_level: "info",
      logs: [{ type: "info", message: "seen" }],
      transformed_event_data_id: event.event_data_id
    })
    expect(listed.stats.duration_ms).toBeGreaterThan(0)
    // Milliseconds: no more than have passed here.
    expect(listed.stats.duration_ms).toBeLessThan(performance.now() - sentAt)
    expect(listed).not.toHaveProperty("original_event_data")
    const detail = await gateway.api("GET", `/transformations/${made.id}/executions/${listed.id}`)
    expect(detail.original_event_data).toMatchObject({ body: { a: [1, 2] } })
    expect(detail.transformed_event_data).toMatchObject({ body: { b: [1, 2] } })
    expect(detail).toEqual(trace.transformations[0])
    const { data } = await gateway.api("GET", `/events/${event.id}`)
    expect(data?.request.body).toEqual({ b: [1, 2] })
  })

  it("Counts of executions and connections are returned on request", async ({ gateway, send, through }) => {
    const {
      connection,
      source,
      transformation: made
    } = await through(handler('if (request.body.fail) throw new Error("asked to"); return request'))
    for (const fail of [false, true, false])
      await gateway.traced(await send(source, { body: JSON.stringify({ fail }) }))
    const listed = async (query: string) =>
      (await gateway.api("GET", `/transformations?id=${made.id}${query}`)).models[0]!
    expect(await listed("&include_counts=true")).toMatchObject({
      executions_24h_count: 3,
      executions_24h_successful_count: 2,
      executions_24h_failed_count: 1,
      connections_count: 1
    })
    expect((await listed("&include_metrics=true")).executions_24h_successful_bins.at(-1)).toBe(2)
    expect(await listed("")).toMatchObject({ executions_24h_count: 0, connections_count: 0 })
    const filtered = await gateway.api("GET", `/transformations/${made.id}/executions?log_level=fatal`)
    expect(filtered.models.map(({ error_code }) => error_code)).toEqual(["RUNTIME_ERROR"])
    await gateway.api("DELETE", `/connections/${connection.id}`)
    expect((await listed("&include_counts=true")).connections_count).toBe(0)
  })
})

describe("Transformation API", () => {
  it("A test of code returns its result for a sample and stores nothing", async ({ gateway }) => {
    // What the tests before have sent may still be on its way.
    await gateway.settled()
    const before = await gateway.state()
    const run = await gateway.api("POST", "/transformations/run", {
      code: handler('console.log("hello"); request.body.tenant = process.env.T; return request'),
      env: { T: "acme" },
      request: {
        headers: { "Content-Type": "application/json" },
        body: { a: 1 },
        query: { q: "1" },
        path: "/x",
        method: "PUT"
      }
    })
    expect(run).toMatchObject({
      runtime: "js-v1",
      console: ["hello"],
      log_level: "info",
      error: null,
      request: { body: { a: 1, tenant: "acme" }, query: { q: "1" }, path: "/x", method: "PUT" }
    })
    const failed = await gateway.api("PUT", "/transformations/run", { code: handler('\nthrow new TypeError("no")') })
    expect(failed).toMatchObject({
      log_level: "error",
      request: null,
      error: { name: "TypeError", message: "no", line: 3 }
    })
    expect(await gateway.state()).toEqual(before)
  })

  it("A stored transformation can be tested by its id with its stored variables", async ({
    executions,
    gateway,
    transformation
  }) => {
    const made = await transformation(handler("request.body = process.env.A; return request"), { A: "stored" })
    const run = await gateway.api("POST", "/transformations/run", { transformation_id: made.id, request: {} })
    expect([run.transformation_id, run.request?.body]).toEqual([made.id, "stored"])
    expect(await executions(made)).toEqual([])
    expect((await gateway.call("POST", "/transformations/run", { transformation_id: "trs_nowhere" })).status).toBe(404)
    expect((await gateway.call("POST", "/transformations/run", {})).status).toBe(400)
  })

  it("Code that does not parse is refused everywhere with its line", async ({ gateway, target }) => {
    const broken = "const a = 1\nconst b = ;\n"
    const before = await gateway.state(["transformations", "connections"])
    const source = await gateway.source()
    const destination = await gateway.destination({ url: target.origin })
    const calls = [
      await gateway.call("POST", "/transformations", { name: gateway.name("t"), code: broken }),
      await gateway.call("POST", "/transformations/run", { code: broken }),
      await gateway.call("POST", "/connections", {
        name: gateway.name("connection"),
        source_id: source.id,
        destination_id: destination.id,
        rules: [{ type: "transform", transformation: { name: gateway.name("t"), code: broken } }]
      })
    ]
    for (const { body, status } of calls) {
      expect([status, body.code]).toEqual([400, "TRANSFORMATION_INVALID"])
      expect(body.data.line).toBe(2)
    }
    expect(await gateway.state(["transformations", "connections"])).toEqual(before)
  })

  it("A transformation inside a rule is stored by its name, and the rule refers to its id", async ({
    gateway,
    send,
    target
  }) => {
    const name = gateway.name("inline")
    const rule = (code: string, env?: Record<string, string>) => ({
      type: "transform" as const,
      transformation: { name, code, ...(env === undefined ? {} : { env }) }
    })
    const { connection, source } = await gateway.route(target, {
      rules: [rule(handler("request.body = process.env.V; return request"), { V: "inline" })]
    })
    const { transformation_id, ...rest } = connection.rules[0] as {
      readonly type: string
      readonly transformation_id: string
    }
    expect(rest).toEqual({ type: "transform" })
    expect(await gateway.api("GET", `/transformations/${transformation_id}`)).toMatchObject({
      name,
      env: { V: "inline" }
    })
    await send(source)
    expect((await target.next())[0]!.body.toString()).toBe("inline")

    target.reset()
    const changed = await gateway.api("PATCH", `/connections/${connection.id}`, {
      rules: [rule(handler('request.body = "changed"; return request'))]
    })
    expect(changed.rules).toEqual([{ type: "transform", transformation_id }])
    await send(source)
    expect((await target.next())[0]!.body.toString()).toBe("changed")
  })

  it("A used transformation cannot be deleted, and an unknown one cannot be used", async ({ gateway, through }) => {
    const { connection, destination, source, transformation: made } = await through(identity)
    const { body, status } = await gateway.call("DELETE", `/transformations/${made.id}`)
    expect([status, body.code]).toEqual([409, "RESOURCE_IN_USE"])
    expect(body.data.connections).toEqual([connection.id])
    await gateway.api("PATCH", `/connections/${connection.id}`, { rules: [] })
    expect(await gateway.api("DELETE", `/transformations/${made.id}`)).toEqual({ id: made.id, deleted: true })
    expect((await gateway.call("GET", `/transformations/${made.id}`)).status).toBe(404)
    const again = await gateway.call("POST", "/connections", {
      name: gateway.name("connection"),
      source_id: source.id,
      destination_id: destination.id,
      rules: [{ type: "transform", transformation_id: made.id }]
    })
    expect([again.status, again.body.code]).toEqual([404, "NOT_FOUND"])
    // Its name is free again.
    await gateway.api("POST", "/transformations", { name: made.name, code: identity })
  })
})
