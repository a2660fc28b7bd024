import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { usage } from "../Failure.ts"
import { call, idsOf, namesOf, type Schemas } from "../Gateway.ts"
import { document, Json, rows, type Row } from "../Output.ts"
import { eventFilters, requestFilters } from "./filters.ts"

const most = 10_000

const limit = Flag.Int("limit").pipe(
  Flag.withDefault(20),
  Flag.filter(
    (limit) => limit >= 1 && limit <= most,
    () => `must be from 1 to ${most}`
  ),
  Flag.withDescription("Number of records, newest first")
)

/** The first `limit` items of a list; further pages are requested only as needed. */
const firstOf = async <A>(list: AsyncIterable<A>, limit: number): Promise<ReadonlyArray<A>> => {
  const found: Array<A> = []
  for await (const item of list) {
    if (found.push(item) >= limit) break
  }
  return found
}

/** Names for the rows that people read. Programs get the records, which contain ids, so no names are requested. */
const shownNames = (kind: "source" | "destination", ids: ReadonlyArray<string>) =>
  Effect.flatMap(Json, (isJson) => (isJson ? Effect.succeed(new Map<string, string>()) : namesOf(kind, ids)))

/** Names of sources and destinations, by id. A deleted one is shown by its id. */
type Names = ReadonlyMap<string, string>

export const requestRow =
  (sources: Names) =>
  ({ created_at, events_count, id, ignored_count, rejection_cause, source_id, status }: Schemas["Request"]): Row => ({
    id,
    time: created_at,
    status,
    source: sources.get(source_id) ?? source_id,
    events: events_count,
    ignored: ignored_count,
    cause: rejection_cause
  })

export const requests = Command.make(
  "requests",
  {
    id: Argument.String("id").pipe(
      Argument.optional,
      Argument.withDescription("Id of a request, req_…: prints all of it as JSON")
    ),
    ...requestFilters,
    limit
  },
  Effect.fn(function* ({ from, id, limit, search, source, status, to }) {
    if (Option.isSome(id)) {
      return yield* document(
        yield* call((client, signal) =>
          client.get("/requests/{id}/trace", { params: { path: { id: id.value } }, signal })
        )
      )
    }
    const source_id = yield* idsOf("source", source)
    const query = {
      limit: Math.min(limit, 100),
      source_id: [...source_id],
      ...Option.match(status, { onNone: () => ({}), onSome: (status) => ({ status }) }),
      ...Option.match(from, { onNone: () => ({}), onSome: (from) => ({ from }) }),
      ...Option.match(to, { onNone: () => ({}), onSome: (to) => ({ to }) }),
      ...Option.match(search, { onNone: () => ({}), onSome: (q) => ({ q }) })
    }
    const found = yield* call((client, signal) =>
      firstOf(client.list("/requests", { params: { query }, signal }), limit)
    )
    const sources = yield* shownNames(
      "source",
      found.map(({ source_id }) => source_id)
    )
    return yield* rows(found, requestRow(sources))
  })
).pipe(Command.withDescription("Lists received requests (default: of the last 24 hours)"))

export const eventRow =
  (sources: Names, destinations: Names) =>
  ({
    attempts,
    created_at,
    destination_id,
    error_code,
    id,
    request_id,
    response_status,
    source_id,
    status
  }: Schemas["Event"]): Row => ({
    id,
    time: created_at,
    status,
    attempts,
    response: response_status,
    error: error_code,
    source: sources.get(source_id) ?? source_id,
    destination: destinations.get(destination_id) ?? destination_id,
    request: request_id
  })

export const events = Command.make(
  "events",
  {
    id: Argument.String("id").pipe(
      Argument.optional,
      Argument.withDescription("Id of an event, evt_…: prints all of it as JSON")
    ),
    ...eventFilters,
    request: Flag.String("request").pipe(Flag.optional, Flag.withDescription("Only events of this request, req_…")),
    limit
  },
  Effect.fn(function* ({ connection, destination, from, id, limit, request, search, source, status, to }) {
    if (Option.isSome(id)) {
      if (!id.value.startsWith("evt_")) return yield* usage(`${id.value} is no event: they begin with evt_`)
      return yield* document(
        yield* call((client, signal) => client.get("/events/{id}", { params: { path: { id: id.value } }, signal }))
      )
    }
    const query = {
      limit: Math.min(limit, 100),
      status: [...status],
      source_id: [...(yield* idsOf("source", source))],
      destination_id: [...(yield* idsOf("destination", destination))],
      connection_id: [...(yield* idsOf("connection", connection))],
      ...Option.match(request, { onNone: () => ({}), onSome: (request) => ({ request_id: [request] }) }),
      ...Option.match(from, { onNone: () => ({}), onSome: (from) => ({ from }) }),
      ...Option.match(to, { onNone: () => ({}), onSome: (to) => ({ to }) }),
      ...Option.match(search, { onNone: () => ({}), onSome: (q) => ({ q }) })
    }
    const found = yield* call((client, signal) => firstOf(client.list("/events", { params: { query }, signal }), limit))
    const sources = yield* shownNames(
      "source",
      found.map(({ source_id }) => source_id)
    )
    const destinations = yield* shownNames(
      "destination",
      found.map(({ destination_id }) => destination_id)
    )
    return yield* rows(found, eventRow(sources, destinations))
  })
).pipe(Command.withDescription("Lists events and their deliveries (default: of the last 24 hours)"))
