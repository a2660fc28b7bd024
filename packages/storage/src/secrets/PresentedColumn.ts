import { Option, Result, Schema } from "effect"
import type { PresentedSecrets } from "@tidegate/verification/PresentedSecrets"
import type { Secrets } from "./Secrets.ts"

/** The request that presented the credentials; they are in the column `presented` of its row. */
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

/** Encrypts the value of the column. Synchronous, because ingress calls it for each request that presents credentials. */
export const sealPresented = (secrets: Secrets["Service"], owner: Owner, presented: PresentedSecrets): string =>
  secrets.seal(addressOf(owner), JSON.stringify(presented))

/** Decrypts the value; null when it cannot be read, because its key is gone or it belongs to another request. */
export const openPresented = (secrets: Secrets["Service"], owner: Owner, sealed: string): PresentedSecrets | null => {
  const opened = secrets.open(addressOf(owner), sealed)
  return Result.isFailure(opened) ? null : Option.getOrNull(decode(opened.success))
}
