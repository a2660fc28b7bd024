import { Result, Schema } from "effect"
import type { StoredHead } from "@tidegate/model/Message"
import { limits } from "@tidegate/workflows/Limits"
import type { Mock } from "@tidegate/workflows/Mocks"
import { fieldError, type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"
import { Id, OneOf, setting } from "./Members.ts"
import { isQueryTooLong, longestQuery, queryOf, RequestSample, ShownRequestSample } from "./RequestParts.ts"
import { body, headers } from "./ExampleIds.ts"
import { describedAs } from "./DescribedAs.ts"
import { workflow } from "./Workflow.ts"
import { WorkflowEdges, WorkflowSteps } from "./workflow/Document.ts"

/** A test of a workflow, stored or written, on a request, received or written. */

export const dryRunModes = ["dry_run", "live"] as const

const flag = Schema.Boolean.annotate({ message: "must be true or false" })
const list = Schema.Array(Schema.Json).annotate({ message: "must be a list" })

const MockError = Schema.Struct({
  code: Schema.String,
  message: Schema.String,
  response: setting(
    Schema.Struct({
      status: Schema.Int,
      headers: setting(Schema.Record(Schema.String, Schema.String)),
      body: Schema.optionalKey(Schema.Json)
    }).annotate({ description: "The answer that the step's target gives" })
  )
})
const MockOf = Schema.Struct({
  output: Schema.optionalKey(Schema.Json),
  error: Schema.optionalKey(Schema.NullOr(MockError))
})

/** By the id of a step. */
const Mocks = Schema.Record(
  Schema.String,
  MockOf.annotate({ message: "must be an output, or an error with code and message" })
).check(Schema.isMaxProperties(limits.steps, { message: `must have at most ${limits.steps} steps` }))

const Message = Schema.Struct({
  mode: setting(OneOf(dryRunModes)),
  request_id: setting(Id),
  source_id: setting(Id),
  trigger: setting(RequestSample),
  steps: setting(list),
  edges: setting(list),
  draft: setting(flag),
  step_id: setting(Schema.String),
  mocks: setting(Mocks),
  context: setting(Schema.Struct({ steps: setting(Mocks) })),
  include_previews: setting(flag)
})
export const workflowDryRunMessage = Message
export type WorkflowDryRunInput = typeof Message.Type

export const workflowDryRunExample = {
  mode: "dry_run",
  trigger: { method: "POST", path: "/", headers, body },
  mocks: { to_crm: { error: { code: "BAD_RESPONSE", message: "simulated" } } }
} as const

export const unsavedDryRunExample = {
  ...workflowDryRunExample,
  steps: workflow.example.body.steps,
  edges: workflow.example.body.edges
} as const

const members = {
  mode: setting(
    Schema.Literals(dryRunModes).annotate({
      description:
        "`dry_run` (the default): nothing leaves the installation. `live`: actions and destinations are really called; only owners of the team may use it"
    })
  ),
  trigger: setting(ShownRequestSample),
  request_id: setting(Id.annotate({ description: "The id of a received request, instead of a request in the body" })),
  step_id: setting(
    Schema.String.annotate({ description: "Runs only this step; mocks provide the outputs of other steps" })
  ),
  mocks: setting(
    Schema.Record(
      Schema.String,
      Schema.Struct({ output: Schema.optionalKey(Schema.Json), error: Schema.optionalKey(Schema.NullOr(MockError)) })
    ).annotate({ description: "Mocked results by step id: an output, or an error" })
  ),
  context: setting(
    Schema.Struct({
      steps: setting(Schema.Record(Schema.String, Schema.Json).check(Schema.isMaxProperties(limits.steps)))
    }).annotate({
      description: "An alternative to mocks: `steps` in the form of a run's context"
    })
  ),
  include_previews: setting(
    flag.annotate({ description: "Whether the answer includes the inputs and outputs of steps (default: true)" })
  )
}
const graph = (described: Schema.Top, what: string) =>
  setting(Schema.Array(Schema.Json).pipe(describedAs(described)).annotate({ description: what }))

export const WorkflowDryRunInput = Schema.Struct({
  ...members,
  steps: graph(WorkflowSteps, "Instead of those that are stored"),
  edges: graph(WorkflowEdges, "Instead of those that are stored"),
  draft: setting(flag.annotate({ description: "Whether the draft of the workflow is tested (default: false)" }))
}).annotate({ identifier: "WorkflowTestInput", examples: [workflowDryRunExample] as never })

export const UnsavedDryRunInput = Schema.Struct({
  ...members,
  steps: graph(WorkflowSteps, "The steps"),
  edges: graph(WorkflowEdges, "The edges"),
  source_id: setting(
    Id.annotate({ description: "The source whose last accepted request is used if there is no other request" })
  )
}).annotate({ identifier: "UnsavedWorkflowTestInput", examples: [unsavedDryRunExample] as never })

export const judgeWorkflowDryRun = (written: Members) =>
  orInvalid(
    judgeBody(Message, written, (input): Result.Result<WorkflowDryRunInput, FieldErrors> => {
      const { draft, edges, request_id, steps, trigger } = input
      if (draft === true && (steps ?? edges ?? null) !== null) {
        return fieldError("draft", "cannot be used together with steps or edges")
      }
      if ((request_id ?? null) !== null && (trigger ?? null) !== null) {
        return fieldError("trigger", "cannot be used together with request_id")
      }
      if (isQueryTooLong(trigger ?? {})) {
        return fieldError("trigger.query", `must be at most ${longestQuery} characters as a query string`)
      }
      return Result.succeed(input)
    })
  )

const failureOf = ({ code, message, response = null }: typeof MockError.Type): NonNullable<Mock["error"]> => {
  if (response === null) return { code, message }
  const { body = null, headers, status } = response
  return { code, message, status, response: { status, headers: headers ?? {}, body, truncated: false } }
}

/** The mocks of steps; `mocks` take precedence over `context`. */
export const mocksOf = ({ context, mocks }: WorkflowDryRunInput): ReadonlyMap<string, Mock> =>
  new Map(
    Object.entries({ ...context?.steps, ...mocks }).map(([id, { error, output }]) => {
      return [
        id,
        {
          ...(output === undefined ? {} : { output }),
          ...((error ?? null) === null ? {} : { error: failureOf(error!) })
        }
      ]
    })
  )

/** A written sample in the form of a stored request: JSON, unless its headers say otherwise and its body is text. */
export const storedSample = (sample: RequestSample): StoredHead & { readonly body: Uint8Array } => {
  const { body = null, headers = {}, method = "POST", path = "/" } = sample
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const isText =
    typeof body === "string" && lower["content-type"] !== undefined && !/json/i.test(String(lower["content-type"]))
  return {
    method,
    path,
    query: queryOf(sample),
    headers: JSON.stringify({ "content-type": "application/json", ...lower }),
    body: Buffer.from(isText ? body : JSON.stringify(body))
  }
}
