import { mapped, option, select, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { areInitials, capitalized } from "./Capital.ts"
import { space } from "./Space.ts"

/** Words that stay in lower case within an English title. */
const small = new Set(
  "a an and as at but by en for from if in into nor of off on onto or out over per so than the till to up upon v v. via vs vs. with yet".split(
    " "
  )
)

/** The separators are kept in the list of parts, between the words. */
const between = new RegExp(`(${space}+)`, "u")

/** `NASA`, `U.S.`, `AT&T`, `IBM's`: only in a text that also has lower-case letters. `2ND` is a number with its ending. */
const isAcronym = (word: string): boolean => {
  const name = word.replace(/['\u2019]s(?=\P{L}*$)/u, "")
  return !/\p{Ll}/u.test(name) && /\p{Lu}[^]*\p{Lu}/u.test(name) && !/^\P{L}*\d(?:ST|ND|RD|TH)\P{L}*$/u.test(name)
}

/** `iPhone`, `McDonald`: a capital after a lower-case letter is intended and stays. So do addresses and letters with dots. */
const isMeant = (word: string, isMixed: boolean): boolean =>
  (isMixed && isAcronym(word)) ||
  areInitials(word) ||
  /\p{Ll}\p{Lu}/u.test(word) ||
  /^(?:[a-z]+:\/\/|www\.)|^[^\s@]+@[^\s@]+$|^[a-z0-9-]+\.[a-z]{2,}(?:\/|$)/i.test(word)

export const titlecase = operation({
  key: "text.titlecase",
  label: "Titlecase",
  description: "A title: words with capitals, but for the small ones",
  fields: {
    input: mapped(text("Text", { required: true })),
    style: option(select("Style", { english: "English titles", all_words: "All words" }, "english"))
  },
  lines: "map",
  output: { result: string },
  cost: { character: 250 },
  sample: { inputs: { input: "the lord of the rings" }, options: {}, output: { result: "The Lord of the Rings" } },
  run: ({ input, style }) => {
    const words = input.split(between)
    const isMixed = /\p{Ll}/u.test(input)
    // Words have even indexes; separators are between them.
    const last = words.findLastIndex((word, at) => at % 2 === 0 && /[\p{L}\p{N}]/u.test(word))
    let begins = true
    return {
      result: words
        .map((word, at) => {
          if (at % 2 === 1 || word === "") return word
          const isFirst = begins
          begins =
            /[:.!?]["')\]]*$/.test(word) && word.length > 1 && !areInitials(word) && !small.has(word.toLowerCase())
          if (isMeant(word, isMixed)) return word
          const lower = word.toLowerCase()
          const plain = lower.replaceAll(/[^\p{L}.]/gu, "")
          if (style !== "english") return capitalized(lower)
          const isSmall = small.has(plain) && !isFirst && at !== last
          return isSmall ? lower : capitalized(lower, "en", (part) => small.has(part))
        })
        .join("")
    }
  }
})
