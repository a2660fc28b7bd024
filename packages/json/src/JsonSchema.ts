import { Effect, Schema, SchemaGetter, SchemaIssue, SchemaTransformation } from "effect"
import { readJson } from "./JsonText.ts"

const reading = new SchemaTransformation.Transformation<unknown, string>(
  SchemaGetter.transformEffect((text: string, options) =>
    Effect.try({
      try: () => readJson(text),
      catch: () => new SchemaIssue.InvalidValue({ expected: "a text of JSON" }, text, options)
    })
  ),
  SchemaGetter.stringifyJson()
)

const Text = Schema.String.pipe(Schema.decodeTo(Schema.Unknown, reading))

/** Like `Schema.fromJsonString`, for JSON text that we wrote, but keeps all digits of numbers. */
export const fromJsonText = <S extends Schema.Top>(schema: S) => Text.pipe(Schema.decodeTo(schema))
