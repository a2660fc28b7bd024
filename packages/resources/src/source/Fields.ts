import type { Schema } from "effect"
import type { Source, SourceMethod } from "@tidegate/model/Source"

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

export const defaultMethods: ReadonlyArray<SourceMethod> = ["POST", "PUT", "PATCH", "DELETE"]

/** The settings for senders, of a source that nobody can send to. */
export const plainSettings = {
  allowed_http_methods: defaultMethods,
  custom_response: null,
  mode: "webhook",
  proxy: null,
  chat_defer_ephemeral: false,
  rate_limit: null,
  rate_limit_period: null
} as const
