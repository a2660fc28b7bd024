/** Searches for texts in texts, with or without case. */

/** Maximum length of the text to search for: a search may take as many steps as the product of both lengths. */
export const maxSought = 256

/** The text in lower case, character by character, so that positions stay the same even if a character would become two (İ). */
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

/** Positions of `find`, which must not be empty, without overlaps. */
export const placesOf = (text: string, find: string, caseSensitive: boolean): ReadonlyArray<number> => {
  const [within, sought] = caseSensitive ? [text, find] : [folded(text), folded(find)]
  const places: Array<number> = []
  for (let at = within.indexOf(sought); at >= 0; at = within.indexOf(sought, at + sought.length)) places.push(at)
  return places
}

/** The index of a character in UTF-16 units; the end of the text if there are fewer characters. */
export const unitOf = (text: string, character: number): number => {
  let at = 0
  for (let seen = 0; seen < character && at < text.length; seen++) at += text.codePointAt(at)! > 0xffff ? 2 : 1
  return at
}

/** Choices for several matches. */
export const whichOf = { first: "First", last: "Last", all: "All" } as const
