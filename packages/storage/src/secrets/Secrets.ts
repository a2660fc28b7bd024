import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  hash,
  hkdfSync,
  randomBytes,
  timingSafeEqual
} from "node:crypto"
import type { KeyObject } from "node:crypto"
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Result, Schema } from "effect"
import { idTime } from "@tidegate/model/Ids"
import { sealedColumns } from "../Tables.ts"

/** A key that encrypts secrets at rest. Its bytes stay in a key object, so that logs and dumps do not show them. */
export interface SecretKey {
  /** The name of the key in encrypted values. */
  readonly id: string
  /** Its name in values that were encrypted before it had an id. */
  readonly fingerprint: string
  readonly key: KeyObject
}

/** Newest first: the first key encrypts, all decrypt. */
export type KeyRing = readonly [SecretKey, ...ReadonlyArray<SecretKey>]

/**
 * The keys cannot be used: badly written, or their file cannot be read or created. The message never contains any part of a key.
 */
export class SecretKeyError extends Schema.TaggedError<SecretKeyError>()("SecretKeyError", {
  message: Schema.String
}) {}

/**
 * A stored secret cannot be decrypted. `malformed`: not a value of `encrypt`. `unknown_key`: its key is not in the ring.
 * `tampered`: altered, or copied from another row, column or team, or encrypted by another key with the same id.
 */
export class SecretUnreadable extends Schema.TaggedError<SecretUnreadable>()("SecretUnreadable", {
  reason: Schema.Literals(["malformed", "unknown_key", "tampered"]),
  message: Schema.String
}) {}

/** Where a secret is stored. The address is authenticated with the secret, so a value can be decrypted only in its own place. */
export interface SecretAddress {
  readonly team_id: string
  readonly table: string
  readonly column: string
  readonly id: string
}

const cipher = "aes-256-gcm"
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

const bytesOf = ({ column, id, table, team_id }: SecretAddress): Buffer =>
  Buffer.from(`${team_id}|${table}|${column}|${id}`, "utf8")

/** The bytes of canonical base64url, or null: a value has exactly one spelling, so a changed character is always noticed. */
const fromBase64Url = (text: string): Buffer | null => {
  const bytes = Buffer.from(text, "base64url")
  return bytes.toString("base64url") === text ? bytes : null
}

/** `v1`: settings, encrypted with the key itself. `v2`: values of the event path, encrypted with a key of the day. */
type Version = "v1" | "v2"

type KeyOfPlace = (key: KeyObject, address: SecretAddress) => KeyObject

const itself: KeyOfPlace = (key) => key

const dayMs = 86_400_000
const maxDayKeys = 100

/**
 * The key of the day of an id, derived from a key of the ring. Random nonces are safe for 2^32 values per key: far more than the
 * settings ever written, but soon reached by requests.
 */
const makeDayKeys = (): KeyOfPlace => {
  const known = new Map<KeyObject, Map<number, KeyObject>>()
  return (key, { id }) => {
    const day = Math.floor((idTime(id) ?? 0) / dayMs)
    const ofKey = known.get(key) ?? new Map<number, KeyObject>()
    known.set(key, ofKey)
    let found = ofKey.get(day)
    if (found === undefined) {
      found = createSecretKey(Buffer.from(hkdfSync("sha256", key, "", `tidegate sealed ${day}`, keyBytes)))
      if (ofKey.size >= maxDayKeys) ofKey.clear()
      ofKey.set(day, found)
    }
    return found
  }
}

const declared: ReadonlySet<string> = new Set(sealedColumns.map(({ column, table }) => `${table}.${column}`))

/** A value in an undeclared column would be missed by the next key rotation, and be lost with the old key. */
const inDeclared = ({ column, table }: SecretAddress): void => {
  if (!declared.has(`${table}.${column}`)) throw new Error(`${table}.${column} is not declared to be sealed`)
}

const encrypt = (version: Version, id: string, key: KeyObject, address: SecretAddress, plaintext: string): string => {
  inDeclared(address)
  const nonce = randomBytes(nonceBytes)
  const encryption = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes })
  encryption.setAAD(bytesOf(address))
  const sealed = Buffer.concat([encryption.update(plaintext, "utf8"), encryption.final(), encryption.getAuthTag()])
  return `${version}.${id}.${nonce.toString("base64url")}.${sealed.toString("base64url")}`
}

