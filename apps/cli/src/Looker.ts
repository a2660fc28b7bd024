/** Rows of a page. A look ends where one has nothing new. */
export const pageLength = 255
/** Ids that are remembered, so that nothing is told twice. */
const maxSeen = 20_000
/** What is told of one look, and what it reads to find that; what is more is left out, and this is said. */
const maxTold = 1_000
const maxRead = 5_000

/** Remembers what it was asked about last. */
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
  /** Whether it is of what is watched. */
  readonly isWanted: (item: A) => boolean
  readonly tell: (item: A) => void
  /** More came than is told. */
  readonly skipped: () => void
}

/** Of a list with the newest first. Told is what none before has found, but not what the first look finds: it was there. */
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
