import type { Schema } from "effect"
import type { Source } from "@tidegate/model/Source"

/** `config` as stored: all members of the record's except `auth`, which has a column of its own. */
export type SourceConfig = Omit<Source["config"], "auth">

/** The writable fields of a source, validated and complete; secrets in plain text. */
export interface SourceFields {
  readonly name: string
  readonly description: string | null
  readonly type: string
  readonly disabled: boolean
  /** Its name in its URL, beside its id; null: only the id. */
  readonly slug: string | null
  readonly config: SourceConfig
  readonly auth: Schema.JsonObject
}
