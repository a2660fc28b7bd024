/** White space as Unicode has it, and the mark of byte order: what JavaScript's `\s` takes, and U+0085. What looks for words goes by it. */
export const space = "[\\s\\u0085]"

const one = new RegExp(space, "u")
export const spaces = new RegExp(`${space}+`, "gu")
export const words = /[^\s\u0085]+/gu
/** Words, each with the white space behind it. */
export const spacedWords = new RegExp(`${words.source}${space}*`, "gu")

const isSpace = (char: string | undefined): boolean => char !== undefined && one.test(char)

/** Where a text begins and ends without the white space around it: one look at each character. */
export const insideOf = (
  text: string,
  side: "both" | "start" | "end" = "both"
): readonly [from: number, to: number] => {
  let from = 0
  let to = text.length
  if (side !== "end") while (from < to && isSpace(text[from])) from++
  if (side !== "start") while (to > from && isSpace(text[to - 1])) to--
  return [from, to]
}
