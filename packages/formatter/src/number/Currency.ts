import { judged, locale, mapped, option, quantity, select, symbols } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { currencyOf, money, patterns } from "./Money.ts"
import { numberIn } from "./Numerals.ts"

export const currency = operation({
  key: "number.currency",
  label: "Format a currency",
  description: "An amount of money, with as many decimals as its currency has",
  fields: {
    input: mapped(quantity("Amount", { required: true })),
    currency: judged(symbols("Currency", { default: "USD", help: "Three letters of ISO 4217" }), currencyOf),
    locale: option(locale("en-US")),
    pattern: option(select("Pattern", patterns, "¤#,##0.00 ¤¤"))
  },
  lines: "map",
  output: { result: string },
  empty: { result: "" },
  warnings: ["UNPARSEABLE_UNCHANGED"],
  errors: ["FORMATTER_CURRENCY_UNKNOWN", "FORMATTER_LOCALE_UNKNOWN", "FORMATTER_CONFIG_INVALID"],
  cost: { call: 40 },
  sample: {
    inputs: { input: "1234.1", currency: "EUR" },
    options: { locale: "es-ES" },
    output: { result: "€1.234,10 EUR" }
  },
  run: ({ currency, input, locale, pattern }, call) => {
    const code = currencyOf(currency === "" ? "USD" : currency)
    const plain = numberIn(input, ".")
    if (plain === null || !Number.isFinite(Number(plain))) {
      call.warn("UNPARSEABLE_UNCHANGED", "the value is no number", "input")
      return { result: input }
    }
    return { result: money(plain, code, locale, pattern) }
  }
})
