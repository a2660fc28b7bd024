/** What is made of a key, kept for the last `size` keys or so: patterns, formulas, date formats. */
export const memo = <A>(size: number, make: (key: string) => A): ((key: string) => A) => {
  let young = new Map<string, A>()
  let old = new Map<string, A>()
  return (key) => {
    const kept = young.get(key)
    if (kept !== undefined) return kept
    const made = old.get(key) ?? make(key)
    // What was not asked for while `size` others were is let go.
    if (young.size >= size) {
      old = young
      young = new Map()
    }
    young.set(key, made)
    return made
  }
}
