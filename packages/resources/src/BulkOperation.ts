import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import {
  type BulkFilter,
  type BulkKind,
  type BulkNarrowing,
  type BulkOf,
  filtersOf,
  rateBounds
} from "@tidegate/model/BulkOperation"
import { maxValues } from "@tidegate/model/BodyLimits"
import { type EventStatus, isPending } from "@tidegate/model/Event"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { namesOf, type RecordFilter } from "@tidegate/model/RecordFilter"
import { parseTime } from "@tidegate/model/Timestamp"
import { fieldError, type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"
import { OneOf, optional, Storable, text } from "./Members.ts"
import { readNarrowing, separated } from "./Narrowing.ts"
import { ids } from "./ExampleIds.ts"

/** The body of a new bulk operation: the declared filters of the list, and how to run it. */

const day = 86_400_000
const longest = 200

const short = Storable(longest)
const Moment = text.check(
  Schema.makeFilter((at: string) => parseTime(at, 0) !== null || "must be ISO 8601, now, or now-<n><s|m|h|d>")
)
/**
 * One or several values: as a list, or separated by commas. An empty one is invalid: a filter left blank by mistake would match
 * everything.
 */
const Values = Schema.Union([short, Schema.Array(short)])
  .annotate({ message: "must be a string, or a list of strings" })
  .check(Schema.makeFilter((given) => separated([given]).length > 0 || "must name at least one"))

const Flag = Schema.Boolean.annotate({ message: "must be true or false" })
const Rate = Schema.Int.check(Schema.isBetween(rateBounds)).annotate({
  message: `must be a whole number from ${rateBounds.minimum} to ${rateBounds.maximum}`
})

/** The same for a text: a blank one would filter nothing. */
const Said = short.check(Schema.makeFilter((given) => given.trim() !== "" || "must not be blank"))

const inputOf = (declared: RecordFilter): Schema.Top => {
  if (declared.kind === "word") return OneOf(declared.words)
  return declared.kind === "flag" ? Flag : declared.kind === "text" ? Said : Values
}

/** A member for each name of each filter. */
const membersOf = <Member>(of: BulkOf, member: (own: string, declared: RecordFilter, alias: boolean) => Member) =>
  Object.fromEntries(namesOf(filtersOf[of]).map(([name, own, declared]) => [name, member(own, declared, name !== own)]))

const windowNames = { from: Moment, to: Moment, start: Moment, end: Moment }
const running = { all: Flag, confirm: Flag, rate: Rate }
const actions = ["retry", "cancel"] as const
/** Whether operations on these records can cancel them. */
const hasActions = (of: BulkOf): boolean => of === "events" || of === "workflow_runs"

const inputsOf = (of: BulkOf) =>
  Schema.Struct({
    ...Object.fromEntries(
      Object.entries({ ...windowNames, ...running }).map(([name, schema]) => [name, optional(schema)])
    ),
    ...(hasActions(of) ? { action: optional(OneOf(actions)) } : {}),
    ...membersOf(of, (_, declared) => optional(inputOf(declared) as Schema.Codec<unknown>))
  }) as unknown as Schema.Codec<Input>

interface Input {
  readonly from?: string
  readonly to?: string
  readonly start?: string
  readonly end?: string
  readonly all?: boolean
  readonly confirm?: boolean
  readonly rate?: number
  readonly action?: (typeof actions)[number]
}

const inputs = {
  requests: inputsOf("requests"),
  events: inputsOf("events"),
  ignored_events: inputsOf("ignored_events"),
  workflow_runs: inputsOf("workflow_runs")
}

/** A new operation. */
export interface BulkRequest {
  readonly type: BulkKind
  readonly filter: BulkFilter
  /** Targets per second at most. */
  readonly rate: number | null
  /** Whether it starts when its plan is complete; otherwise it waits for confirmation. */
  readonly confirmed: boolean
}

const typeOf = (of: BulkOf, { action }: Input): BulkKind => {
  if (of === "requests") return "request_bulk_retry"
  if (of === "ignored_events") return "ignored_event_bulk_retry"
  if (of === "workflow_runs") return action === "cancel" ? "workflow_run_bulk_cancel" : "workflow_run_bulk_retry"
  return action === "cancel" ? "event_bulk_cancel" : "event_bulk_retry"
}

const waiting: ReadonlyArray<EventStatus> = ["SCHEDULED", "QUEUED", "HOLD"]

/** The states of runs for which an operation can do something. */
const runStates = {
  workflow_run_bulk_retry: { of: ["failed"], why: "a step of a run that has failed can be retried" },
  workflow_run_bulk_cancel: { of: ["queued", "running"], why: "runs that have ended cannot be cancelled" }
} as const

/** Adds the default exclusions of an operation's kind, and refuses filters for which it could do nothing. */
const completed = (type: BulkKind, narrowing: BulkNarrowing): Result.Result<BulkNarrowing, FieldErrors> => {
  if (type === "event_bulk_retry") return Result.succeed({ resolved: false, ...narrowing })
  if (type === "workflow_run_bulk_retry" || type === "workflow_run_bulk_cancel") {
    const { of, why } = runStates[type]
    const status = (narrowing["status"] ?? of) as ReadonlyArray<string>
    return status.every((one) => (of as ReadonlyArray<string>).includes(one))
      ? Result.succeed({ ...narrowing, status })
      : fieldError("status", `must be of ${of.join(", ")}: ${why}`)
  }
  if (type !== "event_bulk_cancel") return Result.succeed(narrowing)
  const { status = waiting } = narrowing
  return (status as ReadonlyArray<EventStatus>).every(isPending)
    ? Result.succeed({ ...narrowing, status: status as ReadonlyArray<string> })
    : fieldError("status", `must be of ${waiting.join(", ")}: finished events cannot be cancelled`)
}

/** A time under one of its two names. */
const timeOf = (
  input: Input,
  name: "from" | "to",
  alias: "start" | "end"
): Result.Result<string | undefined, FieldErrors> => {
  const [own, other] = [input[name]?.trim(), input[alias]?.trim()]
  return own !== undefined && other !== undefined && own !== other
    ? fieldError(alias, `is an alias of ${name}, which has another value`)
    : Result.succeed(own ?? other)
}

const unlimited = [
  {
    path: "all",
    message: "must be true if no other member limits the operation: it would include all records"
  }
]

/**
 * Resolves the window to absolute times, none in the future: records made later do not belong to it. The default window is that
 * of the list, one day; `all` and a named request mean any time.
 */
const inTime = (
  narrowing: BulkNarrowing,
  times: { readonly from: string | undefined; readonly to: string | undefined },
  whenever: boolean,
  now: number
): Result.Result<BulkFilter, GatewayError> => {
  const to = Math.min(now, parseTime(times.to ?? "now", now) ?? now)
  const from = times.from === undefined ? (whenever ? 0 : Math.max(0, to - day)) : (parseTime(times.from, now) ?? 0)
  return from > to
    ? Result.fail(fail("INVALID_TIME_RANGE", "from is later than to"))
    : Result.succeed({ from: new Date(from).toISOString(), to: new Date(to).toISOString(), ...narrowing })
}

const judge =
  (of: BulkOf) =>
  (written: Members, now: number): Result.Result<BulkRequest, GatewayError> =>
    Result.gen(function* () {
      const judged = yield* orInvalid(
        judgeBody(inputs[of], written, (input) =>
          Result.gen(function* () {
            const type = typeOf(of, input)
            const given = (yield* readNarrowing(filtersOf[of], { ...input })) as BulkNarrowing
            const narrowing = yield* completed(type, given)
            const from = yield* timeOf(input, "from", "start")
            const to = yield* timeOf(input, "to", "end")
            const conditions = Object.keys(given).filter((name) => name !== "batch_operation_scope")
            const isNarrowed = conditions.length > 0 || from !== undefined || to !== undefined
            return { type, narrowing, times: { from, to }, isNarrowed, input }
          })
        )
      )
      const { input, isNarrowed, narrowing, times, type } = judged
      if (!isNarrowed && input.all !== true) return yield* Result.fail(invalid(unlimited))
      const whenever = input.all === true || narrowing["request_id"] !== undefined
      const filter = yield* inTime(narrowing, times, whenever, now)
      return { type, filter, rate: input.rate ?? null, confirmed: input.confirm ?? true }
    })

const shown = (declared: RecordFilter): Schema.Top => {
  const item = declared.kind === "words" || declared.kind === "word" ? Schema.Literals(declared.words) : Schema.String
  switch (declared.kind) {
    case "flag":
      return Schema.Boolean
    case "text":
      return Schema.String.check(Characters.upTo(longest))
    case "word":
      return item
    default:
      return Schema.Union([item, Schema.Array(item).check(Schema.isMaxLength(maxValues))])
  }
}

const describedOf = (of: BulkOf, identifier: string, description: string, example: Schema.Json) =>
  Schema.Struct({
    from: optional(
      Schema.String.annotate({
        description:
          "Start of the window: ISO 8601, or now-<n><s|m|h|d> (default: a day before its end; with `all` unlimited)"
      })
    ),
    to: optional(Schema.String.annotate({ description: "End of the window, not in the future (default: now)" })),
    start: optional(Schema.String.annotate({ description: "Alias of from" })),
    end: optional(Schema.String.annotate({ description: "Alias of to" })),
    all: optional(
      Schema.Boolean.annotate({
        description: "true: records of any time. Required if no other member limits the operation"
      })
    ),
    confirm: optional(
      Schema.Boolean.annotate({
        description:
          "false: only a plan is made, which starts when it is confirmed; by default the operation starts at once"
      })
    ),
    rate: optional(
      Schema.Int.check(Schema.isBetween(rateBounds)).annotate({
        description: "The largest number of targets per second (default: as many as live traffic allows)"
      })
    ),
    ...(hasActions(of)
      ? {
          action: optional(
            Schema.Literals(actions).annotate({
              description: `retry (the default), or cancel, for ${of === "events" ? "events that wait" : "runs that have not ended"}`
            })
          )
        }
      : {}),
    ...(membersOf(of, (name, declared, isAlias) =>
      optional(shown(declared).annotate({ description: isAlias ? `Alias of ${name}` : declared.description }))
    ) as Readonly<Record<string, Schema.optionalKey<Schema.Codec<unknown>>>>)
  }).annotate({ identifier, description, examples: [example as never] }) as unknown as Schema.Codec<
    Readonly<Record<string, unknown>>
  >

const found = "those that the list with the same filters shows"
const example = { from: "now-1h", to: "now", status: "FAILED", connection_id: ids.connection } as const
const requestExample = { from: "now-1h", to: "now", status: "rejected", source_id: ids.source } as const
const ignoredExample = {
  from: "now-1h",
  to: "now",
  cause: "TRANSFORMATION_FAILED",
  connection_id: ids.connection
} as const

const runExample = {
  from: "now-1h",
  to: "now",
  workflow_id: ids.workflow,
  error_code: "TIMEOUT",
  confirm: false
} as const

export const requestBulkBody = {
  described: describedOf("requests", "RequestBulkRetry", `Which requests: ${found}.`, requestExample),
  example: requestExample,
  judge: judge("requests")
}

export const eventBulkBody = {
  described: describedOf(
    "events",
    "EventBulkRetry",
    `Which events: ${found}. A retry leaves out events that a later retry has resolved, unless \`resolved\` is set.`,
    example
  ),
  example,
  judge: judge("events")
}

export const ignoredEventBulkBody = {
  described: describedOf("ignored_events", "IgnoredEventBulkRetry", `Which ignored events: ${found}.`, ignoredExample),
  example: ignoredExample,
  judge: judge("ignored_events")
}

export const workflowRunBulkBody = {
  described: describedOf(
    "workflow_runs",
    "WorkflowRunBulkOperation",
    `Which runs: ${found}. A retry takes failed runs, and a cancellation runs that have not ended, unless \`status\` says which of them.`,
    runExample
  ),
  example: runExample,
  judge: judge("workflow_runs")
}
