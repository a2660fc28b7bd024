import { Schema } from "effect"

/** A problem that a write does not prevent. */
export const Warning = Schema.Struct({
  code: Schema.String.annotate({ description: "A code for programs" }),
  message: Schema.String.annotate({ description: "For people" }),
  path: Schema.String.annotate({ description: "The member that the warning is about" })
}).annotate({ identifier: "Warning" })
export interface Warning extends Schema.Schema.Type<typeof Warning> {}
