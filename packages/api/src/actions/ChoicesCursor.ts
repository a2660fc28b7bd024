import { Option, Result, Schema } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Behind } from "@tidegate/storage/reads/NamedReads"

/** A place in a list of choices. */
export interface Place {
  /** The page of the provider; null: the first one, or the list has no pages. */
  readonly page: string | null
  /** The last choice before the place; null: the page begins here. */
  readonly behind: Behind | null
}

const start: Place = { page: null, behind: null }

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      page: Schema.NullOr(Schema.String),
      behind: Schema.NullOr(Schema.Struct({ id: Schema.String, name: Schema.String }))
    })
  )
)

export const cursorOf = ({ behind, page }: Place): string =>
  Buffer.from(JSON.stringify({ page, behind: behind === null ? null : { id: behind.id, name: behind.name } })).toString(
    "base64url"
  )

export const placeOf = (cursor: string | null | undefined): Result.Result<Place, GatewayError> => {
  if (cursor === undefined || cursor === null) return Result.succeed(start)
  const read = decode(Buffer.from(cursor, "base64url").toString("utf8"))
  return Option.isNone(read)
    ? Result.fail(fail("INVALID_CURSOR", "the cursor was not returned by this list"))
    : Result.succeed(read.value)
}
