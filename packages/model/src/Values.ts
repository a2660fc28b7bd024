import { Schema } from "effect"

/** Headers or a parsed query: a name and its value, or its values in the order received. */
export const Values = Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Array(Schema.String)]))
export type Values = typeof Values.Type
