import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto"
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"

/*
 * Project keys are verified by their HMAC with a pepper, which the database stores encrypted by the key ring. So keys cannot be
 * guessed from a copy of the database alone, and a change of the ring does not change any key. There may be several peppers: new
 * keys use the newest, and older keys stay valid with theirs.
 */

/** The secrets with which project keys are made and verified. */
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

/** Creates the pepper of a version, unless it exists. */
const makePepper = Effect.fnUntraced(function* (version: number) {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const address = addressOf(version)
  const sealed = yield* secrets.encrypt(address, randomBytes(32).toString("base64"))
  yield* sql`insert into settings (name, value) values (${address.id}, ${sealed}) on conflict do nothing`
})

/** The pepper for new keys. The first call creates it. */
export const newestPepper: Found<Pepper> = Effect.gen(function* () {
  const version = Math.max(1, yield* newestVersion)
  const found = yield* pepperOf(version)
  if (found !== null) return found
  yield* makePepper(version)
  return (yield* pepperOf(version)) ?? (yield* Effect.die("a pepper that was made is gone"))
})

/** Creates a newer pepper, which every process uses for new keys from now on. Returns its version. */
export const renewPepper: Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient | Secrets> = Effect.gen(
  function* () {
    const version = (yield* newestVersion) + 1
    yield* makePepper(version)
    return version
  }
)

export const hmacOf = ({ key }: Pepper, text: string): string => createHmac("sha256", key).update(text).digest("hex")

/** Whether a stored HMAC belongs to a key, compared in constant time. */
export const isOf = (pepper: Pepper, text: string, hmac: string): boolean =>
  timingSafeEqual(Buffer.from(hmacOf(pepper, text), "hex"), Buffer.from(hmac, "hex"))
