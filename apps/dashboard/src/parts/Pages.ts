import { type Query, type QueryClient, useQueries, useQueryClient } from "@tanstack/react-query"
import { useEffect, useState } from "react"
import { waitAfter } from "./Pace.ts"

/** What was read for a text. */
export interface Searched {
  readonly count: number
  /** When the oldest of them arrived; null if there was none. */
  readonly since: string | null
  /** Where older ones begin that were not read; null: all were read. */
  readonly cursor: string | null
}

/** What every list of the API answers. */
export interface Page<Model> {
  readonly models: ReadonlyArray<Model>
  readonly next_cursor: string | null
  readonly has_more: boolean
  /** Only of rows that were found by a text. */
  readonly searched?: Searched
}

/** Which page of a list is read: a part of the list's query. Without a cursor it is the first. */
export interface PageQuery {
  readonly limit: number
  readonly cursor?: string
}

/** Rows of a page that is read as the reader scrolls. */
const rowsOfPage = 100

/**
 * Rows of a page of a live list, which is read again and again: what a screen shows, and some more. Each row costs the gateway
 * processor time, which its events wait for.
 */
const rowsOfLivePage = 60

/** The page of `limit` rows that begins at a cursor; null: the first one. */
export const pageAt = (cursor: string | null, limit: number = rowsOfPage): PageQuery => ({
  limit,
  ...(cursor === null ? {} : { cursor })
})

/** A list that is live is read again this often (ms), and not while the page is in the background. */
export const liveMs = 2_000

/** How often (ms) rows are counted that arrive faster than a live list can show them. Counting costs more than reading the newest rows. */
const countedMs = 30_000

/** If the gateway answers at once, the newest rows are at most about two seconds old. */
const pace = { minMs: liveMs, maxMs: 10_000, share: 0.1 }

/** If more rows arrive than the list shows, nobody can follow them, so they are read half as often. */
const samplingPace = { ...pace, minMs: 2 * liveMs }

/** A page whose rows are out of sight is forgotten after this time (ms), and read again when the reader comes back to it. */
const forgottenMs = 5_000

/** The range of rows that are drawn, by their indexes. The list may end before the last of them. */
export interface Shown {
  readonly first: number
  readonly last: number
}

/** Rows that are read before they are seen: more when the reader scrolls, because one page is read after the other. */
const aheadOf = (isLive: boolean, { first }: Shown): number => (isLive ? 15 : first === 0 ? 40 : 200)

/** Where a page begins, and how it is read. */
interface Place {
  readonly first: number
  readonly cursor: string | null
  /** The last row of the page before. */
  readonly after: string | null
}

/** How many rows have arrived between two readings of a live list, of which the newest page does not reach back to the one before. */
export interface Arrived {
  readonly total: number
  readonly ms: number
}

/** The newest page is compared with the one before. */
interface Read<Model> extends Page<Model> {
  readonly at: number
  /** The last count of what has arrived, and when it was made. */
  readonly counted: (Arrived & { readonly at: number }) | null
  /** Null: the page shows all that has arrived. */
  readonly arrived: Arrived | null
  /** The wait before it is read again, if it is live (ms). */
  readonly waitMs: number
}

const top: Place = { first: 0, cursor: null, after: null }

/** How a list reads its pages. */
interface Reading<Model> {
  readonly keys: ReadonlyArray<unknown>
  readonly read: (page: PageQuery) => Promise<Page<Model>>
  /** How many rows there are since this one. */
  readonly countSince: ((row: Model) => Promise<number>) | undefined
  readonly isLive: boolean
}

const keyOf = (keys: ReadonlyArray<unknown>, { cursor }: Place) => ["list", ...keys, cursor]

/** Reads a page, and compares it with the one that was read `before` at this place. */
const readPlace = async <Model extends { readonly id: string }>(
  { countSince, isLive, read }: Reading<Model>,
  place: Place,
  before: Read<Model> | undefined
): Promise<Read<Model>> => {
  const began = performance.now()
  const page = await read(pageAt(place.cursor, isLive ? rowsOfLivePage : rowsOfPage))
  const at = Date.now()
  const newest = before?.models[0]
  // The page was not visible for a while, so the rows since then do not give a rate.
  const isNext = before !== undefined && at - before.at < 5 * before.waitMs
  const isSampled =
    isLive &&
    place.cursor === null &&
    isNext &&
    newest !== undefined &&
    page.has_more &&
    page.models.every(({ id }) => id !== newest.id)
  const counted =
    isSampled && countSince !== undefined && at - (before.counted?.at ?? 0) >= countedMs
      ? // The rows are shown, even if they cannot be counted.
        { total: await countSince(newest).catch(() => 0), ms: at - before.at, at }
      : (before?.counted ?? null)
  return {
    ...page,
    at,
    counted,
    arrived: isSampled && counted !== null && counted.total > page.models.length ? counted : null,
    waitMs: waitAfter(performance.now() - began, isSampled ? samplingPace : pace)
  }
}

