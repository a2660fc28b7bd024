import { describe, expect } from "vitest"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"
import { begin, edge } from "./workflowRuns.ts"

/** Numbers that JavaScript would round, on every way through the gateway: with all their digits. */

const json = [["content-type", "application/json"]] as const
const ids = ["12345678901234567781", "12345678901234567782", "12345678901234567783"] as const
const [first, id, last] = ids

const it = gatewayIt
  /** A call of the control API, of text to text: nothing on the way reads its numbers. */
  .extend(
    "textOf",
    ({ gateway }) =>
      async (method: string, path: string, body?: string, key = gateway.key): Promise<string> => {
        const answer = await request(gateway.port, {
          method,
          path: `/v1${path}`,
          headers: [...json, ["authorization", `Bearer ${key}`]],
          ...(body === undefined ? {} : { body })
        })
        expect(answer.status, `${method} ${path}: ${answer.body}`).toBeLessThan(202)
        return answer.body
      }
  )
  .extend("send", ({ gateway }) => async (source: { readonly id: string }, body: string): Promise<string> => {
    const answer = await request(gateway.port, { headers: json, path: `/e/${source.id}`, body })
    expect(answer.status).toBe(200)
    return answer.body
  })
  .extend(
    "accept",
    ({ send }) =>
      async (source: { readonly id: string }, body: string): Promise<string> =>
        String(JSON.parse(await send(source, body)).request_id)
  )
  /** A connection with these rules, written as text. */
  .extend("ruled", ({ gateway, target, textOf }) => async (rules: string) => {
    const source = await gateway.source()
    const destination = await gateway.destination({ url: target.origin })
    const connection = await textOf(
      "POST",
      "/connections",
      `{"name":"${gateway.name("connection")}","source_id":"${source.id}","destination_id":"${destination.id}","rules":${rules}}`
    )
    return { source, connection }
  })