const decrypt = (
  version: Version,
  keys: ReadonlyMap<string, KeyObject>,
  keyOf: KeyOfPlace,
  address: SecretAddress,
  value: string
): Result.Result<string, SecretUnreadable> => {
  const unreadable = (reason: SecretUnreadable["reason"], why: string) =>
    Result.fail(
      new SecretUnreadable({ reason, message: `${address.table}.${address.column} of ${address.id}: ${why}` })
    )

  const [written, keyId = "", nonceText = "", sealedText = "", ...rest] = value.split(".")
  const nonce = fromBase64Url(nonceText)
  const sealed = fromBase64Url(sealedText)
  if (written !== version || rest.length > 0 || nonce?.length !== nonceBytes || !sealed || sealed.length < tagBytes) {
    return unreadable("malformed", "is not an encrypted value")
  }
  const key = keys.get(keyId)
  if (key === undefined) return unreadable("unknown_key", `is encrypted by the key ${keyId}, which is not configured`)

  const decryption = createDecipheriv(cipher, keyOf(key, address), nonce, { authTagLength: tagBytes })
  decryption.setAAD(bytesOf(address))
  decryption.setAuthTag(sealed.subarray(-tagBytes))
  const opened = decryption.update(sealed.subarray(0, -tagBytes))
  try {
    return Result.succeed(Buffer.concat([opened, decryption.final()]).toString("utf8"))
  } catch {
    return unreadable("tampered", "does not authenticate")
  }
}

/**
 * Encryption of secrets at rest: AES-256-GCM, a random nonce per value, `v1.<keyId>.<nonce>.<ciphertext and tag>` in
 * base64url. Values of older keys stay readable while those keys are in the ring.
 */
export class Secrets extends Context.Service<
  Secrets,
  {
    readonly encrypt: (address: SecretAddress, plaintext: string) => Effect.Effect<string>
    readonly decrypt: (address: SecretAddress, value: string) => Effect.Effect<string, SecretUnreadable>
    /** The same, synchronous and for any number of values; each belongs to a row with a generated id. For the event path. */
    readonly seal: (address: SecretAddress, plaintext: string) => string
    readonly open: (address: SecretAddress, value: string) => Result.Result<string, SecretUnreadable>
    /** Encrypts a value of either version again with the first key. */
    readonly renew: (address: SecretAddress, value: string) => Result.Result<string, SecretUnreadable>
    /** The names of the keys in values, newest first: the id, and the fingerprint that was used before there was an id. */
    readonly names: ReadonlyArray<{ readonly id: string; readonly fingerprint: string }>
  }
>()("@tidegate/storage/Secrets") {
  static readonly layer = ({ keys }: { readonly keys: KeyRing }): Layer.Layer<Secrets> => {
    // Keys are also found by fingerprint, so that values stay readable when an unnamed key gets an id later.
    const byId = new Map([
      ...keys.map(({ fingerprint, key }) => [fingerprint, key] as const),
      ...keys.map(({ id, key }) => [id, key] as const)
    ])
    const [{ id, key }] = keys
    const dayKey = makeDayKeys()
    const renewed = (version: Version, keyOf: KeyOfPlace, address: SecretAddress, value: string) =>
      Result.map(decrypt(version, byId, keyOf, address, value), (text) =>
        encrypt(version, id, keyOf(key, address), address, text)
      )
    return Layer.succeed(Secrets, {
      encrypt: (address, plaintext) => Effect.sync(() => encrypt("v1", id, key, address, plaintext)),
      decrypt: (address, value) => Effect.suspend(() => Effect.fromResult(decrypt("v1", byId, itself, address, value))),
      seal: (address, plaintext) => encrypt("v2", id, dayKey(key, address), address, plaintext),
      open: (address, value) => decrypt("v2", byId, dayKey, address, value),
      renew: (address, value) =>
        value.startsWith("v2.") ? renewed("v2", dayKey, address, value) : renewed("v1", itself, address, value),
      names: keys.map(({ fingerprint, id }) => ({ id, fingerprint }))
    })
  }
}

const keyId = /^[A-Za-z0-9_-]{1,32}$/
const hex = /^(?:[0-9A-Fa-f]{2})+$/
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/** A 32-byte key in base64 never reads as hex: it is of odd length, or padded. */
const keyMaterial = (text: string): Buffer | null => {
  if (hex.test(text)) return Buffer.from(text, "hex")
  return base64.test(text) ? Buffer.from(text, "base64") : null
}

