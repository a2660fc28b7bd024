/** Where texts stand in texts, ignoring case or not. */

/** Characters of a text that is looked for: a search may take as many steps as both lengths multiplied. */
export const maxSought = 256

/**
 * The same text with its case folded, character by character: positions stay what they are, which they do not when a character becomes
 * two (İ).
 */
export const folded = (text: string): string => {
  const lower = text.toLowerCase()
  if (lower.length === text.length) return lower
  let same = ""
  for (const char of text) {
    const small = char.toLowerCase()
    same += small.length === char.length ? small : char
  }
  return same
}

/** Places of `find`, which is not empty, one after the other. */
export const placesOf = (text: string, find: string, caseSensitive: boolean): ReadonlyArray<number> => {
  const [within, sought] = caseSensitive ? [text, find] : [folded(text), folded(find)]
  const places: Array<number> = []
  for (let at = within.indexOf(sought); at >= 0; at = within.indexOf(sought, at + sought.length)) places.push(at)
  return places
}

/** Where the character with that number begins; the text's end beyond its last. */
export const unitOf = (text: string, character: number): number => {
  let at = 0
  for (let seen = 0; seen < character && at < text.length; seen++) at += text.codePointAt(at)! > 0xffff ? 2 : 1
  return at
}

/** One of several: the first, the last, or all. */
export const whichOf = { first: "First", last: "Last", all: "All" } as const
