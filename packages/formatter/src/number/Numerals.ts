import { memo } from "../engine/Memo.ts"

/** Numbers as people write them. */

export type Mark = "." | ","

/** ISO 4217 codes. */
export const currencies = memo(1, () => new Set(Intl.supportedValuesOf("currency")))

/**
 * The plain digits of a numeric text: currency signs, spaces and group separators are removed. `(5)` does not count as a negative number. Null if
 * the text is not numeric. Each character is read a fixed number of times.
 */
export const numberIn = (text: string, mark: Mark): string | null => {
  if (text.length > 200) return null
  const grouping = mark === "." ? "," : "."
  // A currency sign, or a currency code in capitals, may precede or follow the number.
  const plain = text
    .replaceAll(/[\s\u00a0\u202f']/g, "")
    .replaceAll(/\p{Sc}/gu, "")
    .replace(/^[A-Z]{3}(?=[-+\d.,])|(?<=[\d.,])[A-Z]{3}$/, (code) => (currencies("").has(code) ? "" : code))
    .replaceAll(grouping, "")
    .replace("\u2212", "-")
  const dotted = mark === "," ? plain.replace(",", ".") : plain
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?$/.test(dotted) ? dotted : null
}
