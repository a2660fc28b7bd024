import { Effect } from "effect"
import { Command } from "effect/cli"
import { Client, streamRequests } from "@tidegate/client/source"
import { failureOf, usage } from "../Failure.ts"
import { access, call, idsOf, missing, namesAt, type Schemas } from "../Gateway.ts"
import { keepLooking, looker, once, pageLength, type Print } from "../Looker.ts"
import { Json, jsonLine, plain, say } from "../Output.ts"
import { untilStopped } from "../Stopping.ts"
import { sources } from "./filters.ts"

/** Maximum number of sources with an open stream: a gateway process allows 128 streams to a client. */
const maxSources = 32
/** How far back each poll reads, by the gateway's clock, so that records which are stored late are found. */
const lookBack = "now-10s"

/** The names of destinations, as far as known. */
const destinationNames = (client: Client, signal: AbortSignal) => {
  const names = new Map<string, string>()
  return {
    of: (id: string): string => names.get(id) ?? id,
    learn: async (ids: ReadonlyArray<string>): Promise<void> => {
      const unknown = [...new Set(ids)].filter((id) => !names.has(id))
      if (unknown.length > 0)
        for (const [id, name] of await namesAt(client, "destination", unknown, signal)) names.set(id, name)
    }
  }
}

const requestPrinter =
  (print: Print, source: { readonly id: string; readonly name: string }) =>
  (request: Schemas["CapturedRequest"]): void => {
    const { created_at, data, id, status } = request
    const size = data === null ? "" : ` ${data.size_bytes} B`
    const what = data === null ? "" : ` ${data.method} ${data.path === "" ? "/" : data.path}`
    print(
      { type: "request", source_id: source.id, request },
      `${created_at} request ${id} ${status}${what}${size} at ${source.name}`
    )
  }

/** Shows new events and attempts of these sources. It resolves after the first poll, and only records that are new since then are shown. */
const recordsOf = async (client: Client, sourceIds: ReadonlyArray<string>, print: Print, signal: AbortSignal) => {
  const isWanted = new Set(sourceIds)
  const destinations = destinationNames(client, signal)
  const found: Array<Schemas["Event"]> = []
  const looks = {
    isWanted: ({ source_id }: { readonly source_id: string }) => isWanted.has(source_id),
    skipped: () =>
      print({ type: "skipped" }, "some records are not shown, because too many arrived; the lists have all of them")
  }
  const lookAtEvents = looker<Schemas["Event"]>({
    ...looks,
    tell: (event) => void found.push(event)
  })
  const lookAtAttempts = looker<Schemas["Attempt"]>({
    ...looks,
    tell: (attempt) => {
      const { attempt_number, error_code, event_id, response_status, status } = attempt
      const answer = error_code ?? String(response_status ?? "")
      print(
        { type: "attempt", attempt },
        `${attempt.delivered_at} attempt ${attempt_number} of ${event_id} ${status} ${answer}`
      )
    }
  })
  const look = async (): Promise<void> => {
    const events = { from: lookBack, limit: pageLength, source_id: [...sourceIds] }
    await lookAtEvents(client.list("/events", { params: { query: events }, signal }))
    const news = found.splice(0)
    await destinations.learn(news.map(({ destination_id }) => destination_id))
    for (const event of news) {
      const { created_at, destination_id, id, request_id } = event
      print(
        { type: "event", event },
        `${created_at} event   ${id} of ${request_id} to ${destinations.of(destination_id)}`
      )
    }
    const attempts = { from: lookBack, limit: pageLength }
    await lookAtAttempts(client.list("/attempts", { params: { query: attempts }, signal }))
  }
  await look()
  return (): Promise<void> => keepLooking(look, print, signal)
}

export const tail = Command.make(
  "tail",
  { source: sources },
  Effect.fn(function* ({ source }) {
    const ids = yield* idsOf("source", source)
    const watched = yield* call((client, signal) =>
      client.get("/sources", { params: { query: { limit: 255, ...(ids.length > 0 ? { id: [...ids] } : {}) } }, signal })
    )
    const sources = watched.models
    if (sources.length === 0) {
      return yield* ids.length === 0 ? usage("there is no source yet") : missing("source", ids[0]!)
    }
    if (sources.length > maxSources)
      return yield* usage(`more than ${maxSources} sources cannot be watched: name them with --source`)
    const who = yield* access
    const isJson = yield* Json
    const print: Print = (json, words) => void process.stdout.write(`${isJson ? jsonLine(json) : plain(words)}\n`)
    if (!isJson)
      yield* say(`watching ${sources.length} ${sources.length === 1 ? "source" : "sources"} (Ctrl-C to stop)`)
    return yield* untilStopped(
      Effect.tryPromise({
        try: async (signal) => {
          const ending = new AbortController()
          const both = AbortSignal.any([signal, ending.signal])
          const watchRecords = await recordsOf(
            new Client(who),
            sources.map(({ id }) => id),
            print,
            both
          )
          const isNew = once()
          const streams = sources.map((source) => {
            const sourceId = source.id
            const printRequest = requestPrinter(print, source)
            return streamRequests({
              ...who,
              sourceId,
              signal: both,
              onRequest: (request) => {
                if (isNew(request.id)) printRequest(request)
              },
              onSkipped: () =>
                print(
                  { type: "skipped" },
                  "some records are not shown, because too many arrived; the lists have all of them"
                ),
              onChange: (change) => {
                if (change.type !== "disconnected")
                  return print({ type: "watching", source_id: sourceId }, `watching ${source.name}`)
                print(
                  { ...change, source_id: sourceId },
                  `the connection is lost: retrying in ${(change.retryInMs / 1000).toFixed(1)} s`
                )
              }
            })
          })
          return Promise.all([...streams, watchRecords()]).finally(() => ending.abort())
        },
        catch: failureOf
      })
    )
  })
).pipe(Command.withDescription("Shows requests, events and attempts as they arrive, until Ctrl-C"))
