import { Schema, SchemaTransformation } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { type ErrorCode, GatewayError, statusOf, toResponse } from "@tidegate/model/GatewayError"

/** An error's body, the same for every route. `data` holds what a program needs to react. */
export interface ErrorBody {
  readonly error: string
  readonly code: string
  readonly status: number
  readonly message: string
  readonly data?: Schema.Json
}

const codesOf = (status: number): ReadonlyArray<string> =>
  (Object.keys(statusOf) as Array<ErrorCode>).filter(
    (code) => statusOf[code] === status && code !== "SOURCE_DISABLED_INGRESS"
  )

/** `GatewayError` as it is answered with one status; a union of these finds the status by the code. */
const withStatus = (status: number, description: string) => {
  const codes = codesOf(status)
  const body = Schema.Struct({
    error: Schema.String,
    code: Schema.Literals(codes),
    status: Schema.Literal(status),
    message: Schema.String,
    data: Schema.optionalKey(Schema.Json)
  }).annotate({ identifier: `Error${status}`, description })
  return body.pipe(
    Schema.decodeTo(
      Schema.toType(GatewayError).check(Schema.makeFilter((error) => codes.includes(error.code))),
      SchemaTransformation.transform<GatewayError, typeof body.Type>({
        decode: ({ code, message, data }) =>
          new GatewayError(data === undefined ? { code, message } : { code, message, data }),
        encode: (error) => toResponse(error).body as unknown as typeof body.Type
      })
    ),
    HttpApiSchema.status(status)
  )
}

/** What any call may fail with. */
export const ApiErrors = [
  withStatus(400, "The body or a parameter is wrong; `data.fields` tells which."),
  withStatus(401, "No API key was sent, or it is not (or no longer) valid."),
  withStatus(403, "The key cannot act on that team."),
  withStatus(404, "There is no such resource in this team, or no such route."),
  withStatus(405, "The path is known, the method is not one of those in `Allow`."),
  withStatus(409, "The state of the resource, or another resource, is in the way."),
  withStatus(413, "The body is larger than this route takes."),
  withStatus(415, "The body is not JSON."),
  withStatus(429, "Too many calls; see `Retry-After`."),
  withStatus(500, "A fault of the gateway; it is in its log."),
  withStatus(503, "Storage or the owner of the resource did not answer in time; see `Retry-After`.")
]