/**
 * The query of a page. The cache keeps its functions, and they keep all that is in scope here. In `usePages` that would be the results of the pages
 * before, whose queries have such functions too: no page of a list would ever be forgotten.
 */
const queryOf = <Model extends { readonly id: string }>(
  cache: QueryClient,
  reading: Reading<Model>,
  place: Place,
  isAlone: boolean
) => {
  const { isLive } = reading
  const queryKey = keyOf(reading.keys, place)
  return {
    queryKey,
    queryFn: () => readPlace(reading, place, cache.getQueryData<Read<Model>>(queryKey)),
    // Only the first page is read again. Later pages would no longer fit to it, so a reader in the middle of a list stays there, and a search would
    // begin again.
    staleTime: ({ state }: Query<Read<Model>>) => (isAlone && state.data?.searched === undefined ? liveMs : Infinity),
    gcTime: place.cursor === null ? 60_000 : forgottenMs,
    refetchInterval: ({ state }: Query<Read<Model>>) => isLive && (state.data?.waitMs ?? liveMs)
  }
}

/**
 * The pages of a list, of which only those near `shown` are in memory: for the others there is the cursor by which they are read again.
 * Of a list that is live, only the pages in sight are read again.
 */
export const usePages = <Model extends { readonly id: string }>(reading: Reading<Model>, shown: Shown) => {
  const { isLive, keys } = reading
  const cache = useQueryClient()
  const [places, setPlaces] = useState<ReadonlyArray<Place>>([top])

  const until = shown.last + aheadOf(isLive, shown)
  const wanted = places.filter(({ first }, n) => first <= until && (places[n + 1]?.first ?? Infinity) > shown.first)
  const results = useQueries({
    queries: wanted.map((place) => queryOf(cache, reading, place, places.length <= 2))
  })

  useEffect(() => {
    setPlaces((places) => {
      let now = places
      for (const [index, place] of wanted.entries()) {
        const page = results[index]?.data
        const n = now.indexOf(place)
        if (page === undefined || n < 0) continue
        const { has_more, models, next_cursor } = page
        const after = models.at(-1)?.id ?? null
        const next = now[n + 1]
        const isEnd = !has_more || next_cursor === null
        // If a page ends at another row than before, the cursors of the later pages are read again.
        if (isEnd ? next !== undefined : next?.after !== after)
          now = [
            ...now.slice(0, n + 1),
            ...(isEnd ? [] : [{ first: place.first + models.length, cursor: next_cursor, after }])
          ]
      }
      return now
    })
  })

  const [first] = results
  const last = results.at(-1)
  const lastPlace = wanted.at(-1)
  const reachesEnd = lastPlace !== undefined && lastPlace === places.at(-1)
  return {
    /** The rows that are known to exist; more are found on the way. */
    count: reachesEnd ? lastPlace.first + (last?.data?.models.length ?? 0) : (places.at(-1)?.first ?? 0),
    rowAt: (index: number): Model | undefined => {
      const n = wanted.findLastIndex(({ first }) => first <= index)
      return results[n]?.data?.models[index - wanted[n]!.first]
    },
    /** Null: the row is in none of the pages that are read now. */
    indexOf: (id: string): number | null => {
      for (const [n, { first }] of wanted.entries()) {
        const index = results[n]?.data?.models.findIndex((row) => row.id === id) ?? -1
        if (index >= 0) return first + index
      }
      return null
    },
    searched: first?.data?.searched ?? null,
    /** The key of the query that reads the newest page. */
    newestKey: keyOf(keys, top),
    isPending: wanted[0] === top && first?.isPending === true,
    error: results.find(({ error }) => error !== null)?.error ?? null,
    retry: () => Promise.all(results.flatMap(({ isError, refetch }) => (isError ? [refetch()] : []))),
    arrived: wanted[0] === top ? (first?.data?.arrived ?? null) : null,
    /** The wait between two readings of a live list (ms). */
    waitMs: first?.data?.waitMs ?? liveMs,
    /** The length of the newest page, to which `arrived` belongs. */
    newest: first?.data?.models.length ?? 0
  }
}
