import { hkdfSync } from "node:crypto"
import type { KeyRing } from "@tidegate/storage/secrets/Secrets"

/** Where a runner is reached, as it is written in the database: the same text on both sides. */
export interface PeerAddress {
  readonly host: string
  readonly port: number
}

/** What proves to the runner at one address, and by it, that the other side has a certain key of the ring. */
export interface PeerKey {
  /** Sent in the clear. It comes out of the key's derivation too, so that it tells nobody what the key is called. */
  readonly identity: string
  readonly psk: Buffer
}

const pskBytes = 32
const identityBytes = 16

/**
 * The peer keys of a ring, in its order. Derived with a label of their own, so that they say nothing about the keys that
 * secrets are encrypted with; and with the runner's address, so that a connection led to another runner, or back to the
 * process it came from, fails (RFC 9257, 4).
 */
export const peerKeys = (keys: KeyRing, { host, port }: PeerAddress): ReadonlyArray<PeerKey> =>
  keys.map(({ key }) => {
    const bytes = Buffer.from(
      hkdfSync("sha256", key, "", `tidegate cluster peer v1 ${host}:${port}`, pskBytes + identityBytes)
    )
    return { psk: bytes.subarray(0, pskBytes), identity: bytes.subarray(pskBytes).toString("base64url") }
  })
