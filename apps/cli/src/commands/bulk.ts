import { Effect, Option, Schedule } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CliFailure } from "../Failure.ts"
import { call, idsOf, type Schemas } from "../Gateway.ts"
import { Json, progress, progressOver, rows, say, type Row, tell } from "../Output.ts"
import { agreed, unasked } from "./agreed.ts"
import { eventFilters, requestFilters } from "./filters.ts"

type Operation = Schemas["BulkOperation"]
type Of = "events" | "requests" | "ignored_events" | "workflow_runs"

const operationRow = ({
  created_at,
  done_count,
  error,
  failed_count,
  id,
  status,
  total_count,
  type
}: Operation): Row => ({
  id,
  type,
  status,
  total: total_count,
  done: done_count,
  failed: failed_count,
  error: error?.code ?? null,
  time: created_at
})

const isOver = ({ status }: Operation): boolean => status !== "PLANNED" && status !== "RUNNING"

const operation = (of: Of, id: string) =>
  call((client, signal) => client.get(`/${of}/bulk_operations/{id}`, { params: { path: { id } }, signal }))

/** Shows the progress of an operation until it has ended. */
const followed = (of: Of, id: string) =>
  operation(of, id).pipe(
    Effect.tap(({ done_count, failed_count, status, total_count }) =>
      progress(`${status}: ${done_count + failed_count} of ${total_count}`)
    ),
    Effect.repeat({ until: isOver, schedule: Schedule.spaced("500 millis") }),
    Effect.ensuring(progressOver)
  )

const words = ({ done_count, error, failed_count, id, status, total_count, type }: Operation): string =>
  [
    `${id} ${status}: ${done_count} of ${total_count} ${type.endsWith("_cancel") ? "cancelled" : "retried"}, ${failed_count} could not be`,
    // An older gateway returns no error.
    ...(error ? [`${error.code}: ${error.message}`] : [])
  ].join("; ")

/** Prints the result; a failed or cancelled operation is an error. */
const ending = (last: Operation) =>
  Effect.andThen(
    tell(last, words(last)),
    last.status === "FAILED" || last.status === "CANCELLED"
      ? Effect.fail(new CliFailure({ code: "failed", message: `${last.id} ended as ${last.status}` }))
      : Effect.void
  )

const running = {
  yes: unasked,
  wait: Flag.Boolean("wait").pipe(
    Flag.withDefault(true),
    Flag.withDescription("Waits until the operation is complete")
  ),
  plan: Flag.Boolean("plan").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Prints how many records would be affected, and changes nothing")
  ),
  all: Flag.Boolean("all").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Records of any time; required if there is no other filter")
  ),
  rate: Flag.Int("rate").pipe(Flag.optional, Flag.withDescription("Maximum number of records per second"))
}

const changed = (verb: "cancel" | "run", of: Of, id: string) =>
  call((client, signal) => client.post(`/${of}/bulk_operations/{id}/${verb}`, { params: { path: { id } }, signal }))

/** Waits until the gateway has found all that the operation applies to. */
const planned = (of: Of, id: string) =>
  operation(of, id).pipe(
    Effect.tap(({ total_count }) => progress(`found ${total_count}`)),
    Effect.repeat({ until: ({ planned_at }) => planned_at !== null, schedule: Schedule.spaced("200 millis") }),
    Effect.ensuring(progressOver)
  )

/** Creates a plan, shows its size, and after confirmation runs exactly that plan. A plan that is not confirmed is cancelled. */
const run = (
  of: Of,
  verb: string,
  asked: { readonly yes: boolean; readonly wait: boolean; readonly plan: boolean },
  create: () => ReturnType<typeof operation>
) =>
  Effect.gen(function* () {
    const plan = yield* planned(of, (yield* create()).id)
    const { id, total_count: total } = plan
    if (total === 0) {
      const nothing = `nothing was found: nothing is ${verb}`
      return yield* (yield* Json) ? tell({ total_count: 0, message: nothing }, nothing) : say(nothing)
    }
    const what = `${total} ${of.replace("_", " ")} would be ${verb}`
    if (asked.plan) {
      yield* changed("cancel", of, id)
      return yield* tell(plan, [what, ...plan.sample].join("\n"))
    }
    yield* Effect.tapError(agreed(what, asked.yes), () => Effect.ignore(changed("cancel", of, id)))
    const started = yield* changed("run", of, id)
    if (!(yield* Json)) yield* say(started.id)
    return yield* ending(asked.wait ? yield* followed(of, started.id) : started)
  })

