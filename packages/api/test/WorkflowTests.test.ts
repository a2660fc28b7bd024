import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { call, layer as server, teams } from "./ControlServer.ts"

let made = 0
const unique = (what: string): string => `${what}-${++made}`

const create = Effect.fnUntraced(function* (kind: string, body: object = {}) {
  const answer = yield* call("POST", `/${kind}`, { body: { name: unique(kind), ...body } })
  expect(answer.body).toMatchObject({ id: expect.any(String) })
  return answer.body.id as string
})
const destination = create("destinations", { type: "HTTP", config: { url: "https://target.test/hook" } })

const trim = (id: string, input: string) => ({
  id,
  kind: "action",
  name: id,
  action: { provider_key: "formatter", action_key: "text.trim" },
  invocation_inputs: { input }
})
const from = (source: string | null, target: string, more: object = {}) => ({
  source_type: source === null ? "trigger" : "step",
  source_step_id: source,
  target_step_id: target,
  ...more
})
const to = (id: string, resource_id: string, more: object = {}) => ({ id, kind: "destination", resource_id, ...more })

/** What is said of each step, in the order of the answer. */
// oxlint-disable-next-line typescript/no-explicit-any -- a test reads whatever is there
const told = (answer: any): ReadonlyArray<unknown> =>
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads whatever is there
  answer.body.steps.map((step: any) => [step.step_id, step.status, step.simulated])

const trigger = { body: { name: " Ada ", total: 120, lines: ["a", "b"] } }

