/** Unicode white space and the byte order mark: JavaScript's `\s` and U+0085. All operations on words use it. */
export const space = "[\\s\\u0085]"

const one = new RegExp(space, "u")
export const spaces = new RegExp(`${space}+`, "gu")
export const words = /[^\s\u0085]+/gu
/** Words, each with the white space after it. */
export const spacedWords = new RegExp(`${words.source}${space}*`, "gu")

const isSpace = (char: string | undefined): boolean => char !== undefined && one.test(char)

/** Start and end of a text without the white space around it. Reads each character at most once. */
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
