import { failureOf } from "./Failure.ts"
import { sleeping } from "./Waiting.ts"

/** Rows of a page. A poll ends after this many known rows in a row. */
export const pageLength = 255
/** Ids that are remembered, so that nothing is shown twice. */
const maxSeen = 20_000
/** Records that one poll shows, and records that it reads to find them. Further ones are skipped, and `skipped` is called. */
const maxTold = 1_000
const maxRead = 5_000

/** Returns true for an id that was not passed recently. */
export const once = () => {
  const seen = new Set<string>()
  return (id: string): boolean => {
    if (seen.has(id)) return false
    seen.add(id)
    for (const oldest of seen) {
      if (seen.size <= maxSeen) break
      seen.delete(oldest)
    }
    return true
  }
}

interface Looks<A> {
  /** Whether the item belongs to the watched sources. */
  readonly isWanted: (item: A) => boolean
  readonly tell: (item: A) => void
  /** Called if there are more new items than a poll shows. */
  readonly skipped: () => void
}

/**
 * Polls a list that is sorted newest first. It shows the items that are new since the last poll; those of the first poll existed before, and are
 * not shown.
 */
export const looker = <A extends { readonly id: string }>({ isWanted, skipped, tell }: Looks<A>) => {
  const isNew = once()
  let isFirst = true
  return async (list: AsyncIterable<A>): Promise<void> => {
    let found = 0
    let read = 0
    let known = 0
    for await (const item of list) {
      known = isNew(item.id) ? 0 : known + 1
      if (known >= pageLength) break
      if (known > 0) continue
      if (isWanted(item)) found++
      if (found > maxTold || ++read > maxRead) {
        if (!isFirst) skipped()
        break
      }
      if (!isFirst && isWanted(item)) tell(item)
    }
    isFirst = false
  }
}

/** Prints a line: as JSON for programs, and in words for people. */
export type Print = (json: object, words: string) => void

const betweenLooksMs = 1_000

/** Looks every second until the signal aborts. A gateway that is not available is looked at again, and the user is told. */
export const keepLooking = async (look: () => Promise<void>, print: Print, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await sleeping(betweenLooksMs, signal)
    if (signal.aborted) return
    try {
      await look()
    } catch (error) {
      if (signal.aborted) return
      const failure = failureOf(error)
      if (failure.code !== "unavailable") throw error
      print({ type: "unavailable", message: failure.message }, `${failure.message}: retrying`)
    }
  }
}
