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
}).annotate({ identifier: "FormatterDataVersions", description: "Versions of the data that results depend on." })

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
  mappable: Schema.Boolean.annotate({ description: "true: an input, which may contain templates. false: an option" }),
  required: Schema.Boolean,
  default: Schema.Json,
  line_items: Schema.Boolean.annotate({ description: "Whether a list is processed element by element" }),
  choices: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        value: Schema.Union([Schema.String, Schema.Finite]),
        label: Schema.String,
        sample: Schema.NullOr(Schema.String)
      })
    )
  ),
  custom: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Whether other values than the choices are accepted" })
  ),
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
  deterministic: Schema.Boolean.annotate({
    description: "Whether the result depends on the inputs only, and not on the seed"
  }),
  line_item_policy: Schema.Struct({
    mode: Schema.Literals(["map", "aggregate", "reject"]),
    fields: Schema.Array(Schema.String),
    max: Schema.Int,
    by_options: Schema.Boolean.annotate({ description: "Whether options can change this" })
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
  catalog_hash: Schema.String.annotate({ description: "Changes whenever anything else in the catalog changes" }),
  data_versions: Versions,
  limits: Limits,
  categories: Schema.Array(
    Schema.Struct({ key: Schema.String, label: Schema.String, operations: Schema.Array(Operation) })
  )
}).annotate({ identifier: "FormatterCatalog", description: "All operations, with the data for a form of each." })
export type FormatterCatalog = typeof FormatterCatalog.Type

export const FormatterTest = Schema.Struct({
  operation: Schema.String,
  engine_version: Schema.String,
  resolved_input: Schema.JsonObject.annotate({ description: "The inputs after their templates were filled in" }),
  output: Schema.JsonObject,
  output_schema: Schema.JsonObject.annotate({ description: "The schema of this output" }),
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
  duration_ms: Schema.Finite.annotate({ description: "Duration of the test in milliseconds" }),
  data_versions: Versions
}).annotate({ identifier: "FormatterTest", description: "The result of the operation." })

export const FormatterTestInput = Schema.Struct({
  config: Schema.Struct({
    operation: Schema.String,
    engine_version: Schema.optionalKey(Schema.String.annotate({ description: "Default: the current version" })),
    options: Schema.optionalKey(Schema.JsonObject)
  }),
  inputs: Schema.optionalKey(
    Schema.JsonObject.annotate({ description: "Values. Their texts may contain templates: `{{trigger.body.name}}`" })
  ),
  context: Schema.optionalKey(Schema.JsonObject.annotate({ description: "The sample data for templates" })),
  anchor_at: Schema.optionalKey(
    Schema.NullOr(
      Schema.String.annotate({
        description:
          "The current time of the test: RFC 3339 with an offset, in the years 1900 to 9999. Default: the time of the call"
      })
    )
  ),
  timezone: Schema.optionalKey(
    Schema.String.annotate({ description: "The time zone of values that name none. Default: UTC" })
  ),
  seed: Schema.optionalKey(
    Schema.String.check(Characters.upTo(200)).annotate({
      description: "The seed of random values. Default: `test`"
    })
  )
}).annotate({ identifier: "FormatterTestInput", description: "A step, and sample data for it." })

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
