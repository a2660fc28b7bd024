import { join, resolve } from "node:path"
import { Schema } from "effect"
import { expect, it } from "vitest"
import { catalog } from "../../packages/formatter/src/Catalog.ts"
import { FormatterCatalog } from "../../packages/model/src/Formatter.ts"
import { page, table } from "./Markdown.ts"

/** `docs/formatter-operations.md` is generated from the catalog; `npm test -- test/published -u` writes it. */

const versions = { icu: "", cldr: "", tz: "", phone: "" }
const code = (value: unknown): string => `\`${JSON.stringify(value)}\``
const names = (values: ReadonlyArray<string>): string => values.map((value) => `\`${value}\``).join(", ")

const { categories, limits } = Schema.decodeUnknownSync(FormatterCatalog)(catalog(versions))
/** Warnings and errors that any operation can return. */
const ofAll = new Set(["TEMPLATE_VALUE_MISSING", "INPUT_COERCED", "INPUT_EMPTY", "LINE_ITEM_LENGTH_MISMATCH"])
const common = /_(?:INPUT_REQUIRED|INPUT_INVALID|LIMIT_EXCEEDED|OUTPUT_TOO_LARGE|TIMEOUT)$/

type Operation = (typeof categories)[number]["operations"][number]

const fieldsOf = ({ dynamic_fields, fields }: Operation): string =>
  table(
    ["Field", "Type", "Default", "What"],
    fields
      .concat(dynamic_fields.flatMap((one) => one.fields))
      .map((field) => [
        `\`${field.key}\`${field.required ? " (required)" : ""}${field.mappable ? "" : ", option"}`,
        field.choices === null ? field.type : field.choices.map(({ value }) => code(value)).join(" "),
        field.default === null ? "" : code(field.default),
        `${field.label}${field.help === null ? "" : `. ${field.help}`}`
      ])
  )

const textOf = (operation: Operation): ReadonlyArray<string> => {
  const { description, errors, key, line_item_policy, output_schema, sample, warnings } = operation
  const own = errors.filter((error) => !common.test(error))
  const said = warnings.filter((warning) => !ofAll.has(warning))
  const bounds = Object.entries(operation.limits).map(([name, most]) => `${name} ${most}`)
  return [
    `### ${key}`,
    `${description}.`,
    fieldsOf(operation),
    [
      `Lists: ${line_item_policy.mode}${line_item_policy.by_options ? " (options can change this)" : ""}.`,
      `Output: ${names(Object.keys(output_schema["properties"] as object))}.`,
      ...(said.length === 0 ? [] : [`Warnings: ${names(said)}.`]),
      ...(own.length === 0 ? [] : [`Errors: ${names(own)}.`]),
      ...(bounds.length === 0 ? [] : [`Limits: ${bounds.join(", ")}.`])
    ].join(" "),
    `${code({ ...sample.inputs, ...sample.options })} → ${code(sample.output)}`
  ]
}

it("The page docs/formatter-operations.md, which -u writes, matches the catalog", async () => {
  const text = await page([
    "# Formatter operations",
    "[The formatter](formatter.md) explains how operations are used, and describes formulas and dates. This page is generated from the catalog.",
    `Limits of all operations: ${Object.entries(limits)
      .map(([name, most]) => `${name} ${most}`)
      .join(", ")}.`,
    ...categories.flatMap(({ label, operations }) => [`## ${label}`].concat(operations.flatMap(textOf)))
  ])
  await expect(text).toMatchFileSnapshot(join(resolve(import.meta.dirname, "../../docs"), "formatter-operations.md"))
})