layer(server, { excludeTestServices: true })("Workflow tests", (it) => {
  it.effect("A mocked error may have an answer, which the error branch reads and the test shows", () =>
    Effect.gen(function* () {
      const steps = [
        to("to_crm", yield* destination, { config: { on_error: "branch" } }),
        trim("hint", "{{steps.to_crm.error.response.body.hint}}")
      ]
      const edges = [from(null, "to_crm"), from("to_crm", "hint", { source_port: "error" })]
      const response = { status: 409, body: { hint: "exists", password: "hunter2hunter2" } }
      const mocks = { to_crm: { error: { code: "BAD_RESPONSE", message: "HTTP 409", response } } }
      const tested = yield* call("POST", "/workflows/test", { body: { steps, edges, trigger, mocks } })
      expect(tested).toMatchObject({ status: 200, body: { outcome: "completed_with_errors" } })
      expect(tested.body.steps[0].error).toEqual({
        code: "BAD_RESPONSE",
        message: "HTTP 409",
        status: 409,
        response: { status: 409, headers: {}, body: { hint: "exists", password: "[REDACTED]" }, truncated: false }
      })
      expect(tested.body.steps[1].output_preview.preview).toEqual({ result: "exists" })
    })
  )

  it.effect(
    "Dry run of a stored workflow executes steps of the process, mocks its destination and takes no time for delays",
    () =>
      Effect.gen(function* () {
        const source_id = yield* create("sources")
        const steps = [
          trim("name", "{{trigger.body.name}}"),
          { id: "a_month", kind: "delay", config: { mode: "for", amount: 30, unit: "days" } },
          to("to_crm", yield* destination, { invocation_inputs: { body: { name: "{{steps.name.output.result}}" } } })
        ]
        const edges = [from(null, "name"), from("name", "a_month"), from("a_month", "to_crm")]
        const id = yield* create("workflows", { source_id, steps, edges })
        const began = Date.now()
        const answer = yield* call("POST", `/workflows/${id}/test`, { body: { trigger } })
        expect(Date.now() - began).toBeLessThan(30_000)
        expect(answer).toMatchObject({
          status: 200,
          body: {
            test: true,
            mode: "dry_run",
            workflow_id: id,
            request_id: null,
            status: "succeeded",
            outcome: "completed",
            workflow_version: 1,
            steps_count: 3,
            succeeded_steps: 3,
            version: { number: 1, is_current: true },
            trigger: { source: { id: source_id }, preview: { preview: trigger.body } }
          }
        })
        expect(told(answer)).toEqual([
          ["name", "succeeded", false],
          ["a_month", "succeeded", false],
          ["to_crm", "succeeded", true]
        ])
        expect(answer.body.steps[2]).toMatchObject({
          input_preview: { preview: { body: { name: "Ada" } } },
          output_preview: { preview: { status: 200 } }
        })
        expect(answer.body.duration_ms).toBeGreaterThanOrEqual(30 * 86_400_000)
      })
  )

  it.effect("Mock of a dry run gives its step an output, or an error that follows the error path", () =>
    Effect.gen(function* () {
      const target = yield* destination
      const steps = [
        to("to_crm", target, { config: { on_error: "branch", retry: { interval: 60_000, count: 2 } } }),
        trim("told", "{{steps.to_crm.error.message}}"),
        trim("after", "{{steps.to_crm.output.id}}")
      ]
      const edges = [from(null, "to_crm"), from("to_crm", "told", { source_port: "error" }), from("to_crm", "after")]
      const test = (mock: object) =>
        call("POST", "/workflows/test", { body: { steps, edges, trigger, mocks: { to_crm: mock } } })

      const failed = yield* test({ error: { code: "TIMEOUT", message: " simulated " } })
      expect(failed.body).toMatchObject({ workflow_id: null, workflow_version: 0, outcome: "completed_with_errors" })
      expect(told(failed)).toEqual([
        ["to_crm", "failed", true],
        ["told", "succeeded", false],
        ["after", "skipped", false]
      ])
      expect(failed.body.steps[0]).toMatchObject({ error_code: "TIMEOUT", handled: true, attempt_count: 3 })
      expect(failed.body.steps[0].attempts).toHaveLength(3)
      expect(failed.body.steps[1].output_preview.preview).toEqual({ result: "simulated" })

      const succeeded = yield* test({ output: { id: " o_1 " } })
      expect(told(succeeded)).toEqual([
        ["to_crm", "succeeded", true],
        ["after", "succeeded", false],
        ["told", "skipped", false]
      ])
      expect(succeeded.body.steps[1].output_preview.preview).toEqual({ result: "o_1" })
    })
  )

  it.effect("Mocked filter and branch take the path that their output says", () =>
    Effect.gen(function* () {
      const paths = [
        { key: "one", rule: "conditions", conditions: { body: { total: 1 } } },
        { key: "two", rule: "fallback" }
      ]
      const steps = [
        { id: "paths", kind: "branch", config: { paths } },
        { id: "only", kind: "filter", config: { conditions: { body: { total: 120 } } } },
        trim("after", "x"),
        trim("other", "x")
      ]
      const edges = [
        from(null, "paths"),
        from("paths", "only", { source_port: "path_one" }),
        from("paths", "other", { source_port: "path_two" }),
        from("only", "after")
      ]
      const mocks = { paths: { output: { matched: ["one"], fallback: false } }, only: { output: { matched: false } } }
      const answer = yield* call("POST", "/workflows/test", { body: { steps, edges, trigger, mocks } })
      expect(answer.body).toMatchObject({ status: "succeeded", outcome: "filtered" })
      expect(told(answer)).toEqual([
        ["paths", "succeeded", true],
        ["only", "succeeded", true],
        ["after", "skipped", false],
        ["other", "skipped", false]
      ])
    })
  )

  it.effect("Single step of a dry run uses mocks of other steps and runs for each item of a list", () =>
    Effect.gen(function* () {
      const target = yield* destination
      const steps = [
        trim("first", "{{trigger.body.name}}"),
        to("second", target, {
          invocation_inputs: { body: '{{steps.first.output.result ?? "none"}} {{item}}' },
          config: { for_each: "{{trigger.body.lines}}" }
        }),
        trim("third", "x")
      ]
      const edges = [from(null, "first"), from("first", "second"), from("second", "third")]
      const test = (more: object) =>
        call("POST", "/workflows/test", { body: { steps, edges, trigger, step_id: "second", ...more } })
      const alone = yield* test({})
      expect(told(alone)).toEqual([["second", "succeeded", true]])
      expect(alone.body.steps[0]).toMatchObject({
        iterations: {
          count: 2,
          completed: 2,
          failed: 0,
          elements: [
            { index: 0, status: "succeeded", attempt_count: 1 },
            { index: 1, status: "succeeded", attempt_count: 1 }
          ]
        },
        input_preview: { preview: { body: "none b" } }
      })
      expect(alone.body).toMatchObject({ steps_count: 1, succeeded_steps: 1, status: "succeeded" })
      const context = { steps: { first: { output: { result: "Grace" } } } }
      const given = yield* test({ context })
      expect(given.body.steps[0]).toMatchObject({ input_preview: { preview: { body: "Grace b" } } })
      expect(yield* test({ step_id: "none" })).toMatchObject({ status: 400, body: { code: "VALIDATION_ERROR" } })
      expect(yield* test({ mocks: { none: { output: 1 } } })).toMatchObject({
        status: 400,
        body: { code: "VALIDATION_ERROR" }
      })
    })
  )

  it.effect("Workflow with faults, disabled resources or no sample cannot be tested", () =>
    Effect.gen(function* () {
      const source_id = yield* create("sources")
      const target = yield* destination
      const graph = { steps: [to("to_crm", target)], edges: [from(null, "to_crm")] }
      const id = yield* create("workflows", { source_id, ...graph })
      expect(yield* call("POST", `/workflows/${id}/test`, { body: {} })).toMatchObject({
        status: 422,
        body: { code: "SAMPLE_UNAVAILABLE", error: "Unprocessable content", data: { source_id } }
      })
      expect(yield* call("POST", "/workflows/test", { body: graph })).toMatchObject({
        status: 422,
        body: { code: "SAMPLE_UNAVAILABLE" }
      })
      const unknown = "req_00000000000000000000000000"
      expect(yield* call("POST", `/workflows/${id}/test`, { body: { request_id: unknown } })).toMatchObject({
        status: 404,
        body: { code: "NOT_FOUND", data: { resource_type: "request" } }
      })
      const faulty = { ...graph, edges: [...graph.edges, from("to_crm", "nowhere"), from("nobody", "to_crm")], trigger }
      const refused = yield* call("POST", "/workflows/test", { body: faulty })
      expect(refused).toMatchObject({ status: 400, body: { code: "WORKFLOW_GRAPH_INVALID" } })
      expect(refused.body.data.issues.map(({ code }: { code: string }) => code)).toEqual(
        expect.arrayContaining(["EDGE_SOURCE_UNKNOWN", "EDGE_TARGET_UNKNOWN"])
      )
      yield* call("PUT", `/destinations/${target}/disable`)
      expect(yield* call("POST", `/workflows/${id}/test`, { body: { trigger } })).toMatchObject({
        status: 409,
        body: { code: "WORKFLOW_NOT_EXECUTABLE", data: { issues: [{ code: "RESOURCE_DISABLED", step_id: "to_crm" }] } }
      })
      const mocks = { to_crm: { output: {} } }
      expect((yield* call("POST", `/workflows/${id}/test`, { body: { trigger, mocks } })).status).toBe(200)
      expect(
        (yield* call("POST", "/workflows/wfl_00000000000000000000000000/test", { body: { trigger } })).status
      ).toBe(404)
    })
  )

  it.effect(
    "A definition is checked without being stored: all issues at their steps, or its warnings, as a save has them",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const target = yield* destination
        const steps = [trim("first", "{{trigger.body.name}}"), to("to_crm", target)]
        const edges = [from(null, "first"), from("first", "to_crm")]
        const id = yield* create("workflows", { source_id: yield* create("sources"), steps, edges })
        const validate = (body: object, key?: string) =>
          call("POST", "/workflows/validate", { body, ...(key === undefined ? {} : { key }) })
        const fine = { status: 200, body: { valid: true, issues: [], warnings: [] } }
        const stored = () => sql`select version, steps, edges from workflows where id = ${id}`
        const before = yield* stored()
        expect(yield* validate({ steps, edges })).toMatchObject(fine)
        expect(yield* validate({ steps, edges, workflow_id: id })).toMatchObject(fine)
        // Without edges the steps are a chain.
        expect(yield* validate({ steps })).toMatchObject(fine)

        const gone = "des_00000000000000000000000000"
        const faulty = {
          steps: [
            trim("first", "{{steps.nobody.output.x}}"),
            to("to_crm", gone),
            { id: "decide", kind: "branch", config: {} }
          ],
          edges: [...edges, from("to_crm", "decide"), from("decide", "nowhere", { source_port: "path_a" })]
        }
        const refused = yield* validate(faulty)
        expect(refused).toMatchObject({ status: 200, body: { valid: false, warnings: [] } })
        expect(refused.body.issues).toEqual(
          expect.arrayContaining([
            expect.objectContaining({ code: "TEMPLATE_REFERENCE_UNKNOWN", step_id: "first" }),
            expect.objectContaining({ code: "STEP_CONFIG_INVALID", step_id: "decide" }),
            expect.objectContaining({ code: "EDGE_TARGET_UNKNOWN" }),
            {
              code: "RESOURCE_NOT_FOUND",
              step_id: "to_crm",
              edge_id: null,
              field: "resource_id",
              message: expect.any(String)
            }
          ])
        )
        const circle = { steps: steps.map((step) => trim(step.id, "x")), edges: [...edges, from("to_crm", "first")] }
        expect((yield* validate(circle)).body.issues).toContainEqual(
          expect.objectContaining({
            code: "GRAPH_CYCLE",
            data: { step_ids: expect.arrayContaining(["first", "to_crm"]) }
          })
        )
        // The same as a save says.
        const save = yield* call("PATCH", `/workflows/${id}`, { body: { version: 1, ...faulty } })
        expect(save.body.data.issues).toEqual(refused.body.issues)

        // A step of a stored workflow keeps its kind, and only the call that names the workflow knows that.
        const other = { steps: [to("first", target)], edges: [from(null, "first")] }
        expect(yield* validate(other)).toMatchObject(fine)
        expect(yield* validate({ ...other, workflow_id: id })).toMatchObject({
          status: 200,
          body: { valid: false, issues: [{ code: "STEP_KIND_CHANGED", step_id: "first" }] }
        })
        const warned = yield* validate({ steps: [...steps, trim("last", "{{steps.first.output.reslut}}")] })
        expect(warned.body).toMatchObject({
          valid: true,
          warnings: [{ code: "OUTPUT_MEMBER_UNKNOWN", path: "steps[2].invocation_inputs.input" }]
        })
        // Another team has none of these resources.
        expect(yield* validate({ steps, edges, workflow_id: id }, teams.b.key)).toMatchObject({
          status: 404,
          body: { code: "NOT_FOUND" }
        })
        expect(yield* validate({ steps, edges }, teams.b.key)).toMatchObject({
          body: { valid: false, issues: [{ code: "RESOURCE_NOT_FOUND", step_id: "to_crm" }] }
        })
        expect(yield* validate({ steps: "none" })).toMatchObject({ status: 400, body: { code: "VALIDATION_ERROR" } })
        expect(yield* stored()).toEqual(before)
        expect(yield* sql`select workflow_id from workflow_drafts where workflow_id = ${id}`).toEqual([])
      })
  )

  it.effect("Members can only make dry runs, and owners can make tests that really send", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      for (const role of ["member", "owner"]) {
        const [user, token] = [`usr_${role}`, `ses_${(role === "member" ? "a" : "b").repeat(64)}`]
        yield* sql`insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
          values (${user}, 'https://issuer.test', ${role}, ${`${role}@example.com`}, true, ${role}, now(), now())`
        yield* sql`insert into memberships values (${teams.a.id}, ${user}, ${role}, now())`
        yield* sql`insert into sessions values (${hashToken(token)}, ${user}, ${teams.a.id}, now(), now() + interval '1 hour')`
        const test = (mode: string) =>
          call("POST", "/workflows/test", { key: token, body: { mode, steps: [], edges: [], trigger } })
        expect(yield* test("dry_run")).toMatchObject({ status: 200, body: { status: "succeeded", steps: [] } })
        expect(yield* test("live")).toMatchObject(
          role === "owner"
            ? { status: 200, body: { mode: "live" } }
            : { status: 403, body: { code: "ROLE_REQUIRED", data: { required: "owner" } } }
        )
      }
    })
  )

  it.effect("Workflow test with a wrong body is refused and the member named", () =>
    Effect.gen(function* () {
      for (const [body, path] of [
        [{ mode: "wet" }, "mode"],
        [{ trigger: { path: "x" } }, "trigger.path"],
        [{ trigger, request_id: "req_00000000000000000000000000" }, "trigger"],
        [{ mocks: { x: { error: "bad" } } }, "mocks"],
        [{ steps: {} }, "steps"],
        [{ include_previews: "no" }, "include_previews"]
      ] as const) {
        const answer = yield* call("POST", "/workflows/test", { body })
        expect(answer).toMatchObject({ status: 400, body: { code: "VALIDATION_ERROR" } })
        expect(answer.body.data.fields[0].path).toMatch(new RegExp(`^${path}`))
      }
    })
  )

  it.effect("Workflow test without previews returns none, and a test that grows too large ends with an error", () =>
    Effect.gen(function* () {
      const target = yield* destination
      const retry = { interval: 1000, count: 10 }
      const steps = [
        to("each", target, {
          config: { for_each: "{{trigger.body.lines}}", on_error: "continue", retry }
        })
      ]
      const edges = [from(null, "each")]
      const lines = Array.from({ length: 500 }, (_, i) => i)
      const body = {
        steps,
        edges,
        include_previews: false,
        trigger: { body: { lines } },
        mocks: { each: { error: { code: "TIMEOUT", message: "x" } } }
      }
      const answer = yield* call("POST", "/workflows/test", { body })
      expect(answer.body).toMatchObject({
        status: "failed",
        error_code: "TEST_LIMIT_EXCEEDED",
        steps: [{ input_preview: null, output_preview: null }],
        trigger: { preview: null }
      })
    })
  )

  it.effect("Workflow tests above the team's limit wait until others end", () =>
    Effect.gen(function* () {
      const target = yield* destination
      const retry = { interval: 1000, count: 10 }
      const config = { for_each: "{{trigger.body.lines}}", on_error: "continue", retry }
      const body = {
        steps: [to("each", target, { config })],
        edges: [from(null, "each")],
        include_previews: false,
        trigger: { body: { lines: Array.from({ length: 50 }, (_, i) => i) } },
        mocks: { each: { error: { code: "TIMEOUT", message: "x" } } }
      }
      const test = call("POST", "/workflows/test", { body })
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, () => test),
        { concurrency: "unbounded" }
      )
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    })
  )

  it.effect("Workflow test masks a secret in the path of its trigger", () =>
    Effect.gen(function* () {
      const secret = ["sk", "live", "4eC39HqLyjWDarjtT1zdp7dc"].join("_")
      const body = { steps: [], edges: [], trigger: { ...trigger, path: `/hooks/${secret}` } }
      const answer = yield* call("POST", "/workflows/test", { body })
      expect(answer.status).toBe(200)
      expect(answer.body.trigger.path).toMatch(/^\/hooks\//)
      expect(JSON.stringify(answer.body)).not.toContain(secret)
    })
  )
})
