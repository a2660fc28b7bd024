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

export const trialModes = ["dry_run", "live"] as const

const flag = Schema.Boolean.annotate({ message: "must be true or false" })
const list = Schema.Array(Schema.Json).annotate({ message: "must be a list" })

const MockError = Schema.Struct({ code: Schema.String, message: Schema.String })
const MockOf = Schema.Struct({
  output: Schema.optionalKey(Schema.Json),
  error: Schema.optionalKey(Schema.NullOr(MockError))
})

/** By the id of a step. */
const Mocks = Schema.Record(
  Schema.String,
  MockOf.annotate({ message: "must be an output, or an error of code and message" })
).check(Schema.isMaxProperties(limits.steps, { message: `must be of at most ${limits.steps} steps` }))

const Message = Schema.Struct({
  mode: setting(OneOf(trialModes)),
  request_id: setting(Id),
  source_id: setting(Id),
  trigger: setting(RequestSample),
  steps: setting(list),
  edges: setting(list),
  step_id: setting(Schema.String),
  mocks: setting(Mocks),
  context: setting(Schema.Struct({ steps: setting(Mocks) })),
  include_previews: setting(flag)
})
export const workflowTrialMessage = Message
export type WorkflowTrialInput = typeof Message.Type

export const workflowTrialExample = {
  mode: "dry_run",
  trigger: { method: "POST", path: "/", headers, body },
  mocks: { to_crm: { error: { code: "BAD_RESPONSE", message: "simulated" } } }
} as const

export const unsavedTrialExample = {
  ...workflowTrialExample,
  steps: workflow.example.body.steps,
  edges: workflow.example.body.edges
} as const

const members = {
  mode: setting(
    Schema.Literals(trialModes).annotate({
      description:
        "`dry_run` (the default): nothing leaves the installation. `live`: actions and destinations are called. Only owners of the team may do this"
    })
  ),
  trigger: setting(ShownRequestSample),
  request_id: setting(Id.annotate({ description: "A request that was received, instead of one that is written" })),
  step_id: setting(
    Schema.String.annotate({ description: "Only this step is run; what it reads of others their mocks say" })
  ),
  mocks: setting(
    Schema.Record(
      Schema.String,
      Schema.Struct({ output: Schema.optionalKey(Schema.Json), error: Schema.optionalKey(Schema.NullOr(MockError)) })
    ).annotate({ description: "The results of steps by their ids: an output, or an error" })
  ),
  context: setting(
    Schema.Struct({
      steps: setting(Schema.Record(Schema.String, Schema.Json).check(Schema.isMaxProperties(limits.steps)))
    }).annotate({
      description: "Another place for mocks: `steps` as a run's context has it"
    })
  ),
  include_previews: setting(
    flag.annotate({ description: "Whether the answer has the inputs and outputs of each step. Default: true" })
  )
}
const graph = (described: Schema.Top, what: string) =>
  setting(Schema.Array(Schema.Json).pipe(describedAs(described)).annotate({ description: what }))

export const WorkflowTrialInput = Schema.Struct({
  ...members,
  steps: graph(WorkflowSteps, "Instead of those that are stored"),
  edges: graph(WorkflowEdges, "Instead of those that are stored")
}).annotate({ identifier: "WorkflowTestInput", examples: [workflowTrialExample] as never })

export const UnsavedTrialInput = Schema.Struct({
  ...members,
  steps: graph(WorkflowSteps, "The steps"),
  edges: graph(WorkflowEdges, "The edges"),
  source_id: setting(
    Id.annotate({ description: "The source whose last accepted request is taken, where none is told" })
  )
}).annotate({ identifier: "UnsavedWorkflowTestInput", examples: [unsavedTrialExample] as never })

export const judgeWorkflowTrial = (written: Members) =>
  orInvalid(
    judgeBody(Message, written, (input): Result.Result<WorkflowTrialInput, FieldErrors> => {
      const { request_id, trigger } = input
      if ((request_id ?? null) !== null && (trigger ?? null) !== null) {
        return fieldError("trigger", "cannot be used together with request_id")
      }
      if (isQueryTooLong(trigger ?? {})) {
        return fieldError("trigger.query", `must be at most ${longestQuery} characters as a query string`)
      }
      return Result.succeed(input)
    })
  )

/** The mocks of steps; `mocks` take precedence over `context`. */
export const mocksOf = ({ context, mocks }: WorkflowTrialInput): ReadonlyMap<string, Mock> =>
  new Map(
    Object.entries({ ...context?.steps, ...mocks }).map(([id, { error, output }]) => {
      return [
        id,
        { ...(output === undefined ? {} : { output }), ...((error ?? null) === null ? {} : { error: error! }) }
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
