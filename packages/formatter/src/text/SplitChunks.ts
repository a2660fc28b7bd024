import { Fault, tooMuch } from "../engine/Fault.ts"
import { integer, needed, option, select, text } from "../engine/Fields.ts"
import { array, int, operation, string } from "../engine/Operation.ts"
import { insideOf, space, spacedWords } from "./Space.ts"

const maxChunks = 1000

const endsSentence = new RegExp(`[.!?。！？\\n]${space}*$`, "u")
const startsWithSpace = new RegExp(`^${space}`, "u")
const endsWithSpace = new RegExp(`${space}$`, "u")

/** Whether a chunk may end at a position: after a sentence, after a word, or anywhere. */
const ends = {
  sentence: (units: ReadonlyArray<string>, at: number) =>
    endsSentence.test(units[at - 1] ?? "") || units[at] === undefined,
  word: (units: ReadonlyArray<string>, at: number) =>
    units[at] === undefined || startsWithSpace.test(units[at]) || endsWithSpace.test(units[at - 1] ?? ""),
  none: () => true
} as const

export const splitChunks = operation({
  key: "text.split_chunks",
  label: "Split into chunks",
  description: "Pieces of at most so many characters or words, which may overlap",
  fields: {
    input: text("Text", { required: true, long: true }),
    chunk_size: needed(integer("Chunk size", { minimum: 1, maximum: 20_000 })),
    overlap: integer("Overlap", { minimum: 0, maximum: 19_999, default: 0, help: "Smaller than a chunk" }),
    unit: option(select("Unit", { characters: "Characters", words: "Words" }, "characters")),
    boundary: option(select("Ends behind", { word: "A word", sentence: "A sentence", none: "Anything" }, "word"))
  },
  lines: "reject",
  output: { items: array(string), count: int },
  errors: ["FORMATTER_CONFIG_INVALID"],
  limits: { chunks: maxChunks },
  cost: { character: 250 },
  sample: {
    inputs: { input: "one two three four", chunk_size: 9 },
    options: {},
    output: { items: ["one two", "three", "four"], count: 3 }
  },
  run: ({ boundary, chunk_size, input, overlap, unit }, call) => {
    const size = chunk_size ?? 1
    if (overlap >= size) {
      throw new Fault("FORMATTER_CONFIG_INVALID", "the overlap has to be smaller than a chunk", { field: "overlap" })
    }
    const units = unit === "words" ? (input.match(spacedWords) ?? []) : Array.from(input)
    const mayEnd = unit === "words" && boundary !== "sentence" ? ends.none : ends[boundary]
    const items: Array<string> = []
    for (let from = 0; from < units.length;) {
      const most = Math.min(from + size, units.length)
      let to = most
      // A chunk whose end would move back into its overlap is cut at its full size.
      while (to > from + overlap && to < units.length && !mayEnd(units, to)) to--
      if (to <= from + overlap) to = most
      call.spend((most - from) / 20)
      const joined = units.slice(from, to).join("")
      const piece = joined.slice(...insideOf(joined))
      if (piece !== "") items.push(piece)
      if (items.length > maxChunks) throw tooMuch("there are too many chunks", maxChunks, items.length, "chunk_size")
      if (to >= units.length) break
      from = to - overlap
    }
    return { items, count: items.length }
  }
})
