import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto"
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"

/*
 * What project keys are recognised by is their HMAC, by a pepper that stands in the database encrypted by the ring: a copy of the database
 * alone is nothing to try keys against, and a change of the ring changes no key. There may be several peppers: keys are made by the newest,
 * and those that were made by an older one stay valid by that.
 */

/** What a key is made or recognised by. */
export interface Pepper {
  readonly version: number
  readonly key: KeyObject
}

const prefix = "key_pepper."
const addressOf = (version: number) => ({ team_id: "", table: "settings", column: "value", id: `${prefix}${version}` })

type Found<A> = Effect.Effect<A, SqlError.SqlError | SecretUnreadable, SqlClient.SqlClient | Secrets>

/** The pepper of a version; null: there is none. */
export const pepperOf = (version: number): Found<Pepper | null> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const secrets = yield* Secrets
    const address = addressOf(version)
    const [row] = yield* sql<{ value: string }>`select value from settings where name = ${address.id}`
    if (row === undefined) return null
    const text = yield* secrets.decrypt(address, row.value)
    return { version, key: createSecretKey(Buffer.from(text, "base64")) }
  })

const newestVersion = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ version: number | null }>`
    select max(substr(name, ${prefix.length + 1})::int) as version from settings where starts_with(name, ${prefix})`
  return row?.version ?? 0
})

/** Makes the pepper of a version, unless somebody has. */
const makePepper = Effect.fnUntraced(function* (version: number) {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const address = addressOf(version)
  const sealed = yield* secrets.encrypt(address, randomBytes(32).toString("base64"))
  yield* sql`insert into settings (name, value) values (${address.id}, ${sealed}) on conflict do nothing`
})

/** What keys are made by now. The first time it is asked for, it is made. */
export const newestPepper: Found<Pepper> = Effect.gen(function* () {
  const version = Math.max(1, yield* newestVersion)
  const found = yield* pepperOf(version)
  if (found !== null) return found
  yield* makePepper(version)
  return (yield* pepperOf(version)) ?? (yield* Effect.die("a pepper that was made is gone"))
})

/** Makes a newer one, by which keys are made from now on in every process. Gives its version. */
export const renewPepper: Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient | Secrets> = Effect.gen(
  function* () {
    const version = (yield* newestVersion) + 1
    yield* makePepper(version)
    return version
  }
)

export const hmacOf = ({ key }: Pepper, text: string): string => createHmac("sha256", key).update(text).digest("hex")

/** Whether a key is the one that a stored HMAC is of, in a time that does not tell how much of it is right. */
export const isOf = (pepper: Pepper, text: string, hmac: string): boolean =>
  timingSafeEqual(Buffer.from(hmacOf(pepper, text), "hex"), Buffer.from(hmac, "hex"))
