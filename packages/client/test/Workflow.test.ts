import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { compileOrdering } from "../../rules/src/Ordering.ts"
import { formatter } from "../../actions/src/providers/Formatter.ts"
import { formatterOutputs } from "../src/workflow/FormatterOutputs.ts"
import { type Flow, or, text, workflow } from "../src/workflow/index.ts"

interface Order {
  readonly status: "paid" | "open"
  readonly total: number
  readonly note?: string
  readonly customer: { readonly name: string; readonly "e mail": string }
  readonly lines: ReadonlyArray<{ readonly sku: string; readonly amount: number }>
}

const order = () => workflow("Paid order").on<Order>("src_1")

describe("Builder of workflows", () => {
  it("A call of a workflow has an input, and its result is its output", () => {
    const built = order()
      .workflow("ship", "wfl_1", ({ trigger }) => ({ total: trigger.body.total }), { config: { hours: 2 } })
      .destination("to_crm", "des_1", ({ steps }) => ({ body: steps.ship.output.result.parcel }))
      .toJSON()
    expect(built.steps[0]).toEqual({
      id: "ship",
      kind: "workflow",
      resource_id: "wfl_1",
      invocation_inputs: { input: { total: "{{trigger.body.total}}" } },
      config: { hours: 2 }
    })
    expect(built.steps[1]?.invocation_inputs).toEqual({ body: "{{steps.ship.output.result.parcel}}" })
  })

  it("A wait for a request names the source and the filter, and its output is the request", () => {
    const built = order()
      .waitForEvent("paid", "src_2", {
        amount: 2,
        unit: "days",
        filter: ({ trigger }) => ({ body: { customer: trigger.body.customer.name, state: "paid" } })
      })
      .destination("to_crm", "des_1", ({ steps }) => ({ body: steps.paid.output.body.total }))
      .after({ step: "paid", port: "timed_out" })
      .destination("alarm", "des_2")
      .toJSON()
    expect(built.steps[0]).toEqual({
      id: "paid",
      kind: "wait",
      resource_id: "src_2",
      config: { for: "event", amount: 2, unit: "days" },
      invocation_inputs: { filter: { body: { customer: "{{trigger.body.customer.name}}", state: "paid" } } }
    })
    expect(built.steps[1]?.invocation_inputs).toEqual({ body: "{{steps.paid.output.body.total}}" })
    expect(built.edges[2]).toMatchObject({ source_step_id: "paid", source_port: "timed_out", target_step_id: "alarm" })
  })

  it("An approval that earlier steps ask for has its links, who decided, and its ports", () => {
    const built = order()
      .destination("asking", "des_1", ({ run, trigger }) => ({
        body: {
          text: text`${trigger.body.total}: ${run.waits.approval.approve_url} ${run.waits["pay-ed"].callback_url}`
        }
      }))
      .waitForApproval("approval", { amount: 2, unit: "days" }, { name: "Approval" })
      .destination("order", "des_2", ({ steps }) => ({ body: { by: steps.approval.output.decided_by_name } }))
      .waitForCallback("pay-ed", { amount: 1, unit: "hours" })
      .destination("ship", "des_2", ({ steps }) => ({ body: steps["pay-ed"].output.body.parcel }))
      .after({ step: "approval", port: "rejected" }, { step: "approval", port: "timed_out" })
      .destination("refuse", "des_2")
      .toJSON()
    expect(built.steps.map(({ invocation_inputs }) => invocation_inputs)).toEqual([
      {
        body: { text: "{{trigger.body.total}}: {{run.waits.approval.approve_url}} {{run.waits.pay-ed.callback_url}}" }
      },
      undefined,
      { body: { by: "{{steps.approval.output.decided_by_name}}" } },
      undefined,
      { body: "{{steps.pay-ed.output.body.parcel}}" },
      undefined
    ])
    expect([built.steps[1], built.steps[3]]).toEqual([
      { id: "approval", kind: "wait", name: "Approval", config: { for: "approval", amount: 2, unit: "days" } },
      { id: "pay-ed", kind: "wait", config: { for: "callback", amount: 1, unit: "hours" } }
    ])
    expect(built.edges.slice(-2).map((edge) => [edge.source_port, edge.target_step_id])).toEqual([
      ["rejected", "refuse"],
      ["timed_out", "refuse"]
    ])
  })

  it("What a refused call was answered can be read behind its error", () => {
    const built = order()
      .destination("to_crm", "des_1")
      .onError((path) =>
        path.destination("alarm", "des_2", ({ steps }) => ({ body: steps.to_crm.error.response.body.message }))
      )
      .toJSON()
    expect(built.steps[1]?.invocation_inputs).toEqual({ body: "{{steps.to_crm.error.response.body.message}}" })
  })

  it("A built workflow is the JSON that one writes by hand", () => {
    const built = order()
      .filter("only_paid", { body: { status: "paid" } }, { name: "Paid only" })
      .action("fmt_name", "formatter/text.titlecase", ({ trigger }) => ({ input: trigger.body.customer.name }))
      .destination(
        "to_crm",
        "des_1",
        ({ steps, trigger }) => ({
          body: {
            name: steps.fmt_name.output.result,
            total: trigger.body.total,
            text: text`${trigger.body.customer["e mail"]} has ordered ${trigger.body.lines().sku}, first ${trigger.body.lines(0).sku}`,
            note: or(trigger.body.note, "none")
          }
        }),
        { config: { retry: { count: 3 } } }
      )
    expect(JSON.parse(JSON.stringify(built))).toEqual({
      name: "Paid order",
      source_id: "src_1",
      steps: [
        { id: "only_paid", kind: "filter", name: "Paid only", config: { conditions: { body: { status: "paid" } } } },
        {
          id: "fmt_name",
          kind: "action",
          action: { provider_key: "formatter", action_key: "text.titlecase" },
          invocation_inputs: { input: "{{trigger.body.customer.name}}" }
        },
        {
          id: "to_crm",
          kind: "destination",
          resource_id: "des_1",
          invocation_inputs: {
            body: {
              name: "{{steps.fmt_name.output.result}}",
              total: "{{trigger.body.total}}",
              text: '{{trigger.body.customer["e mail"]}} has ordered {{trigger.body.lines[].sku}}, first {{trigger.body.lines[0].sku}}',
              note: '{{trigger.body.note ?? "none"}}'
            }
          },
          config: { retry: { count: 3 } }
        }
      ],
      edges: [
        { source_type: "trigger", target_step_id: "only_paid" },
        { source_type: "step", source_step_id: "only_paid", target_step_id: "fmt_name" },
        { source_type: "step", source_step_id: "fmt_name", target_step_id: "to_crm" }
      ]
    })
  })

  it("The paths of a branch and of an error join in the step that follows, and an ended path does not", () => {
    const built = order()
      .branch(
        "by_total",
        {
          big: {
            when: ({ trigger }) => ({ body: { total: { $gt: trigger.query.limit } } }),
            steps: (path) => path.http("call", { url: "https://a.example" })
          },
          none: { when: { body: { total: 0 } }, steps: (path) => path.destination("drop", "des_2").end() },
          rest: { fallback: true }
        },
        { evaluation: "first" }
      )
      .destination("to_crm", "des_1", ({ steps }) => ({ body: steps.call.output.body }))
      .onError((path) => path.destination("alarm", "des_3", ({ steps }) => ({ body: steps.to_crm.error.message })))
      .delay("wait", { mode: "for", amount: 1, unit: "days" })
      .toJSON()
    expect(built.steps[0]?.config).toEqual({
      evaluation: "first",
      paths: [
        { key: "big", rule: "conditions", conditions: { body: { total: { $gt: { $ref: "trigger.query.limit" } } } } },
        { key: "none", rule: "conditions", conditions: { body: { total: 0 } } },
        { key: "rest", rule: "fallback" }
      ]
    })
    expect(built.steps.find(({ id }) => id === "to_crm")?.config).toEqual({ on_error: "branch" })
    expect(built.edges.map((edge) => [edge.source_step_id, edge.source_port, edge.target_step_id])).toEqual([
      [undefined, undefined, "by_total"],
      ["by_total", "path_big", "call"],
      ["by_total", "path_none", "drop"],
      ["call", undefined, "to_crm"],
      ["by_total", "path_rest", "to_crm"],
      ["to_crm", "error", "alarm"],
      ["to_crm", undefined, "wait"],
      ["alarm", undefined, "wait"]
    ])
  })

  it("A step runs for each element of a list, and its output has the outputs of all", () => {
    const built = order()
      .forEach(({ trigger }) => trigger.body.lines)
      .http("ask", ({ item }) => ({ url: text`https://stock.example/${item.sku}` }))
      .destination("to_crm", "des_1", ({ steps }) => ({ body: steps.ask.output.items(-1).status }))
      .toJSON()
    expect(built.steps.map(({ config, invocation_inputs }) => [config, invocation_inputs])).toEqual([
      [{ for_each: "{{trigger.body.lines}}" }, { url: "https://stock.example/{{item.sku}}" }],
      [undefined, { body: "{{steps.ask.output.items[-1].status}}" }]
    ])
  })

  it("A step reads or changes a stored value, and a list is worked on by several calls at once", () => {
    const built = order()
      .store("count_orders", "increment", ({ trigger }) => ({
        key: text`orders of ${trigger.body.customer.name}`,
        by: 1
      }))
      .forEach(({ trigger }) => trigger.body.lines, { concurrency: 5 })
      .http("ask", ({ item }) => ({ url: text`https://stock.example/${item.sku}` }), { config: { timeout_ms: 2_000 } })
      .forEach(({ trigger }) => trigger.body.lines)
      .store("keep", "set", ({ item, steps }) => ({ key: item.sku, value: steps.count_orders.output.value }), {
        config: { on_error: "continue" }
      })
      .toJSON()
    expect(built.steps.map(({ config, invocation_inputs, kind }) => ({ kind, config, invocation_inputs }))).toEqual([
      {
        kind: "store",
        config: { operation: "increment" },
        invocation_inputs: { key: "orders of {{trigger.body.customer.name}}", by: 1 }
      },
      {
        kind: "action",
        config: { timeout_ms: 2_000, for_each: "{{trigger.body.lines}}", concurrency: 5 },
        invocation_inputs: { url: "https://stock.example/{{item.sku}}" }
      },
      {
        kind: "store",
        config: { on_error: "continue", operation: "set", for_each: "{{trigger.body.lines}}" },
        invocation_inputs: { key: "{{item.sku}}", value: "{{steps.count_orders.output.value}}" }
      }
    ])
    // @ts-expect-error -- there is no such operation
    order().store("keep", "put", { key: "a" })
    // @ts-expect-error -- a value has a key
    order().store("keep", "get", {})
  })

  it("Settings of triggers are written with references into the request", () => {
    const schedule = [{ cron: "0 9 * * *" }]
    const built = order()
      .triggers({
        schedule,
        deduplicate: { key: "body.id", window_ms: 60_000 },
        concurrency: { limit: 1, key: ({ trigger }) => trigger.body.customer["e mail"] },
        rate_limit: { count: 60, period: "minute" },
        priority: { key: ({ trigger }) => trigger.body.total, default: 1 },
        debounce: { key: ({ trigger }) => trigger.headers["x-order"], wait_ms: 5_000 },
        on_failure: { workflow_id: "wfl_1" },
        batch: { key: ({ trigger }) => trigger.query["shop"], window_ms: 5_000, max_count: 10 },
        answer: null
      })
      .destination("to_crm", "des_1")
      .toJSON()
    expect(built.triggers).toEqual({
      schedule,
      deduplicate: { key: "body.id", window_ms: 60_000 },
      concurrency: { limit: 1, key: 'body.customer["e mail"]' },
      rate_limit: { count: 60, period: "minute" },
      priority: { key: "body.total", default: 1 },
      debounce: { key: "headers.x-order", wait_ms: 5_000 },
      on_failure: { workflow_id: "wfl_1" },
      batch: { key: "query.shop", window_ms: 5_000, max_count: 10 },
      answer: null
    })
    for (const { key } of [built.triggers!.concurrency!, built.triggers!.priority!, built.triggers!.debounce!]) {
      expect(Result.isSuccess(compileOrdering(key!))).toBe(true)
    }
    // @ts-expect-error -- an order has no such member
    order().triggers({ concurrency: { limit: 1, key: ({ trigger }) => trigger.body.custommer } })
    // @ts-expect-error -- a key is one value
    order().triggers({ concurrency: { limit: 1, key: ({ trigger }) => trigger.body.customer } })
    // @ts-expect-error -- there is no such setting
    order().triggers({ concurency: { limit: 1 } })
  })

  it("A workflow without a source begins by calls or by schedules, and keeps these when other triggers are added", () => {
    const called = workflow("Called").onCall<{ readonly month: string }>()
    expect(
      called.http("ask", ({ trigger }) => ({ url: text`https://stock.example/${trigger.body.month}` })).toJSON()
    ).toMatchObject({ source_id: null, triggers: {} })
    const schedule = { cron: "0 3 * * *", timezone: "Europe/Berlin" }
    const built = workflow("Nightly")
      .onSchedule(schedule, { cron: "0 4 * * *" })
      .triggers({ concurrency: { limit: 1 } })
      .destination("post", "des_1", ({ trigger }) => ({ body: trigger.body.scheduled_at }))
      .toJSON()
    expect(built).toMatchObject({
      source_id: null,
      triggers: { schedule: [schedule, { cron: "0 4 * * *" }], concurrency: { limit: 1 } },
      steps: [{ invocation_inputs: { body: "{{trigger.body.scheduled_at}}" } }]
    })
    // @ts-expect-error -- a schedule gives no such member
    called.destination("post", "des_1", ({ trigger }) => ({ body: trigger.body.scheduled_at }))
  })

  it("A reference to a member that a body or an output does not have does not compile", () => {
    const flow = order().action("fmt_name", "formatter/text.titlecase", { input: "a" })
    flow.destination("one_1", "des_1", ({ steps }) => ({ body: steps.fmt_name.output.result }))
    flow.destination("one_1", "des_1", ({ steps }) => ({
      // @ts-expect-error -- the member is result
      body: steps.fmt_name.output.resutl
    }))
    flow.destination("one_1", "des_1", ({ trigger }) => ({
      // @ts-expect-error -- an order has a total
      body: trigger.body.totl
    }))
    flow.destination("one_1", "des_1", ({ steps }) => ({
      // @ts-expect-error -- there is no such step
      body: steps.fmt_nam
    }))
    flow
      .forEach(({ trigger }) => trigger.body.lines)
      .destination("one_1", "des_1", ({ item }) => ({
        // @ts-expect-error -- a line has a sku
        body: item.skuu
      }))
    // @ts-expect-error -- a destination has no such setting
    flow.destination("one_1", "des_1", {}, { config: { timeout: 1 } })
    // Without a type, a body may have any member.
    const loose = workflow("loose")
      .on("src_1")
      .destination("one_1", "des_1", ({ trigger }) => ({ body: trigger.body.a.b }))
    expect(loose.toJSON().steps[0]?.invocation_inputs).toEqual({ body: "{{trigger.body.a.b}}" })
    expect(() => flow.delay("fmt_name", { mode: "for", amount: 1, unit: "days" })).toThrow("two steps have the id")
  })

  it("A step is undone by another one, which refers to it and has no edges", () => {
    const charged = order().http("charge", { url: "https://example.com/charges" }, { config: { timeout_ms: 5_000 } })
    const flow = charged
      .compensateWith((undo) =>
        undo.http("refund", ({ steps, trigger }) => ({
          url: "https://example.com/refunds",
          body: { of: steps.charge.output.body.id, total: trigger.body.total }
        }))
      )
      .onError((path) => path.destination("told", "des_1"))
      .destination("ship", "des_2")
    const { edges, steps } = flow.toJSON()
    const called = { kind: "action", action: { provider_key: "http", action_key: "request" } }
    expect(steps).toEqual([
      {
        id: "refund",
        ...called,
        invocation_inputs: {
          url: "https://example.com/refunds",
          body: { of: "{{steps.charge.output.body.id}}", total: "{{trigger.body.total}}" }
        }
      },
      {
        id: "charge",
        ...called,
        invocation_inputs: { url: "https://example.com/charges" },
        config: { timeout_ms: 5_000, compensate: "refund", on_error: "branch" }
      },
      { id: "told", kind: "destination", resource_id: "des_1" },
      { id: "ship", kind: "destination", resource_id: "des_2" }
    ])
    expect(edges.some(({ target_step_id }) => target_step_id === "refund")).toBe(false)
    expect(edges.at(-2)).toMatchObject({ source_step_id: "charge", target_step_id: "ship" })
    // @ts-expect-error -- a step that undoes another gives later ones nothing
    flow.destination("later", "des_1", ({ steps: all }) => ({ body: all.refund.output.body }))
    expect(() => order().compensateWith((undo) => undo.http("undo", { url: "" }))).toThrow("none that can be undone")
    expect(() => charged.compensateWith((undo) => undo.http("one", { url: "" }).http("two", { url: "" }))).toThrow(
      "exactly one step"
    )
    const undone = charged.compensateWith((undo) => undo.http("one", { url: "" }))
    expect(() => undone.compensateWith((undo) => undo.http("two", { url: "" }))).toThrow(
      "charge has a step that undoes it"
    )
  })

  it("The compiler knows the outputs of all operations of the formatter", () => {
    const others: Readonly<Record<string, ReadonlyArray<string>>> = formatterOutputs
    for (const { key, output } of formatter.actions) {
      expect([key, ...(others[key] ?? ["result"])]).toEqual([key, ...Object.keys(output["properties"] as object)])
    }
  })

  it("Every graph can be built", () => {
    let seed = 7
    const roll = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
    /** An edge, and how the builder is told to begin it. */
    const edgeTo = (target_step_id: string, from: number) => {
      const port = roll(2) === 0 ? null : `port_${roll(3)}`
      const id = roll(3) === 0 ? { id: `edge_${target_step_id}_${from}` } : {}
      const more = { ...id, ...(roll(3) === 0 ? { condition: { body: { a: roll(9) } } } : {}) }
      const mapping = roll(3) === 0 ? { mapping: { body: "{{trigger.query}}" } } : {}
      const start =
        from === 0 ? { source_type: "trigger" } : { source_type: "step", source_step_id: `step_${from - 1}` }
      const leaving = port === null ? {} : { source_port: port }
      return {
        edge: { ...start, ...leaving, target_step_id, ...more, ...mapping },
        start: { step: start.source_step_id ?? "trigger", ...(port === null ? {} : { port }), ...more, ...mapping }
      }
    }
    for (let run = 0; run < 300; run++) {
      const steps: Array<object> = []
      const edges: Array<object> = []
      let built: Flow<unknown, {}> = workflow("random", { status: "draft" }).on("src_1")
      for (let index = 0; index <= roll(12); index++) {
        const [id, kind] = [`step_${index}`, ["action", "destination", "filter", "later_kind"][roll(4)]!]
        const members = {
          name: id,
          config: { note: `note ${roll(9)}`, deep: [{ text: "{{trigger.body}}" }, roll(5), null] }
        }
        const sources = new Set(Array.from({ length: 1 + roll(3) }, () => roll(index + 1)))
        const into = Array.from(sources, (from) => edgeTo(id, from))
        steps.push({ id, kind, ...members })
        edges.push(...into.map(({ edge }) => edge))
        built = built.after(...into.map(({ start }) => start as { step: "trigger" })).step(id, kind, members)
      }
      expect(built.toJSON()).toEqual({ name: "random", status: "draft", source_id: "src_1", steps, edges })
    }
  })
})
