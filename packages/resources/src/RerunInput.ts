import { Result, Schema } from "effect"
import { type StoredHead, storedHeaders, type Values } from "@tidegate/model/Message"
import { fieldError, type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"
import { setting } from "./Members.ts"
import { isQueryTooLong, longestQuery, RequestSample, ShownRequestSample } from "./RequestParts.ts"
import { storedSample } from "./WorkflowDryRun.ts"

/** Begins a run again: by which version, and with which changes of its request. */

const versions = ["pinned", "current"] as const

const Version = Schema.Union([
  Schema.Literals(versions),
  Schema.Int.check(Schema.isGreaterThan(0), Schema.isLessThan(2 ** 31))
]).annotate({ message: "must be pinned, current, or the number of a version" })

const Message = Schema.Struct({ version: setting(Version), trigger: setting(RequestSample) })
export const rerunMessage = Message
export type RerunInput = typeof Message.Type

export const rerunExample = { version: "current", trigger: { body: { id: "o_1", total: 120 } } } as const

export const RerunInput = Schema.Struct({
  version: setting(
    Version.annotate({
      description:
        "`pinned` (the default): the version of the run. `current`: the workflow's version now. Or the number of a version"
    })
  ),
  trigger: setting(ShownRequestSample)
}).annotate({ identifier: "WorkflowRerunInput", examples: [rerunExample] as never })

export const judgeRerun = (written: Members) =>
  orInvalid(
    judgeBody(Message, written, (input): Result.Result<RerunInput, FieldErrors> =>
      isQueryTooLong(input.trigger ?? {})
        ? fieldError("trigger.query", `must be at most ${longestQuery} characters as a query string`)
        : Result.succeed(input)
    )
  )

/** The parts of a stored request that change. */
export type ChangedRequest = Partial<StoredHead & { readonly body: Uint8Array }>

/** These describe the body that is replaced. */
const ofBody = new Set(["content-type", "content-length", "content-encoding"])

/**
 * The headers of a request that gets another body: JSON, unless it is a text and the request was no JSON either. So the new body is
 * parsed as it was written.
 */
const headersFor = (body: Schema.Json, stored: StoredHead): Values => {
  const before = storedHeaders(stored)
  const type = String(before["content-type"] ?? "application/json")
  return {
    ...Object.fromEntries(Object.entries(before).filter(([name]) => !ofBody.has(name))),
    "content-type": typeof body === "string" && !/json/i.test(type) ? type : "application/json"
  }
}

/** Whether the body of the stored request is still needed. */
export const keepsBody = ({ trigger }: RerunInput): boolean => trigger?.body === undefined

/** What changes in a stored request; null: nothing. */
export const changeOf = ({ trigger }: RerunInput): ((stored: StoredHead) => ChangedRequest) | null => {
  const sample = trigger ?? {}
  if (Object.keys(sample).length === 0) return null
  return (stored) => {
    const { body, method, path, query } = sample
    const headers = sample.headers ?? (body === undefined ? undefined : headersFor(body, stored))
    const changed = storedSample(headers === undefined ? sample : { ...sample, headers })
    return {
      ...(method === undefined ? {} : { method }),
      ...(path === undefined ? {} : { path }),
      ...(query === undefined ? {} : { query: changed.query }),
      ...(headers === undefined ? {} : { headers: changed.headers }),
      ...(body === undefined ? {} : { body: changed.body })
    }
  }
}
