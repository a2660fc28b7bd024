import { Effect, type Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { EventStatus } from "@tidegate/model/Event"
import { LogLevel } from "@tidegate/model/Execution"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { maxValues } from "@tidegate/model/BodyLimits"
import type { Narrowing, RecordFilters } from "@tidegate/model/RecordFilter"
import { orInvalid } from "@tidegate/resources/Input"
import { readNarrowing, type Written } from "@tidegate/resources/Narrowing"
import { filterKey } from "@tidegate/storage/reads/Cursor"
import type { ResourceQuery } from "@tidegate/storage/reads/ResourceLists"
import type { WindowInput } from "@tidegate/storage/reads/Window"

type Values = ReadonlyArray<string> | undefined

/** Values that are repeated or separated by commas, under any of their names. */
export const valuesOf = Effect.fnUntraced(function* (
  path: string,
  ...lists: ReadonlyArray<Values>
): Effect.fn.Return<ReadonlyArray<string>, GatewayError> {
  const parts = lists.flatMap((list) => list ?? []).flatMap((text) => text.split(","))
  const values = [...new Set(parts.map((part) => part.trim()).filter((part) => part !== ""))]
  if (values.length > maxValues) return yield* invalid([{ path, message: `takes at most ${maxValues} values` }])
  return values
})

const isStatus = (text: string): text is EventStatus => (EventStatus.literals as ReadonlyArray<string>).includes(text)

/** Event statuses; case does not matter. */
export const statusesOf = Effect.fnUntraced(function* (
  list: Values
): Effect.fn.Return<ReadonlyArray<EventStatus>, GatewayError> {
  const names = (yield* valuesOf("status", list)).map((name) => name.toUpperCase())
  if (!names.every(isStatus)) {
    return yield* invalid([{ path: "status", message: `must be of ${EventStatus.literals.join(", ")}` }])
  }
  return names.filter(isStatus)
})

/** Known states; case does not matter. */
export const statesOf = Effect.fnUntraced(function* <State extends string>(
  written: ReadonlyArray<string> | undefined,
  known: ReadonlyArray<State>
) {
  const states = (yield* valuesOf("status", written)).map((one) => one.toLowerCase())
  if (!states.every((one) => (known as ReadonlyArray<string>).includes(one))) {
    yield* invalid([{ path: "status", message: `must be of ${known.join(", ")}` }])
  }
  return known.filter((state) => (states as ReadonlyArray<string>).includes(state))
})

const isLevel = (text: string): text is LogLevel => (LogLevel.literals as ReadonlyArray<string>).includes(text)

/** Levels of a log; case does not matter. */
export const logLevelsOf = Effect.fnUntraced(function* (
  list: Values
): Effect.fn.Return<ReadonlyArray<LogLevel>, GatewayError> {
  const names = (yield* valuesOf("log_level", list)).map((name) => name.toLowerCase())
  if (!names.every(isLevel)) {
    return yield* invalid([{ path: "log_level", message: `must be of ${LogLevel.literals.join(", ")}` }])
  }
  return names.filter(isLevel)
})

/** What a list returns for each row beside its record. */
export const includesOf = Effect.fnUntraced(function* (
  list: Values,
  known: ReadonlyArray<string>
): Effect.fn.Return<ReadonlySet<string>, GatewayError> {
  const names = yield* valuesOf("include", list)
  if (!names.every((name) => known.includes(name))) {
    return yield* invalid([{ path: "include", message: `must be of ${known.join(", ")}` }])
  }
  return new Set(names)
})

/** An empty text counts as absent. */
export const given = (text: string | undefined): string | undefined => (text === "" ? undefined : text)

/** The caller's filters of records, by their declaration. */
export const narrowingOf = <Filters extends RecordFilters>(
  filters: Filters,
  query: object
): Effect.Effect<Narrowing<Filters>, GatewayError> =>
  Effect.fromResult(orInvalid(readNarrowing(filters, query as Written)))

/**
 * A parameter that has several names; the first is its own. Different values under two names are an error: one of them would be
 * lost silently.
 */
export const underOneName = Effect.fnUntraced(function* <Query extends object, Name extends keyof Query & string>(
  query: Query,
  ...names: ReadonlyArray<Name>
): Effect.fn.Return<Query[Name] | undefined, GatewayError> {
  const [first, ...others] = names.filter((name) => query[name] !== undefined && query[name] !== "")
  if (first === undefined) return undefined
  const other = others.find((name) => query[name] !== query[first])
  if (other === undefined) return query[first]
  return yield* invalid([{ path: other, message: `is another name of ${first}, which says something else` }])
})

interface Window {
  readonly from?: string
  readonly to?: string
  readonly start?: string
  readonly end?: string
}

export const windowOf = Effect.fnUntraced(function* (query: Window): Effect.fn.Return<WindowInput, GatewayError> {
  return { from: yield* underOneName(query, "from", "start"), to: yield* underOneName(query, "to", "end") }
})

export const searchOf = (query: { readonly q?: string; readonly search?: string; readonly search_term?: string }) => {
  const trimmed = { q: query.q?.trim(), search: query.search?.trim(), search_term: query.search_term?.trim() }
  return underOneName(trimmed, "q", "search", "search_term")
}

export const dirOf = (text: string | undefined): "asc" | "desc" => (text?.toLowerCase() === "asc" ? "asc" : "desc")

/** A limit above the maximum is reduced to it; the answer shows the applied limit. */
export const limitOf = (limit: number | undefined, maximum: number): number => Math.min(limit ?? 100, maximum)

/** The position and size of a page. `narrowed`: the filters that its cursors belong to, beside the window. */
export const pageOf = Effect.fnUntraced(function* (
  list: string,
  query: Window & { readonly cursor?: string; readonly next?: string; readonly limit?: number | undefined },
  narrowed: object,
  most: number
) {
  const window = yield* windowOf(query)
  return {
    key: filterKey(list, { ...narrowed, ...window }),
    window,
    cursor: yield* underOneName(query, "cursor", "next"),
    limit: limitOf(query.limit, most)
  }
})

/** Lists without pages have no cursors: with an ignored cursor a caller would read the same rows for ever. */
export const refuseCursors = Effect.gen(function* () {
  const written = yield* HttpServerRequest.ParsedSearchParams
  for (const path of ["cursor", "next", "prev"]) {
    if (written[path] !== undefined) {
      yield* invalid([{ path, message: "is not for this list, which has no pages: narrow it, or raise its limit" }])
    }
  }
})

/** The query of a list of resources. */
export type ListQuery = Partial<Schema.Struct.Type<typeof import("../contract/Parameters.ts").resources>>

export const resourceQueryOf = Effect.fnUntraced(function* (
  query: ListQuery
): Effect.fn.Return<ResourceQuery, GatewayError, HttpServerRequest.ParsedSearchParams> {
  yield* refuseCursors
  return {
    ids: yield* valuesOf("id", query.id, query.ids),
    name: query.name,
    type: given(query.type),
    includeDisabled: query.include_disabled ?? true,
    paused: undefined,
    among: {},
    counts: true,
    orderBy: query.order_by ?? "created_at",
    dir: dirOf(query.dir),
    limit: limitOf(query.limit, 255)
  }
})
