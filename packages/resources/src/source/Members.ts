import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { RatePeriod } from "@tidegate/model/Destination"
import { ResponseContentType, SourceMethod } from "@tidegate/model/Source"
import { Condition, NamedCondition, TextCondition } from "../Condition.ts"
import { closed, describedAs } from "../DescribedAs.ts"
import { Description, HeaderName, OneOf, optional, setting } from "../Members.ts"
import { WrittenSubscription } from "./Broker.ts"
import { WrittenProvider } from "./Provider.ts"
import { Mode, Proxy } from "./Proxy.ts"
import { WrittenSchedule } from "./Schedule.ts"

/** The members of every source and of its `config`, for validation and for the document. */

const responseBody = Schema.String.check(Characters.upTo(65_536)).annotate({
  description:
    "May contain placeholders: {{body.<path>}} {{headers.<name>}} {{query.<name>}} {{path}} {{method}} {{request.id}}"
})

export const Response = Schema.Struct({
  content_type: setting(ResponseContentType),
  body: setting(responseBody),
  rules: setting(
    Schema.Array(
      Schema.Struct({
        enabled: setting(Schema.Boolean.annotate({ default: true })),
        match: setting(
          Schema.Struct({
            method: setting(TextCondition),
            path: setting(TextCondition),
            query: setting(NamedCondition),
            headers: setting(NamedCondition),
            body: setting(Condition)
          }).check(closed)
        ),
        response: setting(
          Schema.Struct({
            status: setting(
              Schema.Int.check(Schema.isBetween({ minimum: 200, maximum: 599 })).annotate({ default: 200 })
            ),
            content_type: setting(ResponseContentType),
            body: setting(responseBody),
            headers: setting(Schema.Record(HeaderName, Schema.String))
          }).check(closed)
        )
      }).check(closed)
    ).check(Schema.isMaxLength(50))
  )
})
  .check(closed)
  .annotate({
    identifier: "CustomResponse",
    description:
      "The answer to senders: of the first enabled rule that matches, otherwise `body`; without a body, the receipt."
  })

/** A higher value is no limit: a process takes some thousands per second. */
const highestRate = 1_000_000_000
const rateMessage = `must be a whole number from 1 to ${highestRate}, or null`

export const RateLimit = Schema.Number.annotate({
  description: "The largest number of requests accepted per `rate_limit_period`; null: no limit"
}).check(
  Schema.isInt({ message: rateMessage }).abort(),
  Schema.isBetween({ minimum: 1, maximum: highestRate }, { message: rateMessage })
)

const methodsOf = (message: string) =>
  Schema.Array(SourceMethod.annotate({ message }))
    .check(
      Schema.makeFilter(
        (methods: ReadonlyArray<SourceMethod>) => methods.length > 0 || "must name at least one method",
        {
          toJsonSchema: () => ({ minItems: 1 })
        }
      )
    )
    .annotate({ default: ["POST", "PUT", "PATCH", "DELETE"] })

export const settings = {
  allowed_http_methods: optional(
    Schema.NullOr(methodsOf(`must be one of ${SourceMethod.literals.join(", ")}`)).annotate({
      message: "must be an array of methods"
    })
  ),
  custom_response: optional(
    Schema.NullOr(Schema.JsonObject.pipe(describedAs(Response))).annotate({ message: "must be an object or null" })
  ),
  mode: optional(Mode),
  proxy: optional(Proxy),
  chat_defer_ephemeral: optional(
    Schema.NullOr(
      Schema.Boolean.annotate({
        description: "Type DISCORD: the first answer is shown to its sender only",
        default: false
      })
    ).annotate({ message: "must be true, false or null" })
  ),
  rate_limit: optional(Schema.NullOr(RateLimit).annotate({ message: rateMessage })),
  rate_limit_period: optional(
    Schema.NullOr(OneOf(RatePeriod.literals).annotate({ description: "Default: second, if there is a limit" }))
  )
}

/** The settings of the types that nobody can send to: the only ones that have an effect there. */
export const itemSettings = { provider: optional(WrittenProvider) }
export const scheduledSettings = { schedule: optional(WrittenSchedule) }
export const brokerSettings = { subscription: optional(WrittenSubscription) }

export const members = {
  description: optional(Description),
  status: optional(OneOf(["enabled", "disabled"]).annotate({ description: "Default: enabled" })),
  url: optional(
    Schema.NullOr(
      Schema.String.annotate({
        description:
          "A second URL below the ingress URL: its last part has 3 to 63 lower-case letters, digits and hyphens. Null: only the URL with the id"
      })
    ).annotate({ message: "must be a string or null" })
  )
}

const typePattern = /^[A-Z][A-Z0-9_]{0,63}$/u

/** The name of a kind of sender. */
export const Type = Schema.String.annotate({ message: "must be a string" }).check(
  Schema.isPattern(typePattern, {
    message: "must begin with a capital letter, and have capital letters, digits and underscores only"
  })
)
