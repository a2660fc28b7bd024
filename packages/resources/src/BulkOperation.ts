import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import type { BulkFilter, BulkKind } from "@tidegate/model/BulkOperation"
import { maxValues } from "@tidegate/model/BodyLimits"
import { EventStatus } from "@tidegate/model/Event"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { RequestStatus } from "@tidegate/model/Request"
import { parseTime } from "@tidegate/model/Timestamp"
import { fieldError, type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"
import { optional, Storable, text } from "./Members.ts"
import { ids } from "./Story.ts"

/** What a bulk operation is asked for with. */

const day = 86_400_000
const longest = 200

const valuesOf = (...given: ReadonlyArray<string | ReadonlyArray<string> | undefined>): ReadonlyArray<string> => [
  ...new Set(
    given
      .flat()
      .flatMap((one) => one?.split(",") ?? [])
      .map((one) => one.trim())
      .filter((one) => one !== "")
  )
]

const short = Storable(longest)
const Moment = text.check(
  Schema.makeFilter((at: string) => parseTime(at, 0) !== null || "must be ISO 8601, now, or now-<n><s|m|h|d>")
)
/**
 * One value, or several: as a list, or separated by commas. None is no value: a filter that its caller left blank by mistake would
 * retry everything.
 */
const Values = Schema.Union([short, Schema.Array(short)])
  .annotate({ message: "must be a string, or a list of strings" })
  .check(Schema.makeFilter((given) => valuesOf(given).length > 0 || "must name one at least"))

const window = {
  from: optional(Moment),
  to: optional(Moment),
  start: optional(Moment),
  end: optional(Moment),
  q: optional(short),
  search: optional(short),
  search_term: optional(short),
  status: optional(Values),
  source_id: optional(Values)
}

const Input = Schema.Struct({
  ...window,
  connection_id: optional(Values),
  webhook_id: optional(Values),
  destination_id: optional(Values)
})
type Input = typeof Input.Type

const wordsOf: { readonly [kind in BulkKind]: ReadonlyArray<string> } = {
  request_bulk_retry: RequestStatus.literals,
  event_bulk_retry: EventStatus.literals
}

/** Each under its own name, or another. */
const names = [
  ["from", "start"],
  ["to", "end"],
  ["q", "search", "search_term"]
] as const

/** What stands under two names of one thing, and is not the same. */
const contradictions = (input: Input): FieldErrors =>
  names.flatMap((all) => {
    const [first, ...others] = all.filter((name) => (input[name]?.trim() ?? "") !== "")
    const other = others.find((name) => first !== undefined && input[name]?.trim() !== input[first]?.trim())
    return other === undefined
      ? []
      : [{ path: other, message: `is another name of ${first}, which says something else` }]
  })

/** The filter, without its times. */
const narrowing = (kind: BulkKind, input: Input): Result.Result<Omit<BulkFilter, "from" | "to">, FieldErrors> => {
  const isOfEvents = kind === "event_bulk_retry"
  const faults = contradictions(input)
  if (faults.length > 0) return Result.fail(faults)
  const known = wordsOf[kind]
  const status = valuesOf(input.status).map((one) => (isOfEvents ? one.toUpperCase() : one.toLowerCase()))
  if (!status.every((one) => known.includes(one))) return fieldError("status", `must be of ${known.join(", ")}`)
  if (!isOfEvents && status.length > 1) return fieldError("status", "must be one of accepted, rejected")
  const lists = {
    status,
    source_id: valuesOf(input.source_id),
    connection_id: isOfEvents ? valuesOf(input.connection_id, input.webhook_id) : [],
    destination_id: isOfEvents ? valuesOf(input.destination_id) : []
  }
  const tooMany = Object.entries(lists).find(([, values]) => values.length > maxValues)
  if (tooMany !== undefined) return fieldError(tooMany[0], `takes at most ${maxValues} values`)
  const q = [input.q, input.search, input.search_term].map((one) => one?.trim() ?? "").find((one) => one !== "")
  return Result.succeed({
    ...Object.fromEntries(Object.entries(lists).filter(([, values]) => values.length > 0)),
    ...(q === undefined ? {} : { q })
  })
}

/** In absolute times, none of them to come: what is made later is not retried. */
const inTime = (
  filter: Omit<BulkFilter, "from" | "to">,
  input: Input,
  now: number
): Result.Result<BulkFilter, GatewayError> => {
  const written = { from: input.from ?? input.start, to: input.to ?? input.end }
  const to = Math.min(now, parseTime(written.to ?? "now", now) ?? now)
  const from = written.from === undefined ? Math.max(0, to - day) : (parseTime(written.from, now) ?? 0)
  return from > to
    ? Result.fail(fail("INVALID_TIME_RANGE", "from is later than to"))
    : Result.succeed({ from: new Date(from).toISOString(), to: new Date(to).toISOString(), ...filter })
}

const values = <S extends Schema.Top>(description: string, item: S) =>
  optional(Schema.Union([item, Schema.Array(item).check(Schema.isMaxLength(maxValues))]).annotate({ description }))

const searched = (description: string) => Schema.String.check(Characters.upTo(longest)).annotate({ description })

const shownTimes = {
  from: optional(
    Schema.String.annotate({
      description: "Start of the window: ISO 8601, or now-<n><s|m|h|d>; a day before its end unless told"
    })
  ),
  to: optional(Schema.String.annotate({ description: "End of the window, at the latest now", default: "now" })),
  q: optional(searched("Looks for this as the list does")),
  start: optional(Schema.String.annotate({ description: "Alias of from" })),
  end: optional(Schema.String.annotate({ description: "Alias of to" })),
  search: optional(searched("Alias of q")),
  search_term: optional(searched("Alias of q")),
  source_id: values("Of these sources", Schema.String)
}

const example = { from: "now-1h", to: "now", status: "FAILED", connection_id: ids.connection } as const
const requestExample = { from: "now-1h", to: "now", status: "rejected", source_id: ids.source } as const

const RequestBulkRetry = Schema.Struct({
  ...shownTimes,
  status: optional(RequestStatus)
}).annotate({
  identifier: "RequestBulkRetry",
  description: "Which requests: those that the list with the same filters shows.",
  examples: [requestExample]
})

const EventBulkRetry = Schema.Struct({
  ...shownTimes,
  status: values("Of these states", EventStatus),
  connection_id: values("Of these connections", Schema.String),
  webhook_id: values("Alias of connection_id", Schema.String),
  destination_id: values("To these destinations", Schema.String)
}).annotate({
  identifier: "EventBulkRetry",
  description: "Which events: those that the list with the same filters shows.",
  examples: [example]
})

const judge =
  (kind: BulkKind) =>
  (written: Members, now: number): Result.Result<BulkFilter, GatewayError> =>
    Result.flatMap(
      orInvalid(
        judgeBody(Input, written, (input) => Result.map(narrowing(kind, input), (filter) => [filter, input] as const))
      ),
      ([filter, input]) => inTime(filter, input, now)
    )

export const requestBulkBody = {
  described: RequestBulkRetry,
  example: requestExample,
  judge: judge("request_bulk_retry")
}

export const eventBulkBody = { described: EventBulkRetry, example, judge: judge("event_bulk_retry") }
