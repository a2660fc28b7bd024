import { Effect, Option, Schedule } from "effect"
import { Argument, Command, Flag, Prompt } from "effect/cli"
import { CliFailure, usage } from "../Failure.ts"
import { call, idsOf, type Schemas } from "../Gateway.ts"
import { Json, progress, progressOver, rows, say, type Row, tell } from "../Output.ts"
import { eventFilters, requestFilters } from "./filters.ts"

type Operation = Schemas["BulkOperation"]
type Of = "events" | "requests"

const operationRow = ({ created_at, done_count, failed_count, id, status, total_count, type }: Operation): Row => ({
  id,
  type,
  status,
  total: total_count,
  done: done_count,
  failed: failed_count,
  time: created_at
})

const isOver = ({ status }: Operation): boolean => status !== "PLANNED" && status !== "RUNNING"

const operation = (of: Of, id: string) =>
  call((client, signal) => {
    const options = { params: { path: { id } }, signal }
    return of === "events"
      ? client.get("/events/bulk_operations/{id}", options)
      : client.get("/requests/bulk_operations/{id}", options)
  })

/** Tells how far it is until it is at its end. */
const followed = (of: Of, id: string) =>
  operation(of, id).pipe(
    Effect.tap(({ done_count, failed_count, status, total_count }) =>
      progress(`${status}: ${done_count + failed_count} of ${total_count}`)
    ),
    Effect.repeat({ until: isOver, schedule: Schedule.spaced("500 millis") }),
    Effect.ensuring(progressOver)
  )

const words = ({ done_count, failed_count, id, status, total_count }: Operation): string =>
  `${id} ${status}: ${done_count} of ${total_count} retried, ${failed_count} could not be`

/** Tells how it is; one that has not come to its end has failed. */
const ending = (last: Operation) =>
  Effect.andThen(
    tell(last, words(last)),
    last.status === "FAILED" || last.status === "CANCELLED"
      ? Effect.fail(new CliFailure({ code: "failed", message: `${last.id} ended as ${last.status}` }))
      : Effect.void
  )

const running = {
  yes: Flag.Boolean("yes").pipe(Flag.withAlias("y"), Flag.withDefault(false), Flag.withDescription("Do not ask")),
  wait: Flag.Boolean("wait").pipe(Flag.withDefault(true), Flag.withDescription("Wait until it is done"))
}

/** Nothing is retried in bulk that nobody has agreed to. */
const agreed = (what: string, yes: boolean) => {
  if (yes) return Effect.void
  if (!process.stdin.isTTY) return Effect.fail(usage(`${what} would be retried: say --yes`))
  return Effect.flatMap(Prompt.run(Prompt.Confirm({ message: `${what} will be retried. Go on?` })), (isAgreed) =>
    isAgreed ? Effect.void : Effect.fail(new CliFailure({ code: "failed", message: "nothing was done" }))
  )
}

const run = (
  of: Of,
  total: number,
  isExact: boolean,
  asked: { readonly yes: boolean; readonly wait: boolean },
  start: () => ReturnType<typeof operation>
) =>
  Effect.gen(function* () {
    if (total === 0) {
      const nothing = "nothing was found: nothing is retried"
      return yield* (yield* Json) ? tell({ total_count: 0, message: nothing }, nothing) : say(nothing)
    }
    yield* agreed(`${isExact ? "" : "at least "}${total} ${of}`, asked.yes)
    const started = yield* start()
    if (!(yield* Json)) yield* say(started.id)
    return yield* ending(asked.wait ? yield* followed(of, started.id) : started)
  })

const some = <A, K extends string>(name: K, value: Option.Option<A>): { readonly [_ in K]?: A } =>
  Option.match(value, { onNone: () => ({}), onSome: (value) => ({ [name]: value }) as { readonly [_ in K]: A } })

const list = <K extends string>(name: K, values: ReadonlyArray<string>): { readonly [_ in K]?: Array<string> } =>
  values.length === 0 ? {} : ({ [name]: [...values] } as { readonly [_ in K]: Array<string> })

const events = Command.make(
  "events",
  { ...eventFilters, ...running },
  Effect.fn(function* ({ connection, destination, from, search, source, status, to, ...asked }) {
    // The end is fixed before anything is counted, so that what is counted is what is retried.
    const filter = {
      to: Option.getOrElse(to, () => new Date().toISOString()),
      ...some("from", from),
      ...some("q", search),
      ...list("source_id", yield* idsOf("source", source)),
      ...list("destination_id", yield* idsOf("destination", destination)),
      ...list("connection_id", yield* idsOf("connection", connection)),
      ...(status.length === 0 ? {} : { status: [...status] })
    }
    const { total, total_exact } = yield* call((client, signal) =>
      client.get("/events/count", { params: { query: filter }, signal })
    )
    yield* run("events", total, total_exact, asked, () =>
      call((client, signal) => client.post("/events/bulk_operations", { body: filter, signal }))
    )
  })
).pipe(Command.withDescription("Retries all events that are found"))

const requests = Command.make(
  "requests",
  { ...requestFilters, ...running },
  Effect.fn(function* ({ from, search, source, status, to, ...asked }) {
    const filter = {
      to: Option.getOrElse(to, () => new Date().toISOString()),
      ...some("from", from),
      ...some("q", search),
      ...list("source_id", yield* idsOf("source", source)),
      ...some("status", status)
    }
    const { total, total_exact } = yield* call((client, signal) =>
      client.get("/requests/count", { params: { query: filter }, signal })
    )
    yield* run("requests", total, total_exact, asked, () =>
      call((client, signal) => client.post("/requests/bulk_operations", { body: filter, signal }))
    )
  })
).pipe(Command.withDescription("Replays all requests that are found"))

const listing = Command.make(
  "list",
  {},
  Effect.fn(function* () {
    const all = yield* call(async (client, signal) => [
      ...(await client.get("/events/bulk_operations", { signal })).models,
      ...(await client.get("/requests/bulk_operations", { signal })).models
    ])
    yield* rows(
      all.toSorted((left, right) => (left.created_at < right.created_at ? 1 : -1)),
      operationRow
    )
  })
).pipe(Command.withDescription("Bulk operations of the last 30 days, newest first"))

const id = Argument.String("id").pipe(Argument.withDescription("The operation, bch_…"))

/** An operation is of one kind or the other, and its id does not say of which. */
const either = <A, R>(run: (of: Of) => Effect.Effect<A, CliFailure, R>) =>
  Effect.catchIf(
    run("events"),
    ({ code }) => code === "missing",
    () => run("requests")
  )

const wait = Command.make(
  "wait",
  { id },
  Effect.fn(function* ({ id }) {
    yield* ending(yield* either((of) => followed(of, id)))
  })
).pipe(Command.withDescription("Waits until an operation is done, and tells how far it is"))

const cancelled = (of: Of, id: string) =>
  call((client, signal) => {
    const options = { params: { path: { id } }, signal }
    return of === "events"
      ? client.post("/events/bulk_operations/{id}/cancel", options)
      : client.post("/requests/bulk_operations/{id}/cancel", options)
  })

const cancel = Command.make(
  "cancel",
  { id },
  Effect.fn(function* ({ id }) {
    const last = yield* either((of) => cancelled(of, id))
    yield* tell(last, words(last))
  })
).pipe(Command.withDescription("Ends an operation; what it has queued is delivered all the same"))

export const bulk = Command.make("bulk").pipe(
  Command.withDescription("Retries many events or requests at once"),
  Command.withSubcommands([events, requests, listing, wait, cancel])
)
