import { memo } from "../engine/Memo.ts"

/** Numbers as people write them. */

export type Mark = "." | ","

/** Codes of ISO 4217. */
export const currencies = memo(1, () => new Set(Intl.supportedValuesOf("currency")))

/**
 * The plain digits of a text that is a number: currency signs, spaces and grouping are taken off, `(5)` is no negative. Null when it is none.
 * Each character is looked at a fixed number of times.
 */
export const numberIn = (text: string, mark: Mark): string | null => {
  if (text.length > 200) return null
  const grouping = mark === "." ? "," : "."
  // A sign of currency, or its code in capitals, stands before or after the number.
  const plain = text
    .replaceAll(/[\s\u00a0\u202f']/g, "")
    .replaceAll(/\p{Sc}/gu, "")
    .replace(/^[A-Z]{3}(?=[-+\d.,])|(?<=[\d.,])[A-Z]{3}$/, (code) => (currencies("").has(code) ? "" : code))
    .replaceAll(grouping, "")
    .replace("\u2212", "-")
  const dotted = mark === "," ? plain.replace(",", ".") : plain
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?$/.test(dotted) ? dotted : null
}
