import { Schema } from "effect"
import * as Characters from "./Characters.ts"
import { Timestamp } from "./Timestamp.ts"

/** The answers of the formatter, as the API documents them. The catalog has the operations. */

/** The largest body of a test, in bytes. */
export const maxFormatterBody = 262_144

const Versions = Schema.Struct({
  icu: Schema.String,
  cldr: Schema.String,
  tz: Schema.String,
  phone: Schema.String
}).annotate({ identifier: "FormatterDataVersions", description: "The data that results depend on beside the engine." })

const Limits = Schema.Record(Schema.String, Schema.Finite)

const field = {
  key: Schema.String,
  label: Schema.String,
  type: Schema.Literals([
    "string",
    "text",
    "integer",
    "number",
    "boolean",
    "datetime",
    "timezone",
    "select",
    "key_value",
    "list",
    "formula",
    "pattern",
    "any"
  ]),
  mappable: Schema.Boolean.annotate({ description: "An input, which templates may give; else an option" }),
  required: Schema.Boolean,
  default: Schema.Json,
  line_items: Schema.Boolean.annotate({ description: "A list is run through element by element" }),
  choices: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        value: Schema.Union([Schema.String, Schema.Finite]),
        label: Schema.String,
        sample: Schema.NullOr(Schema.String)
      })
    )
  ),
  custom: Schema.optionalKey(Schema.Boolean.annotate({ description: "Beside the choices others are taken" })),
  minimum: Schema.optionalKey(Schema.Finite),
  maximum: Schema.optionalKey(Schema.Finite),
  help: Schema.NullOr(Schema.String)
}

const Field = Schema.Struct(field).annotate({ identifier: "FormatterField" })

const Operation = Schema.Struct({
  key: Schema.String,
  label: Schema.String,
  description: Schema.String,
  since: Schema.String,
  deterministic: Schema.Boolean.annotate({ description: "No chance: not even that of the seed" }),
  line_item_policy: Schema.Struct({
    mode: Schema.Literals(["map", "aggregate", "reject"]),
    fields: Schema.Array(Schema.String),
    max: Schema.Int,
    by_options: Schema.Boolean.annotate({ description: "Options may say otherwise" })
  }),
  fields: Schema.Array(Field),
  dynamic_fields: Schema.Array(
    Schema.Struct({
      when: Schema.Struct({ field: Schema.String, in: Schema.Array(Schema.String) }),
      fields: Schema.Array(Field)
    })
  ),
  limits: Limits,
  warnings: Schema.Array(Schema.String),
  errors: Schema.Array(Schema.String),
  output_schema: Schema.JsonObject,
  sample: Schema.Struct({ inputs: Schema.JsonObject, options: Schema.JsonObject, output: Schema.JsonObject })
}).annotate({ identifier: "FormatterOperation" })

export const FormatterCatalog = Schema.Struct({
  engine_version: Schema.String,
  supported_versions: Schema.Array(Schema.String),
  catalog_hash: Schema.String.annotate({ description: "Another one whenever anything else of the catalog is" }),
  data_versions: Versions,
  limits: Limits,
  categories: Schema.Array(
    Schema.Struct({ key: Schema.String, label: Schema.String, operations: Schema.Array(Operation) })
  )
}).annotate({ identifier: "FormatterCatalog", description: "All operations, with all that a form of one needs." })
export type FormatterCatalog = typeof FormatterCatalog.Type

export const FormatterTrial = Schema.Struct({
  operation: Schema.String,
  engine_version: Schema.String,
  resolved_input: Schema.JsonObject.annotate({ description: "The inputs, with what their templates stand for" }),
  output: Schema.JsonObject,
  output_schema: Schema.JsonObject.annotate({ description: "Of this output" }),
  warnings: Schema.Array(
    Schema.Struct({
      code: Schema.String,
      field: Schema.NullOr(Schema.String),
      line_item_index: Schema.NullOr(Schema.Int),
      message: Schema.String
    })
  ),
  line_items: Schema.Struct({ applied: Schema.Boolean, count: Schema.Int }),
  anchor_at: Timestamp,
  duration_ms: Schema.Finite.annotate({ description: "Milliseconds that the trial took" }),
  data_versions: Versions
}).annotate({ identifier: "FormatterTrial", description: "What the operation made of the inputs." })

export const FormatterTrialInput = Schema.Struct({
  config: Schema.Struct({
    operation: Schema.String,
    engine_version: Schema.optionalKey(Schema.String.annotate({ description: "The current one, unless told" })),
    options: Schema.optionalKey(Schema.JsonObject)
  }),
  inputs: Schema.optionalKey(
    Schema.JsonObject.annotate({ description: "Values, whose texts may have templates: `{{trigger.body.name}}`" })
  ),
  context: Schema.optionalKey(Schema.JsonObject.annotate({ description: "The sample that templates are filled from" })),
  anchor_at: Schema.optionalKey(
    Schema.NullOr(
      Schema.String.annotate({
        description:
          "What now is: RFC 3339 with an offset, of the years 1900 to 9999; the time of the call, unless told"
      })
    )
  ),
  timezone: Schema.optionalKey(Schema.String.annotate({ description: "The zone of what names none; UTC unless told" })),
  seed: Schema.optionalKey(
    Schema.String.check(Characters.upTo(200)).annotate({
      description: "What chance is drawn from; `test` unless told"
    })
  )
}).annotate({ identifier: "FormatterTrialInput", description: "A step, and a sample for it." })

/** Machine-readable details of a step that gave no value. */
export const FormatterFault = Schema.Struct({
  stage: Schema.Literals(["config", "input", "execution"]),
  operation: Schema.String,
  engine_version: Schema.NullOr(Schema.String),
  field: Schema.optionalKey(Schema.String),
  line_item_index: Schema.optionalKey(Schema.Int),
  value_preview: Schema.optionalKey(Schema.String),
  hint: Schema.optionalKey(Schema.String),
  position: Schema.optionalKey(Schema.Int),
  limit: Schema.optionalKey(Schema.Finite),
  actual: Schema.optionalKey(Schema.Finite),
  resolved_input: Schema.NullOr(Schema.JsonObject)
})
