import { hkdfSync } from "node:crypto"
import type { KeyRing } from "@tidegate/storage/secrets/Secrets"

/** The address of a runner as it is stored in the database: the same text on both sides. */
export interface PeerAddress {
  readonly host: string
  readonly port: number
}

/** Proves to the runner at one address, and proves that runner to us, that the other side has a certain key of the ring. */
export interface PeerKey {
  /** Sent unencrypted. It is derived from the key too, so that it does not reveal the key's name. */
  readonly identity: string
  readonly psk: Buffer
}

const pskBytes = 32
const identityBytes = 16

/**
 * The peer keys of a ring, in its order. The derivation uses a label of its own, so that peer keys reveal nothing about the keys
 * that encrypt secrets. It includes the runner's address, so that a connection that was redirected to another runner, or back to
 * its own process, fails (RFC 9257, 4).
 */
export const peerKeys = (keys: KeyRing, { host, port }: PeerAddress): ReadonlyArray<PeerKey> =>
  keys.map(({ key }) => {
    const bytes = Buffer.from(
      hkdfSync("sha256", key, "", `tidegate cluster peer v1 ${host}:${port}`, pskBytes + identityBytes)
    )
    return { psk: bytes.subarray(0, pskBytes), identity: bytes.subarray(pskBytes).toString("base64url") }
  })
