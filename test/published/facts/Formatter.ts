import { of, row, type Section, shape, tests } from "./Facts.ts"

const api = tests("packages/api/test/Formatter.test.ts")
const engine = tests("packages/formatter/test/Engine.test.ts")
const trial = tests("packages/formatter/test/Trial.test.ts")
const catalog = tests("packages/formatter/test/Catalog.test.ts")

export const formatter: Section = {
  title: "Workflow formatter",
  endpoints: [
    row("GET /workflow-formatter/catalog", api("the catalog has every operation, and is not sent twice")),
    row("POST /workflow-formatter/test", api("an operation is tried with a sample, and nothing is stored"))
  ],
  fields: {
    FormatterCatalog: [of("*", catalog("is made of the rows: every operation with its fields, limits and output"))],
    FormatterDataVersions: [of("*", shape)],
    FormatterOperation: [of("*", catalog("is made of the rows: every operation with its fields, limits and output"))],
    FormatterField: [of("*", catalog("is made of the rows: every operation with its fields, limits and output"))],
    FormatterTrial: [of("*", trial("resolves templates, runs the operation, and narrows the schema"))],
    FormatterTrialInput: [
      of("config config.* inputs context", trial("resolves templates, runs the operation, and narrows the schema")),
      of("anchor_at timezone seed", trial("goes by the anchor, the zone and the seed of the body"))
    ]
  },
  states: [
    row("the same body twice gives the same bytes", trial("the same body gives the same bytes")),
    row("stages config, input and execution", engine("say at which stage they are")),
    row("line items: map, aggregate, reject", engine("are run one by one, zipped to the longest"))
  ],
  limits: [
    row("body of 256 KiB: 413", api("a body that is none, or too large, has the formatter's own codes")),
    row("1,000 line items, 128 KiB of text, 512 KiB of output", engine("are refused before the work is begun"))
  ]
}