const some = <A, K extends string>(name: K, value: Option.Option<A>): { readonly [_ in K]?: A } =>
  Option.match(value, { onNone: () => ({}), onSome: (value) => ({ [name]: value }) as { readonly [_ in K]: A } })

const list = <K extends string>(name: K, values: ReadonlyArray<string>): { readonly [_ in K]?: Array<string> } =>
  values.length === 0 ? {} : ({ [name]: [...values] } as { readonly [_ in K]: Array<string> })

const codes = (name: string, described: string) =>
  Flag.String(name).pipe(Flag.atMost(100), Flag.withDescription(`${described}; can be repeated`))

/** The options of every bulk operation, besides its filters. */
const planOf = ({ all, rate }: { readonly all: boolean; readonly rate: Option.Option<number> }) => ({
  confirm: false,
  ...(all ? { all } : {}),
  ...some("rate", rate)
})

const events = Command.make(
  "events",
  {
    ...eventFilters,
    errorCode: codes("error-code", "Only events whose last attempt failed so"),
    responseStatus: codes("response-status", "Only events whose last answer had this status, or one of 500-599"),
    resolved: Flag.Boolean("resolved").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Only failed events that a later retry has resolved")
    ),
    cancel: Flag.Boolean("cancel").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Cancels waiting events instead of retrying")
    ),
    ...running
  },
  Effect.fn(function* (given) {
    const { cancel, connection, destination, errorCode, from, resolved, responseStatus, search, source, status, to } =
      given
    const body = {
      ...planOf(given),
      ...some("to", to),
      ...some("from", from),
      ...some("q", search),
      ...list("source_id", yield* idsOf("source", source)),
      ...list("destination_id", yield* idsOf("destination", destination)),
      ...list("connection_id", yield* idsOf("connection", connection)),
      ...list("error_code", errorCode),
      ...list("response_status", responseStatus),
      ...(resolved ? { resolved } : {}),
      ...(cancel ? { action: "cancel" as const } : {}),
      ...(status.length === 0 ? {} : { status: [...status] })
    }
    yield* run("events", cancel ? "cancelled" : "retried", given, () =>
      call((client, signal) => client.post("/events/bulk_operations", { body, signal }))
    )
  })
).pipe(Command.withDescription("Retries all events that match, or cancels waiting ones"))

const requests = Command.make(
  "requests",
  {
    ...requestFilters,
    rejectionCause: codes("rejection-cause", "Only requests that were rejected for this"),
    ...running
  },
  Effect.fn(function* (given) {
    const { from, rejectionCause, search, source, status, to } = given
    const body = {
      ...planOf(given),
      ...some("to", to),
      ...some("from", from),
      ...some("q", search),
      ...list("source_id", yield* idsOf("source", source)),
      ...list("rejection_cause", rejectionCause),
      ...some("status", status)
    }
    yield* run("requests", "replayed", given, () =>
      call((client, signal) => client.post("/requests/bulk_operations", { body, signal }))
    )
  })
).pipe(Command.withDescription("Replays all requests that match"))

