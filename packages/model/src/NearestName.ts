/** Longer names are not compared: they are no typing errors, and the text comes from strangers. */
const longest = 64

/** A name without differences of spelling: `sourceId` and `source-id` equal `source_id`. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9$]/g, "")

/**
 * How many characters have to be inserted, deleted, replaced or swapped with their neighbour to turn `b` into `a`; `max + 1` for
 * more than `max`. Optimal string alignment, in three rows.
 */
const distance = (a: string, b: string, max: number): number => {
  if (Math.abs(a.length - b.length) > max) return max + 1
  let before: Array<number> = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1))
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwapped) least = Math.min(least, before[j - 2]! + 1)
      row.push(least)
    }
    before = last
    last = row
  }
  return Math.min(last[b.length]!, max + 1)
}

/**
 * The name among `known` that `written` was probably meant to be; null when none is near. At most a third of it may differ, and
 * at most three characters.
 */
export const nearestName = (written: string, known: Iterable<string>): string | null => {
  if (written.length > longest) return null
  const asked = plain(written)
  if (asked === "") return null
  let nearest: string | null = null
  let least = Math.min(3, Math.max(1, Math.floor(asked.length / 3))) + 1
  for (const name of known) {
    if (name.length > longest) continue
    const far = distance(asked, plain(name), least - 1)
    if (far < least) {
      nearest = name
      least = far
    }
    if (least === 0) break
  }
  return nearest
}

/** The end of an error message about a name: `; did you mean status?`, or nothing. */
export const didYouMean = (written: string, known: Iterable<string>): string => {
  const nearest = nearestName(written, known)
  return nearest === null ? "" : `; did you mean ${nearest}?`
}
