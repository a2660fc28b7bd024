import { diff } from "@codemirror/merge"
import { useMemo } from "react"

/** Longer texts are compared in part, and longer lines are shown in part. */
const longestCompared = 200_000
const maxCompared = 20_000
const longestLine = 1_000
/** Equal lines that are shown around a change, and changed lines in all. */
const around = 3
const maxLines = 2_000

interface Line {
  readonly sign: "+" | "-" | " " | "…"
  readonly text: string
}

const linesOf = (text: string): ReadonlyArray<string> => text.slice(0, longestCompared).split("\n", maxCompared)

/** Encodes each line as one character, so that the comparison of texts compares lines. */
const spelled = (lists: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const codes = new Map<string, number>()
  const codeOf = (line: string): number => {
    const code = codes.get(line) ?? codes.size + 1
    codes.set(line, code)
    return code
  }
  return lists.map((lines) => lines.map((line) => String.fromCharCode(codeOf(line))).join(""))
}

/** The lines of two texts: removed ones, added ones, and some equal ones around them. Empty: nothing differs. */
const compared = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): ReadonlyArray<Line> => {
  const lines: Array<Line> = []
  const put = (sign: Line["sign"], some: ReadonlyArray<string>) => {
    for (const text of some) lines.push({ sign, text })
  }
  const [a, b] = spelled([before, after])
  const changes = diff(a!, b!, { scanLimit: 500, timeout: 40 })
  let shown = 0
  for (const [index, { fromA, fromB, toA, toB }] of changes.entries()) {
    const gap = before.slice(shown, fromA)
    const tail = index === 0 ? 0 : around
    if (gap.length > tail + around) {
      put(" ", gap.slice(0, tail))
      put("…", [""])
      put(" ", gap.slice(-around))
    } else put(" ", gap)
    put("-", before.slice(fromA, toA))
    put("+", after.slice(fromB, toB))
    shown = toA
  }
  if (changes.length > 0) put(" ", before.slice(shown, shown + around))
  return lines
}

/** Two texts, line by line: what was removed and what was added. Nothing in them is run. */
export const Diff = ({
  after,
  before,
  label
}: {
  readonly label: string
  readonly before: string
  readonly after: string
}) => {
  const lines = useMemo(() => compared(linesOf(before), linesOf(after)), [after, before])
  if (lines.length === 0)
    return <p className="muted">{before === after ? "Nothing differs." : "The compared part does not differ."}</p>
  return (
    <>
      <pre className="text diff" tabIndex={0} aria-label={label} role="region">
        {lines.slice(0, maxLines).map(({ sign, text }, index) => {
          const shown = `${sign} ${text.slice(0, longestLine)}${text.length > longestLine ? "…" : ""}`
          // oxlint-disable-next-line react/no-array-index-key
          if (sign === "+") return <ins key={index}>{shown}</ins>
          // oxlint-disable-next-line react/no-array-index-key
          if (sign === "-") return <del key={index}>{shown}</del>
          // oxlint-disable-next-line react/no-array-index-key
          return <span key={index}>{shown}</span>
        })}
      </pre>
      {Math.max(before.length, after.length) > longestCompared || lines.length > maxLines ? (
        <p className="muted">The beginning is compared: there is more.</p>
      ) : null}
    </>
  )
}