const ignored = Command.make(
  "ignored",
  {
    source: eventFilters.source,
    connection: eventFilters.connection,
    from: eventFilters.from,
    to: eventFilters.to,
    cause: Flag.Literals("cause", ["FILTERED", "TRANSFORMATION_FAILED", "DEDUPLICATED", "PROCESS_ENDED"]).pipe(
      Flag.atMost(4),
      Flag.withDescription("Only events that were ignored for this cause; can be repeated")
    ),
    ...running
  },
  Effect.fn(function* (given) {
    const { cause, connection, from, source, to } = given
    const body = {
      ...planOf(given),
      ...some("to", to),
      ...some("from", from),
      ...list("source_id", yield* idsOf("source", source)),
      ...list("connection_id", yield* idsOf("connection", connection)),
      ...(cause.length === 0 ? {} : { cause: [...cause] })
    }
    yield* run("ignored_events", "replayed", given, () =>
      call((client, signal) => client.post("/ignored_events/bulk_operations", { body, signal }))
    )
  })
).pipe(Command.withDescription("Replays all ignored events that match, to the connections that ignored them"))

const runs = Command.make(
  "runs",
  {
    workflow: Flag.String("workflow").pipe(
      Flag.atMost(100),
      Flag.withMetavar("id"),
      Flag.withDescription("Only of this workflow; can be repeated")
    ),
    source: eventFilters.source,
    from: eventFilters.from,
    to: eventFilters.to,
    errorCode: codes("error-code", "Only runs that failed so"),
    errorStep: codes("error-step", "Only runs that failed at this step"),
    cancel: Flag.Boolean("cancel").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Cancels runs that have not ended instead of retrying failed ones")
    ),
    ...running
  },
  Effect.fn(function* (given) {
    const { cancel, errorCode, errorStep, from, source, to, workflow } = given
    const body = {
      ...planOf(given),
      ...some("to", to),
      ...some("from", from),
      ...list("source_id", yield* idsOf("source", source)),
      ...list("workflow_id", workflow),
      ...list("error_code", errorCode),
      ...list("error_step_id", errorStep),
      ...(cancel ? { action: "cancel" as const } : {})
    }
    yield* run("workflow_runs", cancel ? "cancelled" : "retried", given, () =>
      call((client, signal) => client.post("/workflow_runs/bulk_operations", { body, signal }))
    )
  })
).pipe(Command.withDescription("Retries the failed steps of all workflow runs that match, or cancels runs"))

const listing = Command.make(
  "list",
  {},
  Effect.fn(function* () {
    const all = yield* call(async (client, signal) => [
      ...(await client.get("/events/bulk_operations", { signal })).models,
      ...(await client.get("/requests/bulk_operations", { signal })).models,
      ...(await client.get("/ignored_events/bulk_operations", { signal })).models,
      ...(await client.get("/workflow_runs/bulk_operations", { signal })).models
    ])
    yield* rows(
      all.toSorted((left, right) => (left.created_at < right.created_at ? 1 : -1)),
      operationRow
    )
  })
).pipe(Command.withDescription("Lists the bulk operations of the last 30 days, newest first"))

const id = Argument.String("id").pipe(Argument.withDescription("Id of the operation, bch_…"))

/** Finds an operation by its id, which does not reveal its kind. */
const any = <A, R>(run: (of: Of) => Effect.Effect<A, CliFailure, R>) => {
  const orElse = (of: Of, next: () => Effect.Effect<A, CliFailure, R>) =>
    Effect.catchIf(run(of), ({ code }) => code === "missing", next)
  return orElse("events", () => orElse("requests", () => orElse("ignored_events", () => run("workflow_runs"))))
}

const wait = Command.make(
  "wait",
  { id },
  Effect.fn(function* ({ id }) {
    yield* ending(yield* any((of) => followed(of, id)))
  })
).pipe(Command.withDescription("Waits until an operation is complete, and shows its progress"))

const cancel = Command.make(
  "cancel",
  { id },
  Effect.fn(function* ({ id }) {
    const last = yield* any((of) => changed("cancel", of, id))
    yield* tell(last, words(last))
  })
).pipe(Command.withDescription("Stops an operation; events that it has already queued are still delivered"))

export const bulk = Command.make("bulk").pipe(
  Command.withDescription("Retries, replays or cancels many records at once"),
  Command.withSubcommands([events, requests, ignored, runs, listing, wait, cancel])
)
