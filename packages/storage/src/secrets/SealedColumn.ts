import { Effect, Schema } from "effect"
import { fromJsonText } from "@tidegate/json/JsonSchema"
import { SecretUnreadable, type Secrets } from "./Secrets.ts"

/** Where a sealed value belongs: it opens nowhere else. */
export interface Owner {
  readonly team_id: string
  readonly id: string
}

const decode = Schema.decodeUnknownEffect(fromJsonText(Schema.JsonObject))

/** JSON objects that a table keeps encrypted in one of its columns; none and an empty one are null. */
export const sealedColumn = (secrets: Secrets["Service"], table: string, column: string) => {
  const addressOf = ({ id, team_id }: Owner) => ({ team_id, table, column, id })

  const seal = (owner: Owner, value: Schema.JsonObject): Effect.Effect<string | null> =>
    Object.keys(value).length === 0 ? Effect.succeed(null) : secrets.encrypt(addressOf(owner), JSON.stringify(value))

  /** Fails when it cannot be read: its key is gone, or it is another's. */
  const open = (owner: Owner, sealed: string | null): Effect.Effect<Schema.JsonObject, SecretUnreadable> => {
    if (sealed === null) return Effect.succeed({})
    const malformed = () =>
      new SecretUnreadable({ reason: "malformed", message: `${column} of ${owner.id} is no JSON object` })
    return Effect.flatMap(secrets.decrypt(addressOf(owner), sealed), (text) => Effect.mapError(decode(text), malformed))
  }

  /**
   * What cannot be read shows as nothing and is logged: the resource can still be seen and written anew. What runs or verifies by
   * it has to fail closed by itself.
   */
  const show = (owner: Owner, sealed: string | null): Effect.Effect<Schema.JsonObject> =>
    Effect.catch(open(owner, sealed), (error) =>
      Effect.as(Effect.logError(`${column} of ${owner.id} cannot be read`, error), {})
    )

  return { seal, open, show }
}