/**
 * Parses a key ring: `id:key,id:key`, newest first, or a single `key`; a key is 32 bytes in base64 or hex. The fingerprint names
 * a key without an id. Errors say the position of a bad entry, never its content.
 */
export const parseSecretKeys = (text: string): Result.Result<KeyRing, SecretKeyError> => {
  const keys: Array<SecretKey> = []
  const fail = (message: string) => Result.fail(new SecretKeyError({ message }))

  for (const [index, part] of text.split(",").entries()) {
    const entry = part.trim()
    const where = `secret key ${index + 1}`
    const colon = entry.indexOf(":")
    const id = colon < 0 ? null : entry.slice(0, colon)
    if (entry === "") return fail(text.trim() === "" ? "no secret key is given" : `${where} is empty`)
    if (id !== null && !keyId.test(id)) {
      return fail(`${where}: the id before the colon must be 1 to 32 letters, digits, _ or -`)
    }
    const bytes = keyMaterial(entry.slice(colon + 1))
    if (bytes === null) return fail(`${where} is neither base64 nor hex`)
    if (bytes.length !== keyBytes) return fail(`${where} has ${bytes.length} bytes; ${keyBytes} are needed`)
    const fingerprint = createHash("sha256").update(bytes).digest("hex").slice(0, 8)
    const key: SecretKey = { id: id ?? fingerprint, fingerprint, key: createSecretKey(bytes) }
    if (keys.some((other) => other.id === key.id)) return fail(`${where} has the id of another key`)
    keys.push(key)
  }
  const [first, ...others] = keys
  return first === undefined ? fail("no secret key is given") : Result.succeed([first, ...others])
}

/**
 * Creates the key file under a temporary name and then links it to its place: the link appears complete or not at all, and never
 * replaces another process's file. The first process wins, and the others use its key. The file is synced first, because a secret
 * may be committed with it a moment later and must not outlive its key.
 */
const createKeyFile = Effect.fnUntraced(function* (home: string, path: string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(home, { recursive: true, mode: 0o700 })
  const temporary = `${path}.${randomBytes(8).toString("hex")}`
  const file = yield* fs.open(temporary, { flag: "wx", mode: 0o600 })
  yield* Effect.addFinalizer(() => Effect.ignore(fs.remove(temporary)))
  yield* file.writeAll(Buffer.from(`${randomBytes(keyBytes).toString("base64")}\n`, "utf8"))
  yield* file.sync
  yield* Effect.catchReason(fs.link(temporary, path), "PlatformError", "AlreadyExists", () => Effect.void)
  // Not every file system can sync a directory; then there is nothing more to do.
  const folder = yield* fs.open(home, { flag: "r" })
  yield* Effect.ignore(folder.sync)
}, Effect.scoped)

/**
 * Reads the key ring from the file `secrets.key` in the gateway's home folder. A missing file is created with a new key (mode
 * 0600). A file that cannot be read or parsed is an error and is never replaced: stored secrets need it.
 */
export const loadSecretKeys = Effect.fn("Secrets.loadKeys")(
  function* (home: string) {
    const fs = yield* FileSystem.FileSystem
    const path = join(home, "secrets.key")
    const text = yield* Effect.catchReason(fs.readFileString(path), "PlatformError", "NotFound", () =>
      Effect.andThen(createKeyFile(home, path), fs.readFileString(path))
    )
    const { mode } = yield* fs.stat(path)
    if ((mode & 0o077) !== 0) yield* Effect.logWarning(`${path} is readable by others than its owner`)
    return yield* Effect.fromResult(
      Result.mapError(parseSecretKeys(text), ({ message }) => new SecretKeyError({ message: `${path}: ${message}` }))
    )
  },
  (effect, home) =>
    Effect.catchTag(effect, "PlatformError", ({ reason }) =>
      Effect.fail(
        new SecretKeyError({
          message: `the secret keys cannot be read or made in ${home} (${reason._tag}): TIDEGATE_HOME must be a folder that this user may write to`
        })
      )
    )
)

/** The stored form of an API key or token: it can be verified but not read. Random values need no slow hash. */
export const hashToken = (value: string): string => hash("sha256", value, "hex")

/** Compares two texts in a time that reveals neither where they differ nor how long they are. */
export const constantTimeEqual = (left: string, right: string): boolean =>
  timingSafeEqual(hash("sha256", left, "buffer"), hash("sha256", right, "buffer"))
