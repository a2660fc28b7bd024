import { Result, Schema } from "effect"
import { fieldError, type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"
import { setting } from "./Members.ts"
import { isQueryTooLong, longestQuery, RequestSample, ShownRequestSample } from "./RequestParts.ts"
import { storedSample } from "./WorkflowDryRun.ts"

/** What a run that is begun by a call has in the place of a request. */

export const workflowRunExample = { trigger: { body: { month: "2026-01" } } } as const

export const WorkflowRunInput = Schema.Struct({
  trigger: setting(ShownRequestSample)
}).annotate({ identifier: "WorkflowRunInput", examples: [workflowRunExample] as never })

const Message = Schema.Struct({ trigger: setting(RequestSample) })

/** The input of a run, in the form of a stored request. */
export const judgeWorkflowRun = (written: Members) =>
  orInvalid(
    judgeBody(Message, written, ({ trigger }): Result.Result<ReturnType<typeof storedSample>, FieldErrors> => {
      const sample = trigger ?? {}
      return isQueryTooLong(sample)
        ? fieldError("trigger.query", `must be at most ${longestQuery} characters as a query string`)
        : Result.succeed(storedSample(sample))
    })
  )
