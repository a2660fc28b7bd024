import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { FormatterCatalog } from "@tidegate/model/Formatter"
import { formatterCodes } from "@tidegate/model/FormatterCode"
import { catalog } from "../src/Catalog.ts"
import { warnings } from "../src/engine/Field.ts"
import { categories, operations } from "../src/Operations.ts"
import { outcomeOf } from "./Run.ts"

const versions = { icu: "78.2", cldr: "48.0", tz: "2025c", phone: "1.13.16" }

describe("Formatter catalog", () => {
  it("Formatter catalog lists every operation with its fields, limits and output", () => {
    const made = Schema.decodeUnknownSync(FormatterCatalog)(catalog(versions))
    expect(made.categories.map(({ key, operations }) => [key, operations.length])).toEqual([
      ["text", 27],
      ["number", 6],
      ["date", 4],
      ["utility", 8]
    ])
    expect(operations.size).toBe(45)
    for (const { operations } of made.categories) {
      for (const { dynamic_fields, fields, key, line_item_policy, output_schema } of operations) {
        expect(fields.length + dynamic_fields.length, key).toBeGreaterThan(0)
        expect(Object.keys(output_schema["properties"] as object).length, key).toBeGreaterThan(0)
        if (line_item_policy.mode === "reject") expect(line_item_policy.fields, key).toEqual([])
      }
    }
  })

  it("Formatter catalog has another hash when anything in it changes", () => {
    expect(catalog(versions)["catalog_hash"]).toBe(catalog(versions)["catalog_hash"])
    expect(catalog({ ...versions, tz: "2026a" })["catalog_hash"]).not.toBe(catalog(versions)["catalog_hash"])
  })

  it("Formatter catalog is smaller than 100 kB", () => {
    expect(JSON.stringify(catalog(versions)).length).toBeLessThan(100_000)
  })
})

describe("Rows of the formatter catalog", () => {
  const rows = categories.flatMap(({ key, operations }) =>
    operations.map((operation) => [operation.key, key, operation] as const)
  )

  it.each(rows)(
    "Formatter operation %s has a sample whose result is correct",
    (key, category, { errors, sample, warnings: said }) => {
      expect(key.startsWith(`${category}.`)).toBe(true)
      const outcome = outcomeOf(key, sample.inputs, sample.options)
      if (key === "number.random") expect(outcome.output?.["result"]).toBeTypeOf("number")
      else expect(outcome.output).toEqual(sample.output)
      for (const code of outcome.warnings ?? []) expect(said).toContain(code)
      for (const code of errors) expect(Object.keys(formatterCodes)).toContain(code)
      for (const code of said) expect(Object.keys(warnings)).toContain(code)
    }
  )
})