describe("Ids beyond 2^53", () => {
  it.for([
    ["by a field", ',"include_fields":["body.id"]'],
    ["as a whole", ""]
  ] as const)(
    "Requests with different ids beyond 2^53 are not deduplicated %s",
    async ([, fields], { accept, gateway, ruled, target }) => {
      const { source } = await ruled(`[{"type":"deduplicate","window":60000${fields}}]`)
      const fates: Array<number> = []
      for (const one of [...ids, id]) {
        const { events } = await gateway.traced(await accept(source, `{"id":${one}}`))
        fates.push(events.length)
      }
      expect(fates).toEqual([1, 1, 1, 0])
      const bodies = (await target.next(3)).map(({ body }) => body.toString())
      expect(bodies.toSorted()).toEqual(ids.map((one) => `{"id":${one}}`))
    }
  )

  it("A filter compares all digits of an id beyond 2^53 and is read back with them", async ({
    accept,
    gateway,
    ruled,
    textOf
  }) => {
    const rule = `{"type":"filter","body":{"id":{"$gt":${first},"$in":[${id},"${last}"]},"rate":{"$neq":0.1}}}`
    const { connection, source } = await ruled(`[${rule}]`)
    expect(connection).toContain(`"$gt":${first}`)
    const read = await textOf("GET", `/connections/${JSON.parse(connection).id}`)
    expect(read).toContain(`[${id},"${last}"]`)
    // Written back as it was read, it is the same.
    await textOf(
      "PATCH",
      `/connections/${JSON.parse(connection).id}`,
      `{"rules":${/"rules":(\[.*?\}\])/.exec(read)![1]}}`
    )
    for (const [one, rate, passes] of [
      [first, "0.1000000000000000055", false],
      [id, "0.1000000000000000055", true],
      [last, "0.1000000000000000055", true],
      [id, "0.1", false],
      ["12345678901234567784", "1", false]
    ] as const) {
      const { events } = await gateway.traced(await accept(source, `{"id":${one},"rate":${rate}}`))
      expect([one, rate, events.length]).toEqual([one, rate, passes ? 1 : 0])
    }
  })

  it("An id beyond 2^53 is shown unchanged in requests, events, fixtures and filters", async ({
    accept,
    gateway,
    ruled,
    textOf
  }) => {
    const body = `{"id":${id},"rate":0.1000000000000000055,"far":1e+400}`
    const { source } = await ruled("[]")
    const requestId = await accept(source, body)
    const { events } = await gateway.traced(requestId)
    expect(await textOf("GET", `/requests/${requestId}`)).toContain(`"body":${body}`)
    expect(await textOf("GET", `/events/${events[0]!.id}`)).toContain(`"body":${body}`)
    const fixture = await textOf(
      "POST",
      "/request-fixtures",
      `{"request_id":"${requestId}","name":"${gateway.name("fixture")}"}`
    )
    expect(await textOf("GET", `/request-fixtures/${JSON.parse(fixture).id}`)).toContain(`"body":${body}`)
    const owner = await gateway.session("owner")
    const name = gateway.name("filter")
    const filter = await textOf("POST", "/filters", `{"name":"${name}","conditions":{"body":{"id":${id}}}}`, owner)
    const path = `/filters/${JSON.parse(filter).id}`
    expect(await textOf("GET", path, undefined, owner)).toContain(`{"id":${id}}`)
    const tested = await textOf(
      "POST",
      "/filters/test",
      `{"conditions":{"body":{"id":${id}}},"request":{"body":${body}}}`,
      owner
    )
    expect(tested).toContain('"matched":true')
    expect(tested).toContain(`"actual":${id}`)
  })

  it("An id beyond 2^53 is unchanged in a custom response", async ({ gateway, send }) => {
    const source = await gateway.source({
      custom_response: { content_type: "json", body: '{"id":{{body.id}},"text":"no {{body.id}}"}' }
    })
    expect(await send(source, `{"id":${id}}`)).toBe(`{"id":${id},"text":"no ${id}"}`)
  })

  it("An id beyond 2^53 passes unchanged through a workflow and is shown in its run", async ({
    gateway,
    target,
    textOf
  }) => {
    const destination = await gateway.destination({ url: target.origin })
    const { post, workflow } = await begin(
      gateway,
      [
        {
          id: "to_crm",
          kind: "destination",
          resource_id: destination.id,
          invocation_inputs: { body: { order: "{{trigger.body.id}}", text: "no {{trigger.body.id}}" } }
        }
      ],
      [edge(null, "to_crm")]
    )
    const run = await post({ body: `{"id":${id}}` })
    const [received] = await target.next()
    expect(received!.body.toString()).toContain(`"order":${id}`)
    expect(received!.body.toString()).toContain(`"text":"no ${id}"`)
    const detail = await gateway.eventually("the run has ended", async () => {
      const text = await textOf("GET", `/workflows/${workflow.id}/runs/${run}?include_previews=true`)
      return JSON.parse(text).finished_at === null ? null : text
    })
    expect(detail).toContain(`"order":${id}`)
  })

  it("Workflows, settings and conditions that differ only in digits beyond 2^53 are different", async ({
    gateway,
    textOf
  }) => {
    const source = await gateway.source()
    const steps = (number: string) =>
      `[{"id":"large","kind":"filter","config":{"conditions":{"trigger":{"body":{"id":{"$gt":${number}}}}}}}]`
    const made = await textOf(
      "POST",
      "/workflows",
      `{"name":"${gateway.name("workflow")}","source_id":"${source.id}","steps":${steps(first)},
        "edges":[{"source_type":"trigger","source_step_id":null,"target_step_id":"large"}]}`
    )
    const path = `/workflows/${JSON.parse(made).id}`
    const same = await textOf("PATCH", path, `{"version":1,"steps":${steps(first)}}`)
    expect(JSON.parse(same).version).toBe(1)
    const other = await textOf("PATCH", path, `{"version":1,"steps":${steps(id)}}`)
    expect(JSON.parse(other).version).toBe(2)
    expect(await textOf("GET", path)).toContain(`"$gt":${id}`)

    const twice = await request(gateway.port, {
      path: "/v1/filters",
      headers: [...json, ["authorization", `Bearer ${await gateway.session("owner")}`]],
      body: `{"name":"${gateway.name("filter")}","conditions":{"body":{"id":${first}}},"body":{"id":${id}}}`
    })
    expect([twice.status, twice.body]).toEqual([400, expect.stringContaining("cannot be used together")])
  })

  it("A transformation keeps all digits of an id, and an unchanged body stays the same byte for byte", async ({
    accept,
    gateway,
    ruled,
    target
  }) => {
    const body = `{"id":${id}, "n":1}`
    const sent: Array<string> = []
    for (const [code, expected] of [
      ["return request", body],
      ["request.body.n = 2; return request", `{"id":${id},"n":2}`],
      ["request.body = { order: request.body.id }; return request", `{"order":${id}}`]
    ] as const) {
      const { id: transformation } = await gateway.api("POST", "/transformations", {
        name: gateway.name("transformation"),
        code: `addHandler("transform", (request) => { ${code} })`
      })
      const { source } = await ruled(`[{"type":"transform","transformation_id":"${transformation}"}]`)
      await accept(source, body)
      sent.push(expected)
      expect((await target.next(sent.length)).map((received) => received.body.toString())).toEqual(sent)
    }
  })
})

describe("Number with a large exponent", () => {
  it("A body with a huge exponent is text to filters and is delivered unchanged", async ({
    accept,
    gateway,
    ruled,
    target,
    textOf
  }) => {
    const body = '{"n":1e999999999}'
    const { source } = await ruled("[]")
    const requestId = await accept(source, body)
    await gateway.traced(requestId)
    expect((await target.next())[0]!.body.toString()).toBe(body)
    const shown = JSON.parse(await textOf("GET", `/requests/${requestId}`))
    expect(shown.data).toMatchObject({ encoding: "text", body, reason: expect.stringContaining("exponent") })
  })

  it("A write with a huge exponent is refused", async ({ gateway }) => {
    const answer = await request(gateway.port, {
      path: "/v1/filters",
      headers: [...json, ["authorization", `Bearer ${await gateway.session("owner")}`]],
      body: '{"name":"far","conditions":{"body":{"n":1e99999}}}'
    })
    expect(answer.status).toBe(400)
    expect(answer.body).toContain("exponent")
  })
})
