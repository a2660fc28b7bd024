import { Effect, Schema } from "effect"
import { fromJsonText } from "@tidegate/json/JsonSchema"
import { SecretUnreadable, type Secrets } from "./Secrets.ts"

/** The row that an encrypted value belongs to: it can be decrypted nowhere else. */
export interface Owner {
  readonly team_id: string
  readonly id: string
}

const decode = Schema.decodeUnknownEffect(fromJsonText(Schema.JsonObject))

/** JSON objects that a table stores encrypted in one of its columns; null for none and for an empty one. */
export const sealedColumn = (secrets: Secrets["Service"], table: string, column: string) => {
  const addressOf = ({ id, team_id }: Owner) => ({ team_id, table, column, id })

  const seal = (owner: Owner, value: Schema.JsonObject): Effect.Effect<string | null> =>
    Object.keys(value).length === 0 ? Effect.succeed(null) : secrets.encrypt(addressOf(owner), JSON.stringify(value))

  /** Fails when the value cannot be decrypted: its key is gone, or it belongs to another row. */
  const open = (owner: Owner, sealed: string | null): Effect.Effect<Schema.JsonObject, SecretUnreadable> => {
    if (sealed === null) return Effect.succeed({})
    const malformed = () =>
      new SecretUnreadable({ reason: "malformed", message: `${column} of ${owner.id} is no JSON object` })
    return Effect.flatMap(secrets.decrypt(addressOf(owner), sealed), (text) => Effect.mapError(decode(text), malformed))
  }

  /**
   * A value that cannot be decrypted shows as empty and is logged, so that the resource can still be shown and written. Callers
   * that run or verify with it have to fail closed themselves.
   */
  const show = (owner: Owner, sealed: string | null): Effect.Effect<Schema.JsonObject> =>
    Effect.catch(open(owner, sealed), (error) =>
      Effect.as(Effect.logError(`${column} of ${owner.id} cannot be read`, error), {})
    )

  return { seal, open, show }
}
