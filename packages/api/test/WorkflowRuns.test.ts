import { expect, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { limits } from "@tidegate/workflows/Limits"
import { call, teams } from "./ControlServer.ts"
import {
  carryOut,
  coming,
  createDestination,
  createWorkflow,
  from,
  layer as world,
  receive,
  send,
  trim,
  unique
} from "./workflowRuns.ts"

const failing = (status: number, message = `HTTP ${status}`) =>
  ({ kind: "failed", error: { code: "BAD_RESPONSE", message, status } }) as const

const flow = Effect.fnUntraced(function* (config: object = {}) {
  const destination = yield* createDestination
  const workflow = yield* createWorkflow(
    [
      trim("name", "{{trigger.body.name}}"),
      { id: "paid", kind: "filter", config: { conditions: { body: { paid: true } } } },
      send("crm1", destination.id, config),
      trim("late", "{{steps.crm1.output.status}}")
    ],
    [from(null, "name"), from("name", "paid"), from("paid", "crm1", "matched"), from("crm1", "late")]
  )
  return { workflow, destination }
})

const runs = (id: string, query = "") => Effect.map(call("GET", `/workflows/${id}/runs${query}`), ({ body }) => body)

/** What a list of runs answers. */
const members = ["applied_range", "count", "has_more", "models", "next_cursor", "total", "total_exact"]

layer(world, { excludeTestServices: true })("Workflow runs over HTTP", (it) => {
  it.effect("Workflow runs are listed with the newest first, in pages and by status", () =>
    Effect.gen(function* () {
      const { workflow } = yield* flow()
      const made: Array<string> = []
      for (const paid of [true, false, true, true, false]) {
        made.unshift((yield* receive(workflow, { name: " Ada ", paid })).run)
        if (made.length === 3) coming.push(failing(500))
        yield* carryOut(workflow.id)
      }
      made.unshift((yield* receive(workflow, { name: "waits" })).run)
      const all = yield* runs(workflow.id)
      expect(Object.keys(all).toSorted()).toEqual(members)
      expect(all.models.map(({ id }: { id: string }) => id)).toEqual(made)
      expect(all.models[0]).toMatchObject({ status: "queued", outcome: null, pending_steps: 4, started_at: null })
      expect(all.models[3]).toMatchObject({
        workflow_id: workflow.id,
        run_type: "workflow",
        status: "failed",
        outcome: "failed",
        workflow_version: 1,
        attempt_count: 1,
        error_code: "BAD_RESPONSE",
        error_message: "HTTP 500",
        error_step_id: "crm1",
        hold_reason: null,
        steps_count: 4,
        succeeded_steps: 2,
        failed_steps: 1,
        skipped_steps: 1,
        pending_steps: 0,
        running_steps: 0,
        duration_ms: expect.any(Number)
      })
      expect(all.models[4]).toMatchObject({ status: "succeeded", outcome: "filtered", skipped_steps: 2 })
      const ofStatus = yield* runs(workflow.id, "?status=FAILED,queued")
      expect(ofStatus.models.map(({ id }: { id: string }) => id)).toEqual([made[0], made[3]])
      const first = yield* runs(workflow.id, "?limit=4")
      const second = yield* runs(workflow.id, `?limit=4&cursor=${first.next_cursor}`)
      expect([...first.models, ...second.models].map(({ id }: { id: string }) => id)).toEqual(made)
      expect(second.next_cursor).toBeNull()
      expect((yield* runs(workflow.id, "?to=now-1h")).count).toBe(0)
      expect(yield* call("GET", `/workflows/${workflow.id}/runs?status=done`)).toMatchObject({
        status: 400,
        body: { data: { fields: [{ path: "status" }] } }
      })
      expect((yield* call("GET", `/workflows/${workflow.id}/runs`, { key: teams.b.key })).status).toBe(404)
      yield* call("PATCH", `/workflows/${workflow.id}`, { body: { status: "paused" } })
      const held = (yield* runs(workflow.id)).models
      expect(held.map(({ hold_reason }: { hold_reason: unknown }) => hold_reason)).toEqual([
        "paused",
        null,
        null,
        null,
        null,
        null
      ])
    })
  )

  it.effect("Workflow run is found by its id alone, in its own team, while its workflow exists", () =>
    Effect.gen(function* () {
      const { workflow } = yield* flow()
      const { run } = yield* receive(workflow, { name: "Ada", paid: true })
      yield* carryOut(workflow.id)
      const found = yield* call("GET", `/workflow_runs/${run}`)
      expect(found.body).toEqual((yield* runs(workflow.id)).models[0])
      expect(found.body).toMatchObject({ id: run, workflow_id: workflow.id })
      const codeOf = (path: string, key: string = teams.a.key) =>
        Effect.map(call("GET", path, { key }), ({ body, status }) => [status, body.code])
      expect(yield* codeOf(`/workflow_runs/${run}`, teams.b.key)).toEqual([404, "NOT_FOUND"])
      expect(yield* codeOf("/workflow_runs/wfr_none")).toEqual([404, "NOT_FOUND"])
      yield* call("DELETE", `/workflows/${workflow.id}`)
      expect(yield* codeOf(`/workflow_runs/${run}`)).toEqual([404, "NOT_FOUND"])
    })
  )

  it.effect("Workflow run shows its version, its trigger and its steps in order", () =>
    Effect.gen(function* () {
      const { destination, workflow } = yield* flow()
      coming.push(failing(503))
      const { request, run } = yield* receive(
        workflow,
        { name: " Ada ", paid: true },
        { path: "/orders", headers: { "x-a": "1" } }
      )
      yield* carryOut(workflow.id)
      yield* call("PATCH", `/workflows/${workflow.id}`, { body: { description: "changed" } })
      const { body, status } = yield* call("GET", `/workflows/${workflow.id}/runs/${run}`)
      expect(status).toBe(200)
      expect(body).toMatchObject({
        id: run,
        status: "failed",
        version: {
          number: 1,
          definition_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
          created_by_user_id: null,
          current_version: 2,
          is_current: false,
          workflow_name: workflow.name,
          steps: workflow.steps,
          edges: workflow.edges,
          formatter_engine_version: "1.0.0"
        },
        trigger: {
          type: "request",
          request_id: request,
          source: { id: workflow.source_id, name: workflow.source_name, trigger_name: "Webhook" },
          delivery_mode: "webhook",
          method: "POST",
          path: "/orders",
          content_type: "application/json",
          size_bytes: 28,
          is_retry: false,
          preview: null
        },
        retry: { count: 0, last_requested_at: null, last_step_id: null, retryable_step_ids: ["crm1"] }
      })
      expect(body.steps.map(({ status, step_id }: { step_id: string; status: string }) => [step_id, status])).toEqual([
        ["name", "succeeded"],
        ["paid", "succeeded"],
        ["crm1", "failed"],
        ["late", "skipped"]
      ])
      expect(body.steps[0]).toMatchObject({
        id: expect.stringMatching(/^wse_/),
        name: "Trim name",
        kind: "action",
        execution_index: 0,
        input: { source_type: "trigger", source_step_id: null, source_port: "out" },
        output_port: "out",
        attempt_count: 1,
        attempts: [{ number: 1, status: "succeeded", duration_ms: expect.any(Number) }],
        input_preview: null,
        output_preview: null
      })
      expect(body.steps[2]).toMatchObject({
        input: { source_type: "step", source_step_id: "paid", source_port: "matched" },
        output_port: null,
        response_status: 503,
        error_code: "BAD_RESPONSE",
        error_message: "HTTP 503",
        handled: false,
        max_attempts: 1,
        resource: { type: "destination", id: destination.id }
      })
      expect(body.steps[3]).toMatchObject({ skip_reason: "upstream_failed", attempts: [], input: null })
      for (const path of [
        `/workflows/${workflow.id}/runs/wfr_01kak203r6v1f7q0p5n3k2j4rs`,
        `/workflows/${workflow.id}/runs/x`
      ]) {
        expect(yield* call("GET", path)).toMatchObject({
          status: 404,
          body: { data: { resource_type: "workflow_run" } }
        })
      }
      const other = yield* flow()
      expect((yield* call("GET", `/workflows/${other.workflow.id}/runs/${run}`)).status).toBe(404)
      expect((yield* call("GET", `/workflows/${workflow.id}/runs/${run}`, { key: teams.b.key })).status).toBe(404)
    })
  )

  it.effect("Workflow run shows each attempt of a step and the time of the next retry", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { workflow } = yield* flow({ retry: { strategy: "linear", interval: 60_000, count: 2 } })
      coming.push(failing(500), failing(502))
      const { run } = yield* receive(workflow, { name: "a", paid: true })
      yield* carryOut(workflow.id)
      const path = `/workflows/${workflow.id}/runs/${run}`
      const step = (body: { steps: ReadonlyArray<{ step_id: string }> }) =>
        body.steps.find(({ step_id }) => step_id === "crm1")
      const waiting = (yield* call("GET", path)).body
      expect(waiting).toMatchObject({ status: "running", retry: { retryable_step_ids: [] } })
      expect(step(waiting)).toMatchObject({
        status: "running",
        wait: { kind: "retry", until: expect.any(String) },
        attempt_count: 1,
        max_attempts: 3,
        attempts: [{ number: 1, status: "failed", response_status: 500, error_code: "BAD_RESPONSE" }]
      })
      expect(waiting.steps.at(-1)).toMatchObject({ step_id: "late", status: "pending" })
      // Its wait is over, as the rows tell it.
      for (const _ of [1, 2]) {
        yield* sql`update workflow_steps set steps = regexp_replace(steps, '"until":[0-9]+', '"until":1') where run_id = ${run}`
        yield* sql`update workflow_queue set due_at = now() - interval '1 second' where run_id = ${run}`
        yield* carryOut(workflow.id)
      }
      const ended = (yield* call("GET", path)).body
      expect(ended).toMatchObject({ status: "succeeded", outcome: "completed" })
      expect(step(ended)).toMatchObject({
        status: "succeeded",
        wait: null,
        error_code: null,
        response_status: 200,
        attempt_count: 3,
        attempts: [
          { number: 1, status: "failed", response_status: 500 },
          { number: 2, status: "failed", response_status: 502 },
          { number: 3, status: "succeeded", response_status: 200, error_code: null }
        ]
      })
    })
  )

  it.effect("Workflow run shows the resources that its steps named at the start", () =>
    Effect.gen(function* () {
      const { destination, workflow } = yield* flow()
      const { run } = yield* receive(workflow, { name: "a", paid: true })
      yield* carryOut(workflow.id)
      const path = `/workflows/${workflow.id}/runs/${run}`
      const resources = Effect.map(call("GET", path), ({ body }) => body.version.resources)
      const named = {
        step_id: "crm1",
        type: "destination",
        id: destination.id,
        name: destination.name,
        content_hash: expect.stringMatching(/^(?:sha256:)?[0-9a-f]{64}$/),
        updated_at: destination.updated_at,
        exists: true
      }
      expect(yield* resources).toEqual([named])
      yield* call("PATCH", `/destinations/${destination.id}`, { body: { name: unique("renamed") } })
      expect(yield* resources).toEqual([named])
      yield* call("PATCH", `/workflows/${workflow.id}`, {
        body: { steps: [trim("name", "x")], edges: [from(null, "name")] }
      })
      expect((yield* call("DELETE", `/destinations/${destination.id}`)).status).toBe(200)
      expect(yield* resources).toEqual([{ ...named, exists: false }])
    })
  )

  it.effect("Workflow run shows previews on request and without secrets", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination
      const workflow = yield* createWorkflow(
        [
          trim("text", "{{trigger.body.note}}"),
          send("crm1", destination.id),
          { id: "wait", kind: "delay", config: { mode: "for", amount: 1, unit: "hours" } }
        ],
        [from(null, "text"), from("text", "crm1"), from("crm1", "wait")]
      )
      const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlc2lnbmF0dXJl"
      const secrets = {
        header: "Bearer h34d3rs3cr3t",
        query: "qu3rys3cr3t",
        password: "b0dys3cr3t",
        card: "4111111111111111",
        live: "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
        jwt,
        pem: "-----BEGIN PRIVATE KEY-----MIIEvQIBADANBgkq-----END PRIVATE KEY-----",
        answer: "gwk_0123456789abcdef0123456789abcdef",
        moved: "m0v3ds3cr3t"
      }
      coming.push({
        kind: "succeeded",
        output: { status: 201, headers: { "set-cookie": `a=${secrets.answer}` }, body: { key: secrets.answer } },
        ports: ["out"]
      })
      const { run } = yield* receive(
        workflow,
        {
          note: ` card ${secrets.card}, ${secrets.live} `,
          password: secrets.password,
          inner: { jwt, pem: secrets.pem },
          kept: "plain"
        },
        {
          headers: { authorization: secrets.header, "x-shop-signature": secrets.moved },
          query: `?token=${secrets.query}&page=2`
        }
      )
      yield* carryOut(workflow.id)
      const path = `/workflows/${workflow.id}/runs/${run}`
      const { body } = yield* call("GET", `${path}?include_previews=true`)
      const told = JSON.stringify(body)
      expect(Object.entries(secrets).filter(([, secret]) => told.includes(secret))).toEqual([])
      expect(body.trigger.preview).toMatchObject({
        available: true,
        redacted: true,
        truncated: false,
        content_type: "application/json",
        size_bytes: expect.any(Number),
        sha256: expect.stringMatching(/^sha256:/),
        preview: { query: { page: "2" }, body: { kept: "plain", password: "[REDACTED]" } },
        redacted_paths: expect.arrayContaining([
          "headers.authorization",
          "query.token",
          "body.password",
          "body.inner.jwt"
        ]),
        reason: null
      })
      expect(body.steps[0]).toMatchObject({
        input_preview: { available: true, redacted: true, preview: { input: expect.stringContaining("[REDACTED]") } },
        output_preview: { available: true, redacted: true, redacted_paths: ["result"] }
      })
      expect(body.steps[1].output_preview).toMatchObject({ preview: { status: 201 }, redacted: true })
      expect(body.steps[2]).toMatchObject({
        status: "running",
        wait: { kind: "delay" },
        output_preview: { available: false, preview: null, reason: "not_captured" }
      })
      const plain = (yield* call("GET", path)).body
      expect(plain.trigger.preview).toBeNull()
      expect(plain.steps.map(({ input_preview }: { input_preview: unknown }) => input_preview)).toEqual([
        null,
        null,
        null
      ])
      const binary = yield* receive(workflow, Buffer.from([0xff, 0xfe, 0x00]).toString("latin1"))
      expect(
        (yield* call("GET", `/workflows/${workflow.id}/runs/${binary.run}?include_previews=true`)).body
      ).toMatchObject({
        status: "queued",
        steps: [{ input_preview: null }, {}, {}]
      })
    })
  )

  it.effect("Previews of a failed step and of expired data state why they are missing", () =>
    Effect.gen(function* () {
      const fetching = {
        id: "fetch",
        kind: "action",
        action: { provider_key: "http", action_key: "request" },
        invocation_inputs: { method: "GET", url: "{{trigger.body.url}}" }
      }
      const workflow = yield* createWorkflow([fetching], [from(null, "fetch")])
      const { run } = yield* receive(workflow, { name: "no address" })
      yield* carryOut(workflow.id)
      const reasons = Effect.map(
        call("GET", `/workflows/${workflow.id}/runs/${run}?include_previews=true`),
        ({ body: { steps } }) => [steps[0].status, steps[0].input_preview.reason, steps[0].output_preview.reason]
      )
      expect(yield* reasons).toEqual(["failed", "not_captured", "not_captured"])
      const sql = yield* SqlClient.SqlClient
      yield* sql`update workflow_steps set outputs = null, previews = null where run_id = ${run}`
      expect(yield* reasons).toEqual(["failed", "expired", "expired"])
    })
  )

  it.effect("The answer of a refused call is shown with each attempt and read by the error branch", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination
      const workflow = yield* createWorkflow(
        [
          send("crm1", destination.id, { on_error: "branch", retry: { count: 1, interval: 1_000 } }),
          trim("hint", "{{steps.crm1.error.response.body.hint}} ({{steps.crm1.error.response.headers.x-request-id}})")
        ],
        [from(null, "crm1"), from("crm1", "hint", "error")]
      )
      const refused = (status: number, hint: string) => ({
        kind: "failed" as const,
        error: {
          code: "BAD_RESPONSE",
          message: `HTTP ${status}`,
          status,
          response: {
            status,
            headers: { "x-request-id": "r-1" },
            body: { hint, api_key: "0123456789abcdef" },
            truncated: false
          }
        }
      })
      coming.push(refused(503, "later"), refused(422, "no such customer"))
      const { run } = yield* receive(workflow, { name: "Ada" })
      yield* carryOut(workflow.id)
      const sql = yield* SqlClient.SqlClient
      yield* Effect.repeat(Effect.andThen(Effect.sleep("20 millis"), carryOut(workflow.id)), {
        until: () => Effect.map(sql`select 1 from workflow_queue where run_id = ${run}`, ({ length }) => length === 0)
      })
      const path = `/workflows/${workflow.id}/runs/${run}`
      const { body } = yield* call("GET", `${path}?include_previews=true`)
      const response = { headers: { "x-request-id": "r-1" }, truncated: false }
      const second = { ...response, status: 422, body: { hint: "no such customer", api_key: "[REDACTED]" } }
      expect(body.steps[0]).toMatchObject({
        status: "failed",
        handled: true,
        error: { code: "BAD_RESPONSE", message: "HTTP 422", status: 422, response: second },
        attempts: [
          { number: 1, error_message: "HTTP 503", response: { ...response, status: 503, body: { hint: "later" } } },
          { number: 2, error_message: "HTTP 422", response: second }
        ]
      })
      expect(body.steps[1].output_preview.preview).toEqual({ result: "no such customer (r-1)" })
      const plain = (yield* call("GET", path)).body
      expect(plain.steps[0].error).toEqual({ code: "BAD_RESPONSE", message: "HTTP 422", status: 422, response: null })
      expect(JSON.stringify(plain)).not.toContain("customer")
      yield* sql`update workflow_steps set outputs = null, previews = null where run_id = ${run}`
      const expired = (yield* call("GET", `${path}?include_previews=true`)).body
      expect(expired.steps[0]).toMatchObject({ error: { message: "HTTP 422", response: null } })
    })
  )

  it.effect("Errors of workflow runs contain no secrets", () =>
    Effect.gen(function* () {
      const { workflow } = yield* flow()
      const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
      coming.push(failing(500, `refused: password=hunter2hunter2 and ${secret}`))
      const { run } = yield* receive(workflow, { name: "a", paid: true })
      yield* carryOut(workflow.id)
      for (const path of [
        `/workflows/${workflow.id}/runs`,
        `/workflows/${workflow.id}/runs/${run}?include_previews=true`,
        "/workflow-activity"
      ]) {
        const { body } = yield* call("GET", path)
        const told = JSON.stringify(body)
        expect([path, told.includes(secret), told.includes("hunter2"), told.includes("refused: password=")]).toEqual([
          path,
          false,
          false,
          true
        ])
      }
    })
  )

  it.effect("Workflow run with many large outputs is shown in an answer of limited size", () =>
    Effect.gen(function* () {
      const ids = Array.from({ length: 30 }, (_, i) => `step${String(i).padStart(2, "0")}`)
      const destination = yield* createDestination
      const workflow = yield* createWorkflow(
        ids.map((id) => send(id, destination.id)),
        ids.map((id, i) => from(i === 0 ? null : ids[i - 1]!, id))
      )
      const large = Array.from({ length: 4_000 }, (_, i) => ({ [`name${i}`]: "x".repeat(40) }))
      for (const _ of ids) coming.push({ kind: "succeeded", output: { status: 200, body: large }, ports: ["out"] })
      const { run } = yield* receive(workflow, { a: 1 })
      yield* carryOut(workflow.id)
      const { body } = yield* call("GET", `/workflows/${workflow.id}/runs/${run}?include_previews=true`)
      expect(body.steps).toHaveLength(30)
      expect(JSON.stringify(body).length).toBeLessThan(2 * 1024 * 1024)
      for (const { output_preview } of body.steps) expect(output_preview.size_bytes ?? 0).toBeLessThan(400_000)
      const [activity] = (yield* call("GET", "/workflow-activity?limit=1")).body.models
      expect([activity.id, activity.steps.length]).toEqual([run, 30])
      expect(JSON.stringify(activity).length).toBeLessThan(30_000)
      coming.length = 0
    })
  )

  it.effect("Workflow run continues from a failed step that is retried", () =>
    Effect.gen(function* () {
      const { workflow } = yield* flow()
      coming.push(failing(500))
      const { run } = yield* receive(workflow, { name: "a", paid: true })
      const path = `/workflows/${workflow.id}/runs/${run}`
      const retry = (step_id: unknown, options: object = {}) =>
        call("POST", `${path}/retry`, { body: { step_id }, ...options })
      expect(yield* retry("crm1")).toMatchObject({ status: 409, body: { code: "RUN_ACTIVE" } })
      yield* carryOut(workflow.id)
      expect(yield* retry("name")).toMatchObject({
        status: 409,
        body: { code: "STEP_NOT_RETRYABLE", data: { step_status: "succeeded" } }
      })
      expect(yield* retry("none")).toMatchObject({ status: 404, body: { data: { resource_type: "workflow_step" } } })
      expect(yield* retry(1)).toMatchObject({ status: 400, body: { data: { fields: [{ path: "step_id" }] } } })
      expect((yield* retry("crm1", { key: teams.b.key })).status).toBe(404)
      const sql = yield* SqlClient.SqlClient
      yield* sql`update workflow_runs set attempts = ${limits.beginnings} where id = ${run}`
      expect(yield* retry("crm1")).toMatchObject({
        status: 409,
        body: { code: "STEP_NOT_RETRYABLE", data: { step_status: "failed" } }
      })
      yield* sql`update workflow_runs set attempts = 1 where id = ${run}`
      expect(yield* retry("crm1")).toMatchObject({
        status: 202,
        body: {
          id: run,
          workflow_id: workflow.id,
          workflow_version: 1,
          status: "queued",
          retry_outbox_id: expect.stringMatching(/^wro_/),
          retry_step: { step_id: "crm1", name: "Send" }
        }
      })
      yield* carryOut(workflow.id)
      const { body } = yield* call("GET", `${path}?include_previews=true`)
      expect(body).toMatchObject({
        status: "succeeded",
        attempt_count: 2,
        retry: { count: 1, last_requested_at: expect.any(String), last_step_id: "crm1", retryable_step_ids: [] }
      })
      expect(body.steps.map(({ attempts }: { attempts: ReadonlyArray<unknown> }) => attempts.length)).toEqual([
        1, 1, 1, 1
      ])
      expect(body.steps[2]).toMatchObject({ status: "succeeded", attempts: [{ number: 1, status: "succeeded" }] })
    })
  )

  it.effect("Workflow run tells the elements of a list, and a retry of its step calls only those that failed", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination
      const config = { for_each: "{{trigger.body.lines}}", on_error: "continue" }
      const workflow = yield* createWorkflow([send("each", destination.id, config)], [from(null, "each")])
      const answer = (of: number) => ({ kind: "succeeded", output: { status: 200, of }, ports: ["out"] }) as const
      const secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
      coming.push(answer(0), failing(500, `HTTP 500 ${secret}`), answer(2))
      const { run } = yield* receive(workflow, { lines: ["a", "b", "c"] })
      yield* carryOut(workflow.id)
      const path = `/workflows/${workflow.id}/runs/${run}`
      const read = Effect.map(call("GET", path), ({ body }) => body)
      const well = {
        status: "succeeded",
        attempt_count: 1,
        response_status: null,
        error_code: null,
        error_message: null
      }
      const first = yield* read
      expect(first).toMatchObject({
        status: "succeeded",
        outcome: "completed_with_errors",
        retry: { retryable_step_ids: ["each"] }
      })
      expect(first.steps[0].iterations).toEqual({
        count: 3,
        completed: 3,
        failed: 1,
        elements: [
          { index: 0, ...well },
          {
            index: 1,
            status: "failed",
            attempt_count: 1,
            response_status: 500,
            error_code: "BAD_RESPONSE",
            error_message: "HTTP 500 [REDACTED]"
          },
          { index: 2, ...well }
        ]
      })
      const turn = (status: string) => call("PATCH", `/workflows/${workflow.id}`, { body: { status } })
      yield* turn("paused")
      const retry = call("POST", `${path}/retry`, { body: { step_id: "each" } })
      expect(yield* retry).toMatchObject({ status: 202, body: { status: "queued" } })
      expect((yield* read).steps[0]).toMatchObject({
        status: "pending",
        iterations: { completed: 2, failed: 0, elements: [well, { status: "pending", attempt_count: 0 }, well] }
      })
      // One answer is enough: the elements that succeeded are not called again.
      coming.push(answer(1))
      yield* turn("active")
      yield* carryOut(workflow.id)
      expect(coming).toHaveLength(0)
      expect((yield* call("GET", `${path}?include_previews=true`)).body).toMatchObject({
        outcome: "completed",
        attempt_count: 2,
        retry: { count: 1, retryable_step_ids: [] },
        steps: [
          {
            status: "succeeded",
            iterations: { count: 3, completed: 3, failed: 0, elements: [well, well, well] },
            output_preview: { preview: { items: [{ of: 0 }, { of: 1 }, { of: 2 }], count: 3 } }
          }
        ]
      })
      expect(yield* retry).toMatchObject({ status: 409, body: { code: "STEP_NOT_RETRYABLE" } })
    })
  )

  it.effect("Workflow run is cancelled by a call, and an ended run is not", () =>
    Effect.gen(function* () {
      const { workflow } = yield* flow()
      const { run } = yield* receive(workflow, { name: "a", paid: true })
      const cancel = (id: string, options: object = {}) =>
        call("POST", `/workflows/${workflow.id}/runs/${id}/cancel`, options)
      expect((yield* cancel(run, { key: teams.b.key })).status).toBe(404)
      const cancelled = {
        status: 200,
        body: { id: run, workflow_id: workflow.id, status: "failed", outcome: "cancelled" }
      }
      expect(yield* cancel(run)).toMatchObject(cancelled)
      expect(yield* cancel(run)).toMatchObject(cancelled)
      const { body } = yield* call("GET", `/workflows/${workflow.id}/runs/${run}`)
      expect(body).toMatchObject({ outcome: "cancelled", error_code: "RUN_CANCELLED", skipped_steps: 4 })
      const { run: other } = yield* receive(workflow, { name: "a", paid: false })
      yield* carryOut(workflow.id)
      expect(yield* cancel(other)).toMatchObject({
        status: 409,
        body: { code: "RUN_ENDED", data: { outcome: "filtered" } }
      })
    })
  )

  it.effect("Workflow run is begun again with a changed request, once for each idempotency key", () =>
    Effect.gen(function* () {
      const { workflow } = yield* flow()
      const { request, run } = yield* receive(workflow, { name: "a", paid: false }, { path: "/orders" })
      yield* carryOut(workflow.id)
      const rerun = (body: object, options: object = {}) =>
        call("POST", `/workflows/${workflow.id}/runs/${run}/rerun`, { body, ...options })
      expect(yield* rerun({ version: "newest" })).toMatchObject({
        status: 400,
        body: { data: { fields: [{ path: "version" }] } }
      })
      expect((yield* rerun({ trigger: { query: "x".repeat(65_537) } })).status).toBe(400)
      expect((yield* rerun({}, { key: teams.b.key })).status).toBe(404)
      expect(yield* rerun({ version: 9 })).toMatchObject({
        status: 404,
        body: { data: { resource_type: "workflow_version" } }
      })
      const changed = {
        trigger: { body: { name: "b", paid: true }, headers: { authorization: "Bearer h34d3rs3cr3t" } }
      }
      const once = { headers: { "idempotency-key": "rerun-1" } }
      const { body: started, status } = yield* rerun(changed, once)
      expect([status, started]).toEqual([
        202,
        {
          id: expect.stringMatching(/^wfr_/),
          workflow_id: workflow.id,
          workflow_version: 1,
          status: "queued",
          rerun_of: run
        }
      ])
      expect((yield* rerun(changed, once)).body).toEqual(started)
      yield* carryOut(workflow.id)
      const detail = yield* call("GET", `/workflows/${workflow.id}/runs/${started.id}?include_previews=true`)
      expect(detail.body).toMatchObject({
        status: "succeeded",
        outcome: "completed",
        request_id: started.id,
        rerun_of: run,
        trigger: {
          method: "POST",
          path: "/orders",
          size_bytes: 24,
          preview: { available: true, preview: { body: { name: "b", paid: true } } }
        }
      })
      expect(JSON.stringify(detail.body)).not.toContain("h34d3rs3cr3t")
      const sql = yield* SqlClient.SqlClient
      const [kept] = yield* sql<{ headers: string }>`select headers from workflow_inputs where run_id = ${started.id}`
      expect(kept!.headers).toContain("authorization")
      expect(kept!.headers).not.toContain("h34d3rs3cr3t")
      const { body: same } = yield* rerun({})
      yield* carryOut(workflow.id)
      const models = (yield* runs(workflow.id)).models
      expect(models).toHaveLength(3)
      expect(models[0]).toMatchObject({ id: same.id, request_id: request, rerun_of: run, outcome: "filtered" })
      yield* call("DELETE", `/workflows/${workflow.id}/runs`)
      expect(yield* sql`select from workflow_inputs where run_id = ${started.id}`).toEqual([])
    })
  )

  it.effect("Workflow runs can be cleared after they have ended", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { workflow } = yield* flow()
      const { workflow: other } = yield* flow()
      for (const one of [workflow, workflow, other]) {
        yield* receive(one, { name: "a", paid: false })
        yield* carryOut(one.id)
      }
      const { run } = yield* receive(workflow, {})
      const path = `/workflows/${workflow.id}/runs`
      expect((yield* call("DELETE", path, { key: teams.b.key })).status).toBe(404)
      const cleared = { workflow_id: workflow.id, deleted: 2, retained_active: 1, has_more: false }
      expect(yield* call("DELETE", path)).toMatchObject({ status: 200, body: cleared })
      expect((yield* runs(workflow.id)).models.map(({ id }: { id: string }) => id)).toEqual([run])
      expect((yield* runs(other.id)).count).toBe(1)
      const parts =
        yield* sql`select 1 from workflow_steps s where not exists (select from workflow_runs r where r.id = s.run_id)`
      expect(parts).toEqual([])
      expect((yield* call("DELETE", path)).body).toEqual({ ...cleared, deleted: 0 })
    })
  )

  it.effect("Workflow runs of the whole team are listed and searched, with their steps", () =>
    Effect.gen(function* () {
      const { workflow } = yield* flow()
      const odd = yield* createWorkflow([trim("only", "x")], [from(null, "only")], { name: unique("100%_Übung") })
      const made: Array<string> = []
      for (const one of [workflow, odd, workflow]) {
        const { run } = yield* receive(one, { name: "a", paid: true })
        yield* carryOut(one.id)
        made.unshift(run)
      }
      const active = (query = "") => Effect.map(call("GET", `/workflow-activity?${query}`), ({ body }) => body)
      const ids = (query: string) =>
        Effect.map(active(query), ({ models }) =>
          models.map(({ id }: { id: string }) => id).filter((id: string) => made.includes(id))
        )
      const all = yield* active()
      expect(Object.keys(all).toSorted()).toEqual(members)
      expect(all).toMatchObject({ total: all.models.length, total_exact: true, count: all.models.length })
      expect(all.models.slice(0, 3).map(({ id }: { id: string }) => id)).toEqual(made)
      expect(all.models[0]).toMatchObject({
        workflow_id: workflow.id,
        workflow_name: workflow.name,
        workflow_version: 1,
        source: { id: workflow.source_id, name: workflow.source_name, trigger_name: "Webhook" },
        status: "succeeded",
        outcome: "completed",
        succeeded_steps: 4
      })
      expect(all.models[0].steps.map(({ step_id }: { step_id: string }) => step_id)).toEqual([
        "name",
        "paid",
        "crm1",
        "late"
      ])
      expect(all.models[0].steps[2]).toMatchObject({ kind: "destination", status: "succeeded", response_status: 200 })
      const first = yield* active("limit=2")
      expect(first).toMatchObject({ total: 3, total_exact: false, count: 2, has_more: true })
      const rest = yield* active(`cursor=${first.next_cursor}`)
      expect(rest).toMatchObject({ total: all.total, total_exact: true, has_more: false, next_cursor: null })
      expect([...first.models, ...rest.models]).toEqual(all.models)
      expect(yield* ids(`source=${odd.source_id}`)).toEqual([made[1]])
      expect(yield* ids("status=failed")).toEqual([])
      for (const text of ["100%_üBUNG", "%_", odd.source_name.toUpperCase()]) {
        expect([text, yield* ids(`q=${encodeURIComponent(text)}`)]).toEqual([text, [made[1]]])
      }
      const { request_id } = all.models[2]
      for (const text of [request_id, request_id.toUpperCase(), request_id.slice(6)]) {
        expect([text, yield* ids(`search=${text}`)]).toEqual([text, [made[2]]])
      }
      expect(yield* ids("q=100x_")).toEqual([])
      expect(yield* ids("end=now-1h")).toEqual([])
      expect((yield* call("GET", `/workflow-activity?q=${"x".repeat(201)}`)).status).toBe(400)
      expect((yield* call("GET", "/workflow-activity?cursor=x")).status).toBe(400)
      expect((yield* call("GET", "/workflow-activity?status=x")).status).toBe(400)
      expect((yield* call("GET", "/workflow-activity?start=now&end=now-1h")).status).toBe(400)
      expect((yield* call("GET", "/workflow-activity", { key: teams.b.key })).body).toMatchObject({
        total: 0,
        models: []
      })
      yield* call("DELETE", `/workflows/${odd.id}`)
      expect(yield* ids(`q=${encodeURIComponent("100%")}`)).toEqual([])
    })
  )

  it.effect("Workflow runs are narrowed by what failed, when they started, and what their previews show", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination
      const workflow = yield* createWorkflow(
        [send("crm1", destination.id, { on_error: "continue" })],
        [from(null, "crm1")]
      )
      const stopping = yield* flow()
      const run = Effect.fnUntraced(function* (of: typeof workflow, name: string, fails: boolean) {
        if (fails) coming.push(failing(503, `no ${name}`))
        const { run } = yield* receive(of, { name, paid: true })
        yield* carryOut(of.id)
        return run
      })
      const ada = yield* run(workflow, 'Ada "the first"', false)
      const bob = yield* run(workflow, "Bob", true)
      const eve = yield* run(stopping.workflow, "Eve", true)
      const ids = (path: string) =>
        Effect.map(call("GET", path), ({ body }) => body.models.map(({ id }: { id: string }) => id))
      const own = (query: string) => ids(`/workflows/${workflow.id}/runs?${query}`)
      const active = (query: string) =>
        Effect.map(ids(`/workflow-activity?${query}`), (found: ReadonlyArray<string>) =>
          found.filter((id) => [ada, bob, eve].includes(id))
        )
      expect(yield* own("outcome=completed_with_errors")).toEqual([bob])
      expect(yield* active("outcome=completed,FAILED")).toEqual([eve, ada])
      expect(yield* active("error_code=bad_response")).toEqual([eve])
      expect(yield* active("error_step_id=crm1")).toEqual([eve])
      expect(yield* own("started_from=now-1h&started_to=now")).toEqual([bob, ada])
      expect(yield* own("started_to=now-1h")).toEqual([])
      expect(yield* own(`text=${encodeURIComponent('ADA "the')}`)).toEqual([ada])
      expect(yield* active("text=bob")).toEqual([bob])
      expect(yield* active(`text=bob&q=${encodeURIComponent(workflow.name)}`)).toEqual([bob])
      expect(yield* active(`text=bob&q=${encodeURIComponent(stopping.workflow.name)}`)).toEqual([])
      expect(yield* own("text=bob&to=now-1h")).toEqual([])
      const first = (yield* call("GET", `/workflows/${workflow.id}/runs?text=paid&limit=1`)).body
      expect(first).toMatchObject({ models: [{ id: bob }], has_more: true, total_exact: false })
      const second = (yield* call(
        "GET",
        `/workflows/${workflow.id}/runs?text=paid&limit=1&cursor=${first.next_cursor}`
      )).body
      expect(second).toMatchObject({ models: [{ id: ada }], has_more: false })
      for (const wrong of ["outcome=done", "error_code=a-b", "started_from=yesterday", `text=${"x".repeat(201)}`]) {
        expect([wrong, (yield* call("GET", `/workflow-activity?${wrong}`)).status]).toEqual([wrong, 400])
      }
    })
  )

  it.effect("A run is labelled when it begins, by the template of its version, and found by its label", () =>
    Effect.gen(function* () {
      const run_label = "order {{trigger.body.id}} {{trigger.body.api_key}}"
      const destination = yield* createDestination
      const workflow = yield* createWorkflow([send("crm1", destination.id)], [from(null, "crm1")], { run_label })
      expect(workflow.run_label).toBe(run_label)
      const path = `/workflows/${workflow.id}`
      coming.push(failing(503))
      const first = yield* receive(workflow, { id: 7, api_key: "0123456789abcdef" })
      const label = "order 7 [REDACTED]"
      const labels = (query: string) =>
        Effect.map(call("GET", `${path}/runs?${query}`), ({ body }) =>
          body.models.map(({ id, label }: { id: string; label: string }) => [id, label])
        )
      expect(yield* labels("")).toEqual([[first.run, null]])
      yield* carryOut(workflow.id)
      expect(yield* labels("")).toEqual([[first.run, label]])
      const changed = yield* call("PATCH", path, { body: { run_label: "{{trigger.body.id}}%" } })
      expect(changed.body).toMatchObject({ version: 2, run_label: "{{trigger.body.id}}%" })
      const second = yield* receive({ ...workflow, version: 2 }, { id: 8 })
      yield* carryOut(workflow.id)
      expect(yield* labels("")).toEqual([
        [second.run, "8%"],
        [first.run, label]
      ])
      expect(yield* labels(`label=${encodeURIComponent(label)}`)).toEqual([[first.run, label]])
      expect(yield* labels("label=order")).toEqual([])
      expect(yield* labels("label_prefix=order%207")).toEqual([[first.run, label]])
      expect(yield* labels("label_prefix=%25")).toEqual([])
      expect((yield* call("GET", `${path}/runs/${second.run}`)).body.label).toBe("8%")
      expect((yield* call("GET", `/workflow-activity?label_prefix=8%25&q=${first.request}`)).body.models).toEqual([])
      expect((yield* call("GET", `/workflow-activity?label=8%25&source_id=${workflow.source_id}`)).body.models).toEqual(
        [expect.objectContaining({ id: second.run, label: "8%" })]
      )
      const tested = yield* call("POST", `${path}/test`, { body: { trigger: { body: { id: 9 } } } })
      expect(tested.body).toMatchObject({ label: "9%" })
      expect((yield* call("GET", "/workflows")).body.models[0].run_label).toBe("{{trigger.body.id}}%")
      for (const wrong of ["{{steps.crm1.output.status}}", "{{trigger.bdoy}}", "x".repeat(1_001), 7]) {
        expect(yield* call("PATCH", path, { body: { run_label: wrong } })).toMatchObject({
          status: 400,
          body: { data: { fields: [{ path: "run_label" }] } }
        })
      }
      expect((yield* call("PATCH", path, { body: { run_label: null } })).body.run_label).toBeNull()
    })
  )

  it.effect("Workflow metrics count started and failed runs and their duration like the stored rows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { workflow } = yield* flow()
      for (const fails of [false, true, false, true, true]) {
        if (fails) coming.push(failing(500))
        yield* receive(workflow, { name: "a", paid: true })
        yield* carryOut(workflow.id)
      }
      yield* receive(workflow, { paid: false })
      const [rows] = yield* sql<{ begun: number; failed: number; duration: number }>`
        select count(*) filter (where parts > 0)::int4 as begun, count(*) filter (where status = 'failed')::int4 as failed,
          round(avg(extract(epoch from finished_at - started_at) * 1000))::float8 as duration
        from workflow_runs where workflow_id = ${workflow.id}`
      const { body } = yield* call("GET", `/metrics/workflows?id=${workflow.id},wfl_none`)
      expect(body.count).toBe(2)
      expect(body.models[0]).toEqual({
        id: workflow.id,
        workflow_id: workflow.id,
        runs_24h_count: rows!.begun,
        runs_24h_failed_count: rows!.failed,
        bins: [...Array.from({ length: 23 }, () => 0), rows!.begun],
        avg_duration_ms: rows!.duration
      })
      expect([rows!.begun, rows!.failed]).toEqual([5, 3])
      expect(body.models[1]).toMatchObject({ id: "wfl_none", runs_24h_count: 0, avg_duration_ms: null })
      const theirs = yield* call("GET", `/metrics/workflows?id=${workflow.id}`, { key: teams.b.key })
      expect(theirs.body.models[0]).toMatchObject({ runs_24h_count: 0 })
      expect((yield* call("GET", "/metrics/workflows")).status).toBe(400)
    })
  )

  it.effect("A bulk retry of runs is a plan first, and then retries the failed step of each", () =>
    Effect.gen(function* () {
      const { workflow } = yield* flow()
      const failed: Array<string> = []
      for (let n = 0; n < 2; n++) {
        coming.push(failing(500))
        failed.unshift((yield* receive(workflow, { name: "Ada", paid: true })).run)
        yield* carryOut(workflow.id)
      }
      yield* receive(workflow, { name: "Ada", paid: true })
      yield* carryOut(workflow.id)
      const body = { workflow_id: workflow.id, error_step_id: "crm1", error_code: "bad_response", confirm: false }
      const made = yield* call("POST", "/workflow_runs/bulk_operations", { body })
      expect(made).toMatchObject({
        status: 201,
        body: {
          type: "workflow_run_bulk_retry",
          filter: { workflow_id: [workflow.id], status: ["failed"], error_code: ["BAD_RESPONSE"] }
        }
      })
      const path = `/workflow_runs/bulk_operations/${made.body.id}`
      const reaches = (member: string, value: unknown) =>
        Effect.repeat(call("GET", path), {
          until: ({ body }) => (value === undefined ? body[member] !== null : body[member] === value),
          schedule: Schedule.spaced("10 millis")
        })
      expect((yield* reaches("planned_at", undefined)).body).toMatchObject({
        status: "PLANNED",
        total_count: 2,
        sample: failed
      })
      expect((yield* runs(workflow.id, "?status=failed")).count).toBe(2)
      expect((yield* call("GET", "/workflow_runs/bulk_operations", { key: teams.b.key })).body.count).toBe(0)
      expect((yield* call("GET", path, { key: teams.b.key })).status).toBe(404)
      expect((yield* call("POST", `${path}/run`)).status).toBe(200)
      expect((yield* reaches("status", "COMPLETED")).body).toMatchObject({ queued_count: 2, failed_count: 0 })
      yield* carryOut(workflow.id)
      const after = (yield* runs(workflow.id)).models
      expect(after.map(({ attempt_count, status }: Record<string, unknown>) => [status, attempt_count])).toEqual([
        ["succeeded", 1],
        ["succeeded", 2],
        ["succeeded", 2]
      ])
    })
  )

  it.effect("A bulk cancellation of runs ends each that has not ended", () =>
    Effect.gen(function* () {
      const { workflow } = yield* flow()
      yield* receive(workflow, { name: "Ada", paid: true })
      yield* carryOut(workflow.id)
      yield* call("PATCH", `/workflows/${workflow.id}`, { body: { status: "paused" } })
      for (let n = 0; n < 3; n++) yield* receive(workflow, { name: "Ada", paid: true })
      const body = { workflow_id: workflow.id, action: "cancel" }
      const { body: made } = yield* call("POST", "/workflow_runs/bulk_operations", { body })
      const over = yield* Effect.repeat(call("GET", `/workflow_runs/bulk_operations/${made.id}`), {
        until: ({ body }) => body.finished_at !== null,
        schedule: Schedule.spaced("10 millis")
      })
      expect(over.body).toMatchObject({
        type: "workflow_run_bulk_cancel",
        status: "COMPLETED",
        filter: { status: ["queued", "running"] },
        total_count: 3,
        queued_count: 3
      })
      const outcomes = (yield* runs(workflow.id)).models.map(({ outcome }: { outcome: unknown }) => outcome)
      expect(outcomes).toEqual(["cancelled", "cancelled", "cancelled", "completed"])
      for (const [action, status] of [
        ["cancel", "failed"],
        ["retry", "succeeded"]
      ]) {
        const body = { workflow_id: workflow.id, action, status }
        expect(yield* call("POST", "/workflow_runs/bulk_operations", { body })).toMatchObject({
          status: 400,
          body: { data: { fields: [{ path: "status" }] } }
        })
      }
    })
  )
})
