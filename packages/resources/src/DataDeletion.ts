import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { maxValues } from "@tidegate/model/BodyLimits"
import { type DataDeletionFilter, searchedLength } from "@tidegate/model/DataDeletion"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { parseTime } from "@tidegate/model/Timestamp"
import { isStorable, judgeBody, type Members, orInvalid } from "./Input.ts"
import { optional } from "./Members.ts"

/** The body of a new deletion of data. */

const { maximum, minimum } = searchedLength

const Searched = Schema.String.check(
  Characters.between(minimum, maximum),
  Schema.makeFilter(
    (text: string) => (isStorable(text) && text.trim() === text) || "must be without blanks at its ends"
  )
).annotate({
  message: `must be a text of ${minimum} to ${maximum} characters, without blanks at its ends`,
  description:
    "An exact text, such as an e-mail address or the id of a customer. What it is in is deleted: requests with all that came of them, runs of workflows, and copies. Upper and lower case differ"
})

const moment = (description: string) =>
  optional(
    Schema.String.check(
      Characters.upTo(100),
      Schema.makeFilter((at: string) => parseTime(at, 0) !== null || "must be ISO 8601, now, or now-<n><s|m|h|d>")
    ).annotate({ message: "must be ISO 8601, now, or now-<n><s|m|h|d>", description })
  )

const DataDeletionWrite = Schema.Struct({
  text: optional(Searched),
  from: moment("Nothing that was received earlier is deleted (default: unlimited)"),
  to: moment("Nothing that was received later is deleted (default: when the deletion is confirmed)"),
  source_id: optional(
    Schema.Array(Schema.String.check(Characters.upTo(100)))
      .check(Schema.isBetweenLength(1, maxValues))
      .annotate({
        message: `must be a list of 1 to ${maxValues} ids`,
        description: "Only requests of these sources"
      })
  ),
  status: optional(
    Schema.Literals(["accepted", "rejected"]).annotate({
      message: "must be accepted or rejected",
      description: "Only accepted or only rejected requests"
    })
  ),
  verified: optional(
    Schema.Boolean.annotate({
      message: "must be true or false",
      description: "Only requests whose sender was (true) or was not (false) verified"
    })
  )
}).annotate({ identifier: "DataDeletionWrite" })

/** What a deletion is asked for. */
export interface DataDeletionRequest {
  readonly text: string | null
  readonly filter: DataDeletionFilter
}

const filters = ["source_id", "status", "verified"] as const

const judge = (written: Members, now: number): Result.Result<DataDeletionRequest, GatewayError> =>
  Result.gen(function* () {
    const { from, text, to, ...narrowing } = yield* orInvalid(judgeBody(DataDeletionWrite, written, Result.succeed))
    // A text is looked for in all records, and some of them have no source.
    const beside = filters.filter((name) => narrowing[name] !== undefined)
    if (text !== undefined && beside.length > 0) {
      const message = "cannot be given beside text, which is looked for everywhere"
      return yield* Result.fail(invalid(beside.map((path) => ({ path, message }))))
    }
    if (text === undefined && beside.length === 0 && from === undefined && to === undefined) {
      return yield* Result.fail(
        invalid([{ path: "text", message: "must be given, or a filter: everything would be deleted" }])
      )
    }
    const [since, until] = [from, to].map((at) => (at === undefined ? null : parseTime(at, now)))
    if (since !== null && since !== undefined && since > (until ?? now)) {
      return yield* Result.fail(fail("INVALID_TIME_RANGE", "from is later than to"))
    }
    const iso = (name: "from" | "to", ms: number | null | undefined) =>
      ms === null || ms === undefined ? {} : { [name]: new Date(ms).toISOString() }
    return { text: text ?? null, filter: { ...iso("from", since), ...iso("to", until), ...narrowing } }
  })

export const dataDeletionBody = { described: DataDeletionWrite, judge }
