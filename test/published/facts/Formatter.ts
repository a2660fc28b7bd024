import { of, row, type Section, shape, tests } from "./Facts.ts"

const api = tests("packages/api/test/Formatter.test.ts")
const engine = tests("packages/formatter/test/Engine.test.ts")
const operationTest = tests("packages/formatter/test/OperationTest.test.ts")
const catalog = tests("packages/formatter/test/Catalog.test.ts")

export const formatter: Section = {
  title: "Workflow formatter",
  endpoints: [
    row(
      "GET /workflow-formatter/catalog",
      api("Formatter catalog lists every operation and is not sent again to a caller that has it")
    ),
    row("POST /workflow-formatter/test", api("Formatter test runs an operation on a sample and is not cached"))
  ],
  fields: {
    FormatterCatalog: [of("*", catalog("Formatter catalog lists every operation with its fields, limits and output"))],
    FormatterDataVersions: [of("*", shape)],
    FormatterOperation: [
      of("*", catalog("Formatter catalog lists every operation with its fields, limits and output"))
    ],
    FormatterField: [of("*", catalog("Formatter catalog lists every operation with its fields, limits and output"))],
    FormatterTest: [
      of("*", operationTest("Formatter test call resolves templates, runs the operation and narrows the output schema"))
    ],
    FormatterTestInput: [
      of(
        "config config.* inputs context",
        operationTest("Formatter test call resolves templates, runs the operation and narrows the output schema")
      ),
      of(
        "anchor_at timezone seed",
        operationTest("Formatter test call uses the anchor, the time zone and the seed of its body")
      )
    ]
  },
  states: [
    row(
      "the same body twice gives the same bytes",
      operationTest("Formatter test call gives the same bytes for the same body")
    ),
    row("stages config, input and execution", engine("Formatter failure names the stage at which it happened")),
    row(
      "line items: map, aggregate, reject",
      engine("Line items are processed one by one and combined to the longest list")
    )
  ],
  limits: [
    row("body of 256 KiB: 413", api("Malformed or too large formatter body has error codes of the formatter")),
    row(
      "1,000 line items, 128 KiB of text, 512 KiB of output",
      engine("Formatter limits are checked before the work begins")
    )
  ]
}
