import { createHash } from "node:crypto"
import { BrokerRefusal, type MysqlTable } from "@tidegate/connectors/Brokers"
import { ServerFault } from "./ServerFrames.ts"

/** The packets of MySQL that sign in and insert rows. */

/** Before each packet: its length (3 bytes) and its number. */
export const header = 4
/** A server says at most an error, of 512 characters, or the definition of a parameter. */
const longestAnswer = 16_384
/** A longer packet would have to be cut. Servers take at most 16 MiB, unless they are told otherwise. */
const longestPacket = 0xff_ff_ff - 1

const utf8mb4 = 45

/** The abilities that are used: long passwords, a database, protocol 4.1, transactions, 20 bytes of challenge, named ways to sign in. */
const abilities = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000
const needed = 0x200 | 0x8000 | 0x8_0000
const tlsAbility = 0x800

const broken = (what = "the server does not keep to the protocol of MySQL"): ServerFault =>
  new ServerFault("PROTOCOL_ERROR", what)

export const refusal = (code: string, said = ""): BrokerRefusal => new BrokerRefusal({ code, said, shared: false })

/** The size of a frame; throws if it is too long. */
export const sizeIn = (head: Buffer): number => {
  const length = head.readUIntLE(0, 3)
  if (length === 0) throw broken("the server sends an empty packet")
  if (length > longestAnswer)
    throw new ServerFault("RESPONSE_TOO_LARGE", "the server says more than a row is answered by")
  return header + length
}

/** A packet, in parts that are sent together. */
export const packet = (number: number, ...parts: ReadonlyArray<Uint8Array>): ReadonlyArray<Uint8Array> => {
  const head = Buffer.alloc(header)
  head.writeUIntLE(
    parts.reduce((length, part) => length + part.length, 0),
    0,
    3
  )
  head[3] = number
  return [head, ...parts]
}

const terminated = (text: string): Buffer => Buffer.from(`${text}\0`)

/** The text until a zero, or until the end, and where the rest begins. */
const textAt = (frame: Buffer, at: number): readonly [text: string, rest: number] => {
  const end = frame.indexOf(0, at)
  return end === -1 ? [frame.toString("latin1", at), frame.length] : [frame.toString("latin1", at, end), end + 1]
}

export interface Greeting {
  readonly hasTls: boolean
  readonly plugin: string
  readonly challenge: Buffer
}

/** Reading past the end of a packet throws a `RangeError`, which ends the line. */
export const greetingIn = (frame: Buffer): Greeting => {
  if (frame[0] !== 10) throw broken()
  const [, at] = textAt(frame, 1)
  const first = frame.subarray(at + 4, at + 12)
  const able = (frame.readUInt16LE(at + 13) | (frame.readUInt16LE(at + 18) << 16)) >>> 0
  if ((able & needed) !== needed) throw broken("the server is too old")
  // 20 bytes, and a zero behind them.
  const rest = frame.subarray(at + 31, at + 43)
  if (rest.length !== 12) throw broken()
  const [plugin] = textAt(frame, at + 44)
  return { hasTls: (able & tlsAbility) !== 0, plugin, challenge: Buffer.concat([first, rest]) }
}

const opening = (able: number): Buffer => {
  const bytes = Buffer.alloc(32)
  bytes.writeUInt32LE(able, 0)
  bytes.writeUInt32LE(0x4000_0000, 4)
  bytes[8] = utf8mb4
  return bytes
}

export const tlsRequest = (): ReadonlyArray<Uint8Array> => packet(1, opening(abilities | tlsAbility))

export const signInTo = (
  { database, tls, username }: MysqlTable,
  number: number,
  plugin: string,
  proof: Buffer
): ReadonlyArray<Uint8Array> =>
  packet(
    number,
    opening(tls ? abilities | tlsAbility : abilities),
    terminated(username),
    Buffer.of(proof.length),
    proof,
    terminated(database),
    terminated(plugin)
  )

const digest = (name: string, ...parts: ReadonlyArray<Uint8Array>): Buffer =>
  parts.reduce((hash, part) => hash.update(part), createHash(name)).digest()

const xor = (left: Buffer, right: Buffer): Buffer => Buffer.from(left.map((byte, at) => byte ^ right[at]!))

/** How the password is proved, by the name of the way. */
const proofs: Readonly<Record<string, (password: string, challenge: Buffer) => Buffer>> = {
  mysql_native_password: (password, challenge) => {
    const once = digest("sha1", Buffer.from(password))
    return xor(once, digest("sha1", challenge, digest("sha1", once)))
  },
  caching_sha2_password: (password, challenge) => {
    const once = digest("sha256", Buffer.from(password))
    return xor(once, digest("sha256", digest("sha256", once), challenge))
  }
}

