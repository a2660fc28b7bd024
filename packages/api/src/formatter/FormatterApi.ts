import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { FormatterCatalog, FormatterTest, FormatterTestInput } from "@tidegate/model/Formatter"
import { type FormatterCode, formatterCodes } from "@tidegate/model/FormatterCode"
import { executing, reading } from "@tidegate/model/Permission"
import { Authorization } from "../contract/Authorization.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const data_versions = { icu: "78.2", cldr: "48.0", tz: "2025c", phone: "1.13.16" }

const output_schema = { type: "object", properties: { result: { type: "string" } }, required: ["result"] }

const catalog = {
  engine_version: "1.0.0",
  supported_versions: ["1.0.0"],
  catalog_hash: `sha256:${"51".repeat(32)}`,
  data_versions,
  limits: { body_bytes: 262_144, string_bytes: 131_072, line_items: 1000, output_bytes: 524_288, cpu_ms: 250 },
  categories: [
    {
      key: "text",
      label: "Text",
      operations: [
        {
          key: "text.lowercase",
          label: "Lowercase",
          description: "All letters small, as the locale has it",
          since: "1.0.0",
          deterministic: true,
          line_item_policy: { mode: "map", fields: ["input"], max: 1000, by_options: false },
          fields: [
            {
              key: "input",
              label: "Text",
              type: "string",
              mappable: true,
              required: true,
              default: null,
              line_items: true,
              choices: null,
              help: null
            }
          ],
          dynamic_fields: [],
          limits: {},
          warnings: ["INPUT_EMPTY"],
          errors: ["FORMATTER_INPUT_REQUIRED"],
          output_schema,
          sample: { inputs: { input: "Ada" }, options: {}, output: { result: "ada" } }
        }
      ]
    }
  ]
}

const body = {
  config: { operation: "text.replace", engine_version: "1.0.0", options: {} },
  inputs: { input: "{{trigger.body.name}}", find: "-", replace: " " },
  context: { trigger: { body: { name: "ada-lovelace" } }, steps: {} },
  anchor_at: "2026-01-01T00:00:00.000Z",
  timezone: "UTC",
  seed: "test"
}

/** The formatter, which converts values. */
export class FormatterApi extends HttpApiGroup.make("formatter")
  .add(
    HttpApiEndpoint.get("catalog", "/workflow-formatter/catalog", {
      query: Parameters.onlyTeam,
      success: FormatterCatalog
    }).annotateMerge(
      operation({
        id: "getFormatterCatalog",
        permission: reading,
        summary: "Retrieve the operations of the formatter",
        description:
          "Returns the operations with their fields, limits and outputs. The `ETag` is the `catalog_hash`. If `If-None-Match` has it, the answer is 304.",
        answer: catalog
      })
    ),
    HttpApiEndpoint.post("test", "/workflow-formatter/test", {
      query: Parameters.onlyTeam,
      payload: FormatterTestInput,
      success: FormatterTest
    }).annotateMerge(
      operation({
        id: "testFormatter",
        permission: executing,
        summary: "Test an operation of the formatter",
        description:
          "Nothing is stored. If `anchor_at` is set, the same body always gives the same answer, except for `duration_ms`. The body has at most 256 KiB.",
        body,
        answer: {
          operation: "text.replace",
          engine_version: "1.0.0",
          resolved_input: { input: "ada-lovelace", find: "-", replace: " " },
          output: { result: "ada lovelace" },
          output_schema,
          warnings: [],
          line_items: { applied: false, count: 0 },
          anchor_at: "2026-01-01T00:00:00.000Z",
          duration_ms: 0.2,
          data_versions
        },
        errors: [
          "FORMATTER_ENVELOPE_INVALID",
          "FORMATTER_ANCHOR_INVALID",
          "FORMATTER_BODY_TOO_LARGE",
          ...(Object.keys(formatterCodes) as ReadonlyArray<FormatterCode>)
        ]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Formatter", description: "Operations on texts, numbers, dates and lists." })
  ) {}
