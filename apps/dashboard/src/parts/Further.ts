import { type QueryKey, useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef, useState } from "react"
import type { Page, Searched } from "./Pages.ts"

/** A search that goes further back ends after this many rows, because they stay in memory. */
const maxFound = 1_000

interface Found<Model> extends Page<Model> {
  readonly searched?: Searched
}

/** The rows of both, and how much was read for them. */
const joined = <Model>(before: Found<Model>, next: Page<Model>): Found<Model> => {
  const { searched } = before
  if (searched === undefined || next.searched === undefined) return before
  return {
    ...before,
    models: [...before.models, ...next.models],
    searched: {
      count: searched.count + next.searched.count,
      since: next.searched.since ?? searched.since,
      cursor: next.searched.cursor
    }
  }
}

/**
 * Goes on with a search where it has ended: part by part, until all rows were read, until it is stopped, or until many more were found. `key`:
 * of the query whose page has what was found so far, and gets what is found.
 */
export const useFurther = <Model>(key: QueryKey, read: ((cursor: string) => Promise<Page<Model>>) | undefined) => {
  const cache = useQueryClient()
  const [isRunning, setRunning] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const goes = useRef(false)
  const stop = () => {
    goes.current = false
  }
  // The reader has left the list.
  useEffect(() => stop, [])
  const cursor = () => cache.getQueryData<Found<Model>>(key)?.searched?.cursor ?? null
  const start = async () => {
    if (read === undefined || goes.current) return
    goes.current = true
    setRunning(true)
    setError(null)
    let found = 0
    try {
      for (let at = cursor(); at !== null && goes.current && found < maxFound; at = cursor()) {
        const from = at
        const next = await read(from)
        found += next.models.length
        // Unless the list was read again meanwhile, and begins at its newest rows.
        cache.setQueryData<Found<Model>>(key, (now) => (now?.searched?.cursor === from ? joined(now, next) : now))
      }
    } catch (failure) {
      setError(failure)
    }
    goes.current = false
    setRunning(false)
  }
  return { error, isRunning, start, stop }
}
