import { Console, Context, Effect } from "effect"
import { Flag, GlobalFlag } from "effect/cli"
import { writeJson } from "@tidegate/json/NumberMarks"

export const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Prints JSON: one document, or one document a line")
  )
})

/** Characters that a terminal would execute, or that hide what is shown: names and bodies are written by strangers. */
// oxlint-disable-next-line no-control-regex
const obeyed = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Makes a text safe to show on one line. */
export const plain = (text: string): string =>
  text.replace(obeyed, (character) => (character === "\n" ? " " : "\ufffd"))

/** The same characters above U+0020 that JSON does not escape by itself. */
const unescaped = /[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Escapes these characters as JSON and YAML do. */
export const escaped = (text: string): string =>
  text.replace(unescaped, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** JSON that is safe to show; for a program its meaning is the same. */
export const jsonLine = (value: unknown, indent = 0): string => escaped(writeJson(value, indent))

/** Whether people read the output, and whether it may have colours and progress lines. */
export class Screen extends Context.Service<
  Screen,
  { readonly isTerminal: boolean; readonly canColor: boolean; readonly showsProgress: boolean }
>()("tidegate/cli/Screen") {}

const colors = { green: 32, red: 31, yellow: 33, dim: 2 } as const

export const colored = (color: keyof typeof colors, text: string): Effect.Effect<string, never, Screen> =>
  Effect.map(Screen, ({ canColor }) => (canColor ? `\u001b[${colors[color]}m${text}\u001b[0m` : text))

/** Prints a line for people on standard error, so that it does not mix with the output. */
export const say = (text: string): Effect.Effect<void> => Console.error(text)

/** Shows progress, to people only; each line replaces the one before. */
export const progress = (text: string): Effect.Effect<void, never, Screen> =>
  Effect.flatMap(Screen, ({ showsProgress }) =>
    Effect.sync(() => {
      if (showsProgress) process.stderr.write(`\r\u001b[K${plain(text)}`)
    })
  )

export const progressOver: Effect.Effect<void, never, Screen> = Effect.flatMap(Screen, ({ showsProgress }) =>
  Effect.sync(() => {
    if (showsProgress) process.stderr.write("\r\u001b[K")
  })
)

/** Prints one thing: as JSON for programs, or in these words. */
export const tell = (value: unknown, words: string) =>
  Effect.flatMap(Json, (isJson) => Console.log(isJson ? jsonLine(value) : words))

export const document = (value: unknown): Effect.Effect<void> => Console.log(jsonLine(value, 2))

/** A row's values, by column name. */
export type Row = Readonly<Record<string, string | number | boolean | null | undefined>>

const cell = (value: Row[string]): string => (value === null || value === undefined ? "-" : plain(String(value)))

/** Prints rows: with a head and columns for people; separated by tabs, or as JSON, for programs. */
export const rows = <A>(items: ReadonlyArray<A>, show: (item: A) => Row) =>
  Effect.gen(function* () {
    if (yield* Json) return yield* Effect.forEach(items, (item) => Console.log(jsonLine(item)), { discard: true })
    const { isTerminal } = yield* Screen
    const lines = items.map((item) => Object.values(show(item)).map(cell))
    const first = items[0]
    if (first === undefined) return yield* say("nothing found")
    if (!isTerminal) return yield* Effect.forEach(lines, (line) => Console.log(line.join("\t")), { discard: true })
    const table = [Object.keys(show(first)), ...lines]
    const widths = table[0]!.map((_, column) => Math.max(...table.map((line) => line[column]!.length)))
    const print = (line: ReadonlyArray<string>) =>
      Console.log(
        line
          .map((text, column) => text.padEnd(widths[column]!))
          .join("  ")
          .trimEnd()
      )
    return yield* Effect.forEach(table, print, { discard: true })
  })
