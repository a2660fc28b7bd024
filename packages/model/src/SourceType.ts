import { Schema } from "effect"

/** How sources get their requests: the groups of the source types. */
export const SourceTypeGroup = Schema.Literals([
  "plain",
  "webhooks",
  "brokers",
  "schedule",
  "items",
  "gateway"
]).annotate({
  description:
    "plain: webhooks of any sender; webhooks: those of one provider; brokers: messages; schedule: its own times; items: what is read of a provider's account; gateway: the gateway's own events"
})

/** A type of sources, as people choose one. */
export const SourceType = Schema.Struct({
  type: Schema.String,
  name: Schema.String.annotate({ description: "The name by which people know it" }),
  description: Schema.String,
  group: SourceTypeGroup,
  documentation_url: Schema.NullOr(Schema.String).annotate({
    description: "The provider's own page about its webhooks"
  }),
  setup: Schema.Array(Schema.String).annotate({
    description: "What to do at the provider and at the source, in order. Texts in backticks are names and values"
  }),
  samples: Schema.Array(Schema.String).annotate({
    description: "The samples of a test request. Empty: nobody can send to sources of this type"
  }),
  signs_test_requests: Schema.Boolean.annotate({
    description:
      "Whether test requests are signed as the provider signs them. false: only the provider can, or no request is sent"
  })
}).annotate({ identifier: "SourceType" })
export interface SourceType extends Schema.Schema.Type<typeof SourceType> {}
