import { Result, Schema } from "effect"
import { type FieldError, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { destination } from "./Destination.ts"
import { example } from "./destination/Example.ts"
import { DestinationPatch, DestinationWrite } from "./destination/DestinationDocument.ts"
import { body, headers, ids } from "./ExampleIds.ts"
import { fieldError, type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"
import { Id, optional } from "./Members.ts"
import { isQueryTooLong, longestQuery, RequestSample, ShownRequestSample } from "./RequestParts.ts"

/** A test delivery: to a new destination, or to a stored one as it would be after a change. */

const Message = Schema.Struct({
  destination_id: Schema.optionalKey(Id),
  destination: Schema.optionalKey(Schema.JsonObject.annotate({ message: "must be an object" })),
  request: Schema.optionalKey(RequestSample)
})

/** `destination`: the body of a create, or of a partial change of `destination_id`. */
export const DestinationTestMessage = Schema.Struct({
  destination_id: Schema.NullOr(Schema.String),
  destination: Schema.JsonObject,
  request: RequestSample
})
export type DestinationTestMessage = typeof DestinationTestMessage.Type

export const destinationTestExample = {
  destination: example.body,
  request: { method: "POST", path: "/", headers, body }
} as const

const request = optional(ShownRequestSample)

const DestinationTestInput = Schema.Union([
  Schema.Struct({ destination: DestinationWrite, request }),
  Schema.Struct({
    destination_id: Id.annotate({
      description: "A stored destination, whose settings and secrets are used where `destination` has no others",
      examples: [ids.destination]
    }),
    destination: optional(DestinationPatch),
    request
  })
]).annotate({
  identifier: "DestinationTestInput",
  description: "A new destination, or a stored one with the changes to test.",
  examples: [destinationTestExample] as never
})

const isField = (field: unknown): field is FieldError =>
  typeof field === "object" && field !== null && "path" in field && "message" in field

/** A refusal of the destination itself, with paths of this body. */
export const inDestination = (error: GatewayError): GatewayError => {
  const { fields } = (error.data ?? {}) as { readonly fields?: ReadonlyArray<unknown> }
  return error.code === "VALIDATION_ERROR" && fields !== undefined
    ? invalid(fields.filter(isField).map(({ message, path }) => ({ path: `destination.${path}`, message })))
    : error
}

const judge = (written: Members): Result.Result<DestinationTestMessage, GatewayError> =>
  Result.flatMap(
    orInvalid(
      judgeBody(Message, written, (message): Result.Result<DestinationTestMessage, FieldErrors> => {
        const { destination, destination_id = null, request = {} } = message
        if (destination === undefined && destination_id === null) return fieldError("destination", "is required")
        return isQueryTooLong(request)
          ? fieldError("request.query", `must be at most ${longestQuery} characters as a query string`)
          : Result.succeed({ destination_id, destination: destination ?? {}, request })
      })
    ),
    (message) =>
      message.destination_id === null
        ? Result.mapBoth(destination.create(message.destination, nowhere), {
            onSuccess: () => message,
            onFailure: inDestination
          })
        : Result.succeed(message)
  )

/** A destination's settings do not depend on it. */
const nowhere = { id: null, now: new Date(0), ingress: { baseUrl: "" } }

export const destinationTestBody = { described: DestinationTestInput, judge }
