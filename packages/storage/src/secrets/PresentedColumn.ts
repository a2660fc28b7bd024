import { Option, Result, Schema } from "effect"
import type { PresentedSecrets } from "@tidegate/verification/PresentedSecrets"
import type { Secrets } from "./Secrets.ts"

/** The request that presented them, whose row the column `presented` is of. */
interface Owner {
  readonly team_id: string
  readonly id: string
}

const addressOf = ({ id, team_id }: Owner) => ({ team_id, table: "requests", column: "presented", id })

const Stored = Schema.fromJsonString(
  Schema.Struct({
    headers: Schema.Array(Schema.Tuple([Schema.String, Schema.Array(Schema.String)])),
    query: Schema.Array(Schema.Tuple([Schema.String, Schema.String])),
    own: Schema.optionalKey(Schema.Struct({ headers: Schema.Array(Schema.String), query: Schema.Array(Schema.String) }))
  })
)
const decode = Schema.decodeUnknownOption(Stored)

/** What goes into the column. At once, because a door does it for each request that presents something. */
export const sealPresented = (secrets: Secrets["Service"], owner: Owner, presented: PresentedSecrets): string =>
  secrets.seal(addressOf(owner), JSON.stringify(presented))

/** What is in it; null when it cannot be read, because its key is gone or it is not this request's. */
export const openPresented = (secrets: Secrets["Service"], owner: Owner, sealed: string): PresentedSecrets | null => {
  const opened = secrets.open(addressOf(owner), sealed)
  return Result.isFailure(opened) ? null : Option.getOrNull(decode(opened.success))
}