/** Null: the way is not known here. */
export const proofOf = (plugin: string, password: string, challenge: Buffer): Buffer | null => {
  const prove = Object.hasOwn(proofs, plugin) ? proofs[plugin]! : null
  return prove === null ? null : password === "" ? Buffer.alloc(0) : prove(password, challenge)
}

/** Another way to sign in that the server asks for. */
export const switchIn = (frame: Buffer): Pick<Greeting, "challenge" | "plugin"> => {
  const [plugin, at] = textAt(frame, 1)
  return { plugin, challenge: frame.subarray(at, at + 20) }
}

/** The number of an error, and its SQLSTATE. */
export const refusalIn = (frame: Buffer): BrokerRefusal => {
  const number = frame.readUInt16LE(1)
  const [, state, said] = /^#([\dA-Z]{5})(.*)$/s.exec(frame.toString("utf8", 3)) ?? [
    null,
    "HY000",
    frame.toString("utf8", 3)
  ]
  return refusal(`${number} ${state}`, said ?? "")
}

/** A length in front of a value, or a number. */
const counted = (bytes: number): Buffer => {
  if (bytes < 0xfb) return Buffer.of(bytes)
  const length = Buffer.alloc(bytes < 0x1_0000 ? 3 : 4)
  length[0] = length.length === 3 ? 0xfc : 0xfd
  length.writeUIntLE(bytes, 1, length.length - 1)
  return length
}

/** How many of `most` rows were added: fewer where a trigger has taken one. */
export const rowsIn = (frame: Buffer, most: number): number => {
  const rows = frame[1] === 0xfc ? frame.readUInt16LE(2) : frame[1]
  if (rows === undefined || rows > most) throw broken()
  return rows
}

const quoted = (name: string): string => `\`${name.replaceAll("`", "``")}\``

/** The only statement. Names are quoted and values are bound; the server sets its own time. */
export const statementOf = ({ columns, table, timed }: MysqlTable, rows: number): string => {
  const names = [...columns, ...(timed === null ? [] : [timed])].map(quoted).join(", ")
  const values = [...columns.map(() => "?"), ...(timed === null ? [] : ["utc_timestamp(6)"])].join(", ")
  return `insert into ${quoted(table)} (${names}) values ${Array.from({ length: rows }, () => `(${values})`).join(", ")}`
}

/**
 * Each statement is a transaction of its own, whatever the server's defaults are. Strict: a value that does not fit is refused instead of
 * cut. A lock is waited for less long than a send lasts.
 */
const settings =
  "set session autocommit = 1, sql_mode = concat(@@sql_mode, ',STRICT_ALL_TABLES'), innodb_lock_wait_timeout = 20"

export const set: ReadonlyArray<Uint8Array> = packet(0, Buffer.from(`\x03${settings}`))
export const prepare = (statement: string): ReadonlyArray<Uint8Array> => packet(0, Buffer.from(`\x16${statement}`))
/** The server forgets a prepared statement, and does not answer. */
export const forget = (id: Buffer): ReadonlyArray<Uint8Array> => packet(0, Buffer.of(0x19), id)
export const farewell = Buffer.concat(packet(0, Buffer.of(1)))

/** The id of a prepared statement. */
export const preparedIn = (frame: Buffer, parameters: number): Buffer => {
  if (frame[0] !== 0 || frame.readUInt16LE(5) !== 0 || frame.readUInt16LE(7) !== parameters) throw broken()
  return Buffer.from(frame.subarray(1, 5))
}

/** Bytes of an execution beside its texts, and at most of each text beside its characters: its type, its length and its bit. */
const longestHead = 16
const longestRest = 7

/** Executes a prepared statement with these texts; null: the packet would be too long. */
export const execution = (id: Buffer, values: ReadonlyArray<string>): ReadonlyArray<Uint8Array> | null => {
  const texts = values.map((value) => Buffer.from(value))
  if (texts.reduce((length, text) => length + text.length + longestRest, longestHead) > longestPacket) return null
  return packet(
    0,
    Buffer.of(0x17),
    id,
    Buffer.of(0, 1, 0, 0, 0),
    // None is null, and their types follow.
    Buffer.alloc(Math.ceil(values.length / 8)),
    Buffer.of(1),
    Buffer.from(values.flatMap(() => [0xfd, 0])),
    ...texts.flatMap((text) => [counted(text.length), text])
  )
}
