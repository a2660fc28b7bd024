import { Schema } from "effect"

/** What deleting answers. */
export const Deleted = Schema.Struct({ id: Schema.String, deleted: Schema.Literal(true) }).annotate({
  identifier: "Deleted"
})
