import { mapped, option, select, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { capitalOf } from "./Capital.ts"
import { space } from "./Space.ts"

/** Words that stay small within an English title. */
const small = new Set(
  "a an and as at but by en for from if in into nor of off on onto or out over per so than the till to up upon v v. via vs vs. with yet".split(
    " "
  )
)

const capitalized = (word: string): string => {
  const first = /\p{L}/u.exec(word)
  if (first === null) return word
  const end = first.index + first[0].length
  return word.slice(0, first.index) + capitalOf(first[0]) + word.slice(end)
}

/** `iPhone`, `McDonald`: a capital behind a small letter is meant. So are addresses. */
/** Kept among the parts, which the words stand between. */
const between = new RegExp(`(${space}+)`, "u")

const isMeant = (word: string): boolean =>
  /\p{Ll}\p{Lu}/u.test(word) || /^(?:[a-z]+:\/\/|www\.)|^[^\s@]+@[^\s@]+$|^[a-z0-9-]+\.[a-z]{2,}(?:\/|$)/i.test(word)

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
    // Between the words stand the spaces.
    const last = words.findLastIndex((word, at) => at % 2 === 0 && /[\p{L}\p{N}]/u.test(word))
    let begins = true
    return {
      result: words
        .map((word, at) => {
          if (at % 2 === 1 || word === "") return word
          const isFirst = begins
          begins = /[:.!?]["')\]]*$/.test(word) && word.length > 1 && !small.has(word.toLowerCase())
          if (isMeant(word)) return word
          const lower = word.toLowerCase()
          const plain = lower.replaceAll(/[^\p{L}.]/gu, "")
          return style === "english" && !isFirst && at !== last && small.has(plain) ? lower : capitalized(lower)
        })
        .join("")
    }
  }
})
