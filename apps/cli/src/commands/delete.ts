import { Effect, Option, Schedule } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CliFailure } from "../Failure.ts"
import { call, idsOf, type Schemas } from "../Gateway.ts"
import { readInput } from "../Input.ts"
import { Json, progress, progressOver, rows, say, type Row, tell } from "../Output.ts"
import { agreed, unasked } from "./agreed.ts"
import { requestFilters, sources } from "./filters.ts"

type Deletion = Schemas["DataDeletion"]

const pathOf = (id: string, signal: AbortSignal) => ({ params: { path: { id } }, signal })
const read = (id: string) => call((client, signal) => client.get("/data-deletions/{id}", pathOf(id, signal)))
const cancelled = (id: string) =>
  call((client, signal) => client.post("/data-deletions/{id}/cancel", pathOf(id, signal)))
const confirmed = (id: string) => call((client, signal) => client.post("/data-deletions/{id}/run", pathOf(id, signal)))

const isOver = ({ finished_at }: Deletion): boolean => finished_at !== null

/** Shows the progress of a deletion until it has come so far. */
const followed = (id: string, until: (deletion: Deletion) => boolean) =>
  read(id).pipe(
    Effect.tap(({ deleted_total, looked_at_count, stage }) =>
      progress(`${stage}: ${looked_at_count} rows looked at, ${deleted_total} deleted`)
    ),
    Effect.repeat({ until, schedule: Schedule.spaced("500 millis") }),
    Effect.ensuring(progressOver)
  )

const counted = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([table, count]) => `${table}: ${count}`)
    .join(", ")

/** What compressed bodies hide is said, not passed over. */
const hidden = ({ unreadable_count }: Deletion): ReadonlyArray<string> =>
  unreadable_count === 0
    ? []
    : [`${unreadable_count} compressed bodies could not be read; the text was not looked for in them`]

const words = (deletion: Deletion): string =>
  [
    `${deletion.id} ${deletion.stage}: ${deletion.deleted_total} rows deleted`,
    ...(deletion.deleted_total === 0 ? [] : [counted(deletion.deleted)]),
    ...hidden(deletion),
    ...(deletion.error === null ? [] : [`${deletion.error.code}: ${deletion.error.message}`])
  ].join("; ")

/** Prints the result; a failed or cancelled deletion is an error. */
const ending = (last: Deletion) =>
  Effect.andThen(
    tell(last, words(last)),
    last.stage === "failed" || last.stage === "cancelled"
      ? Effect.fail(new CliFailure({ code: "failed", message: `${last.id} ended as ${last.stage}` }))
      : Effect.void
  )

/** The largest text that is read from standard input, in bytes: the gateway takes 200 characters. */
const maxText = 4 * 1024

const textOf = (given: Option.Option<string>) =>
  Option.match(given, {
    onNone: () => Effect.succeed({}),
    onSome: (text) =>
      text === "-"
        ? Effect.map(readInput(maxText), (input) => ({ text: input.toString("utf8").trim() }))
        : Effect.succeed({ text })
  })

const some = <A, K extends string>(name: K, value: Option.Option<A>): { readonly [_ in K]?: A } =>
  Option.match(value, { onNone: () => ({}), onSome: (value) => ({ [name]: value }) as { readonly [_ in K]: A } })

const data = Command.make(
  "data",
  {
    text: Flag.String("text").pipe(
      Flag.optional,
      Flag.withDescription("An exact text, such as an e-mail address; - reads it from standard input")
    ),
    source: sources,
    status: requestFilters.status,
    from: requestFilters.from,
    to: requestFilters.to,
    yes: unasked,
    wait: Flag.Boolean("wait").pipe(
      Flag.withDefault(true),
      Flag.withDescription("Waits until everything is deleted, for at least a minute and a half")
    ),
    plan: Flag.Boolean("plan").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Prints how many rows would be deleted, and deletes nothing")
    )
  },
  Effect.fn(function* ({ from, plan, source, status, text, to, wait, yes }) {
    const source_id = yield* idsOf("source", source)
    const body = {
      ...(yield* textOf(text)),
      ...some("from", from),
      ...some("to", to),
      ...some("status", status),
      ...(source_id.length === 0 ? {} : { source_id: [...source_id] })
    }
    const { id } = yield* call((client, signal) => client.post("/data-deletions", { body, signal }))
    const planned = yield* followed(id, (deletion) => deletion.stage === "planned" || isOver(deletion))
    if (isOver(planned)) return yield* ending(planned)
    const what = `${planned.planned_total} rows would be deleted`
    if (planned.planned_total === 0 || plan) {
      yield* cancelled(id)
      return yield* tell(planned, [what, counted(planned.planned), ...hidden(planned)].filter(Boolean).join("\n"))
    }
    if (!(yield* Json)) yield* Effect.forEach([counted(planned.planned), ...hidden(planned)], say, { discard: true })
    yield* Effect.tapError(agreed(`${what}, and cannot be restored`, yes), () => Effect.ignore(cancelled(id)))
    const started = yield* confirmed(id)
    if (!(yield* Json)) yield* say(id)
    return yield* wait ? Effect.flatMap(followed(id, isOver), ending) : tell(started, words(started))
  })
).pipe(Command.withDescription("Deletes what has a text in it, or the requests that match, with all that came of them"))

const deletionRow = ({ deleted_total, error, id, planned_total, requested_at, stage }: Deletion): Row => ({
  id,
  stage,
  planned: planned_total,
  deleted: deleted_total,
  error: error?.code ?? null,
  time: requested_at
})

const listing = Command.make(
  "list",
  {},
  Effect.fn(function* () {
    const { data } = yield* call((client, signal) => client.get("/data-deletions", { signal }))
    yield* rows(data, deletionRow)
  })
).pipe(Command.withDescription("Lists the deletions of data, newest first"))

const id = Argument.String("id").pipe(Argument.withDescription("Id of the deletion, del_…"))

const waiting = Command.make(
  "wait",
  { id },
  Effect.fn(function* ({ id }) {
    yield* ending(yield* followed(id, isOver))
  })
).pipe(Command.withDescription("Waits until a deletion has ended, and prints what was deleted"))

const cancelling = Command.make(
  "cancel",
  { id },
  Effect.fn(function* ({ id }) {
    const last = yield* cancelled(id)
    yield* tell(last, words(last))
  })
).pipe(Command.withDescription("Stops a deletion; what it has deleted does not come back"))

export const deleting = Command.make("delete").pipe(
  Command.withDescription("Deletes stored data, by a person's text or by a filter"),
  Command.withSubcommands([data, listing, waiting, cancelling])
)
