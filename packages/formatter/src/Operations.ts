import type { Operation } from "./engine/Operation.ts"
import { capitalize } from "./text/Capitalize.ts"
import { lowercase } from "./text/Lowercase.ts"
import { uppercase } from "./text/Uppercase.ts"
import { titlecase } from "./text/Titlecase.ts"
import { trim } from "./text/Trim.ts"
import { replace } from "./text/Replace.ts"
import { replacePattern } from "./text/ReplacePattern.ts"
import { split } from "./text/Split.ts"
import { splitChunks } from "./text/SplitChunks.ts"
import { length } from "./text/Length.ts"
import { wordCount } from "./text/WordCount.ts"
import { defaultValue } from "./text/DefaultValue.ts"
import { find } from "./text/Find.ts"
import { truncate } from "./text/Truncate.ts"
import { extractEmail } from "./text/ExtractEmail.ts"
import { extractNumber } from "./text/ExtractNumber.ts"
import { extractPhone } from "./text/ExtractPhone.ts"
import { extractUrl } from "./text/ExtractUrl.ts"
import { extractPattern } from "./text/ExtractPattern.ts"
import { urlEncode } from "./text/UrlEncode.ts"
import { urlDecode } from "./text/UrlDecode.ts"
import { stripHtml } from "./text/StripHtml.ts"
import { markdownToHtml } from "./text/MarkdownToHtml.ts"
import { htmlToMarkdown } from "./text/HtmlToMarkdown.ts"
import { pluralize } from "./text/Pluralize.ts"
import { toAscii } from "./text/ToAscii.ts"
import { slugify } from "./text/Slugify.ts"
import { format } from "./number/Format.ts"
import { currency } from "./number/Currency.ts"
import { phone } from "./number/Phone.ts"
import { math } from "./number/MathOperation.ts"
import { formula } from "./number/Formula.ts"
import { random } from "./number/Random.ts"
import { formatDate } from "./date/FormatDate.ts"
import { addSubtract } from "./date/AddSubtract.ts"
import { compare } from "./date/Compare.ts"
import { dateParts } from "./date/DateParts.ts"
import { lookupTable } from "./utility/LookupTable.ts"
import { pickFromList } from "./utility/PickFromList.ts"
import { textToLineItems } from "./utility/TextToLineItems.ts"
import { lineItemsToText } from "./utility/LineItemsToText.ts"
import { appendLineItems } from "./utility/AppendLineItems.ts"
import { lineItemizer } from "./utility/LineItemizer.ts"
import { lineItemNumbering } from "./utility/LineItemNumbering.ts"
import { importCsv } from "./utility/ImportCsv.ts"

/** All operations, by category, in the order of the catalog. A new one is a file and a line here. */
export const categories: ReadonlyArray<{
  readonly key: string
  readonly label: string
  readonly operations: ReadonlyArray<Operation>
}> = [
  {
    key: "text",
    label: "Text",
    operations: [
      capitalize,
      lowercase,
      uppercase,
      titlecase,
      trim,
      replace,
      replacePattern,
      split,
      splitChunks,
      length,
      wordCount,
      defaultValue,
      find,
      truncate,
      extractEmail,
      extractNumber,
      extractPhone,
      extractUrl,
      extractPattern,
      urlEncode,
      urlDecode,
      stripHtml,
      markdownToHtml,
      htmlToMarkdown,
      pluralize,
      toAscii,
      slugify
    ]
  },
  {
    key: "number",
    label: "Numbers",
    operations: [format, currency, phone, math, formula, random]
  },
  {
    key: "date",
    label: "Date and time",
    operations: [formatDate, addSubtract, compare, dateParts]
  },
  {
    key: "utility",
    label: "Utilities",
    operations: [
      lookupTable,
      pickFromList,
      textToLineItems,
      lineItemsToText,
      appendLineItems,
      lineItemizer,
      lineItemNumbering,
      importCsv
    ]
  }
]

export const operations: ReadonlyMap<string, Operation> = new Map(
  categories.flatMap(({ operations }) => operations.map((operation) => [operation.key, operation] as const))
)
