import { Effect, type Schema } from "effect"
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
import type * as Lists from "../contract/Lists.ts"
import type { List, ResourceList } from "../contract/Lists.ts"

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
  return yield* invalid([{ path: other, message: `is an alias of ${first}, which has another value` }])
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
export const limitOf = (limit: number | undefined, maximum: number, byDefault = 100): number =>
  Math.min(limit ?? byDefault, maximum)

/** The page of a list that is asked for. `narrowed`: what its cursors stand for beside the window, by name. */
export const pageOf = Effect.fnUntraced(function* (
  { maxRows, name, rows }: List,
  query: Window & { readonly cursor?: string; readonly next?: string; readonly limit?: number | undefined },
  narrowed: object
) {
  const window = yield* windowOf(query)
  return {
    key: filterKey(name, { ...narrowed, ...window }),
    window,
    cursor: yield* underOneName(query, "cursor", "next"),
    limit: limitOf(query.limit, maxRows, rows)
  }
})

/** The query of a list of resources. */
export type ListQuery = Partial<Schema.Struct.Type<typeof Lists.sources.query>>

/** What a list of resources is narrowed to beyond what every list is. */
export type Narrowed = Partial<Pick<ResourceQuery, "among" | "counts" | "paused" | "search">>

/** The page of a list of resources that is asked for. Counts narrow nothing: pages with and without them have the same cursors. */
export const resourceQueryOf = Effect.fnUntraced(function* (
  list: ResourceList,
  team: string,
  query: ListQuery,
  { among = {}, counts = true, paused, search }: Narrowed
): Effect.fn.Return<ResourceQuery, GatewayError> {
  const narrowed = {
    ids: yield* valuesOf("id", query.id, query.ids),
    name: query.name,
    type: given(query.type),
    includeDisabled: query.include_disabled ?? true,
    paused,
    ...(search === undefined ? {} : { search }),
    orderBy: query.order_by ?? list.order.by,
    dir: dirOf(query.dir ?? list.order.dir)
  }
  const { cursor, key, limit } = yield* pageOf(list, query, { team, ...narrowed, ...among })
  return { ...narrowed, among, counts, key, cursor, limit }
})
