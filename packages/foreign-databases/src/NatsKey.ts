import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto"
import { ServerFault } from "./ServerFrames.ts"

/** Keys of NATS users: Ed25519, written in base 32 with a prefix and a checksum. */

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
/** The bits that make a seed begin with S. */
const seedPrefix = 18 << 3
const keyBytes = 32
/** The fixed beginning of an Ed25519 private key in PKCS #8. */
const pkcs8 = Buffer.from("302e020100300506032b657004220420", "hex")

const decoded = (text: string): Buffer => {
  const bytes: Array<number> = []
  let bits = 0
  let value = 0
  for (const letter of text) {
    value = ((value << 5) | alphabet.indexOf(letter)) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((value >> bits) & 0xff)
  }
  return Buffer.from(bytes)
}

const encoded = (bytes: Buffer): string => {
  let text = ""
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += alphabet[(value >> bits) & 31]!
    }
  }
  return bits === 0 ? text : text + alphabet[(value << (5 - bits)) & 31]!
}

/** CRC-16/XMODEM. */
const checksum = (bytes: Buffer): number => {
  let sum = 0
  for (const byte of bytes) {
    sum ^= byte << 8
    for (let i = 0; i < 8; i++) sum = ((sum & 0x8000) === 0 ? sum << 1 : (sum << 1) ^ 0x1021) & 0xffff
  }
  return sum
}

export interface NatsKey {
  /** The public key, which names the user. */
  readonly name: string
  readonly signed: (text: string) => string
}

/** A key in its written form. */
export const writtenKey = (bytes: Buffer): string => {
  const sum = Buffer.alloc(2)
  sum.writeUInt16LE(checksum(bytes))
  return encoded(Buffer.concat([bytes, sum]))
}

const publicBytes = (key: KeyObject): Buffer =>
  createPublicKey(key).export({ type: "spki", format: "der" }).subarray(-keyBytes)

/** The key of a seed. */
export const natsKey = (seed: string): NatsKey => {
  const bytes = decoded(seed)
  const body = bytes.subarray(0, -2)
  const isSeed =
    bytes.length === keyBytes + 4 &&
    (bytes[0]! & 0xf8) === seedPrefix &&
    bytes.readUInt16LE(bytes.length - 2) === checksum(body)
  if (!isSeed)
    throw new ServerFault("AUTH_REJECTED", "config.auth.seed is no seed of a NATS user: its checksum is wrong")
  const prefix = ((bytes[0]! & 7) << 5) | ((bytes[1]! & 0xf8) >> 3)
  const key = createPrivateKey({ key: Buffer.concat([pkcs8, body.subarray(2)]), format: "der", type: "pkcs8" })
  return {
    name: writtenKey(Buffer.concat([Buffer.from([prefix]), publicBytes(key)])),
    signed: (text) => sign(null, Buffer.from(text), key).toString("base64url")
  }
}
