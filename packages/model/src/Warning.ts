import { Schema } from "effect"

/** What a write that is accepted leaves open. */
export const Warning = Schema.Struct({
  code: Schema.String.annotate({ description: "For programs" }),
  message: Schema.String.annotate({ description: "For people" }),
  path: Schema.String.annotate({ description: "The member that it is about" })
}).annotate({ identifier: "Warning" })
export interface Warning extends Schema.Schema.Type<typeof Warning> {}
