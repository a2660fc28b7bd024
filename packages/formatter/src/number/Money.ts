import { Fault } from "../engine/Fault.ts"
import { memo } from "../engine/Memo.ts"
import { currencies } from "./Numerals.ts"

/** Amounts by the patterns of TR35: the pattern determines the position of the currency sign, and the locale the separators. */

export const patterns = {
  "¤#,##0.00 ¤¤": "$1,234.10 USD",
  "¤#,##0.00": "$1,234.10",
  "¤#,##0.00 ¤¤¤": "$1,234.10 US dollars",
  "¤###0.00": "$1234.10",
  "#,##0.00": "1,234.10",
  "###0.00": "1234.10",
  locale: "As the locale has it"
} as const
export type MoneyPattern = keyof typeof patterns

export const currencyOf = (code: string): string => {
  const currency = code.trim().toUpperCase()
  if (currencies("").has(currency)) return currency
  throw new Fault("FORMATTER_CURRENCY_UNKNOWN", "there is no such currency", {
    field: "currency",
    value_preview: code.slice(0, 20)
  })
}

type Amount = Intl.StringNumericLiteral

const formatter = memo(100, (key) => {
  const [locale = "en", currency = "USD", display, grouping] = key.split(" ")
  return new Intl.NumberFormat(locale, {
    style: "currency",
    currency,
    currencyDisplay: (display ?? "symbol") as "symbol" | "code" | "name",
    ...(grouping === "always" ? { useGrouping: "always" } : grouping === "never" ? { useGrouping: false } : {})
  })
})

const partsOf = (key: string, amount: Amount): ReadonlyArray<Intl.NumberFormatPart> =>
  formatter(key).formatToParts(amount)

const isDigits = ({ type }: Intl.NumberFormatPart): boolean =>
  ["integer", "group", "decimal", "fraction"].includes(type)

const currencyText = (parts: ReadonlyArray<Intl.NumberFormatPart>): string =>
  parts.find(({ type }) => type === "currency")?.value ?? ""

/** `amount` is plain digits, with an optional point and minus sign. */
export const money = (amount: string, currency: string, locale: string, pattern: MoneyPattern): string => {
  const numeral = amount as Amount
  if (pattern === "locale") return formatter(`${locale} ${currency} symbol`).format(numeral)
  const grouping = pattern.includes(",") ? "always" : "never"
  const parts = partsOf(`${locale} ${currency} symbol ${grouping}`, numeral)
  const digits = parts
    .filter(isDigits)
    .map(({ value }) => value)
    .join("")
  const minus = parts.find(({ type }) => type === "minusSign")?.value ?? ""
  const shown = pattern
    .replace(/[#0,.]+/, () => digits)
    .replaceAll(/¤+/g, (sign) => {
      if (sign.length === 1) return currencyText(parts)
      return sign.length === 2 ? currency : currencyText(partsOf(`${locale} ${currency} name`, numeral))
    })
  return minus + shown
}
