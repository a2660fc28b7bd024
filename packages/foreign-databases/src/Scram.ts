import { createHash, createHmac, pbkdf2, timingSafeEqual } from "node:crypto"
import { promisify } from "node:util"
import { breach, maxIterations, minIterations, ServerFault } from "./ServerFrames.ts"

/** SCRAM (RFC 5802) of a client: the password is proved and not sent, and the server proves that it knows it. */

export type ScramHash = "sha256" | "sha512"

/** In a thread of its own: it would hold the event loop for tens of milliseconds. */
const hashed = promisify(pbkdf2)

export interface ScramProof {
  readonly words: string
  /** Throws if the server's last words do not prove that it knows the password. */
  readonly verify: (last: string) => void
}

export const scram = (hash: ScramHash, username: string, password: string, nonce: string) => {
  const bare = `n=${username.replaceAll("=", "=3D").replaceAll(",", "=2C")},r=${nonce}`
  const mac = (key: Buffer, text: string): Buffer => createHmac(hash, key).update(text).digest()
  return {
    first: `n,,${bare}`,
    proof: async (challenge: string): Promise<ScramProof> => {
      const [, both, salt, count] = /^r=([^,]+),s=([A-Za-z\d+/=]+),i=(\d{1,9})(?:,|$)/.exec(challenge) ?? []
      if (both === undefined || salt === undefined || !both.startsWith(nonce) || both.length <= nonce.length) {
        throw breach("the server does not answer as SCRAM does")
      }
      const iterations = Number(count)
      if (iterations < minIterations || iterations > maxIterations) {
        throw breach(
          `the server wants the password hashed less than ${minIterations} or more than ${maxIterations} times`
        )
      }
      const bytes = hash === "sha256" ? 32 : 64
      const salted = await hashed(password, Buffer.from(salt, "base64"), iterations, bytes, hash)
      const key = mac(salted, "Client Key")
      const withoutProof = `c=biws,r=${both}`
      const signed = `${bare},${challenge},${withoutProof}`
      const signature = mac(createHash(hash).update(key).digest(), signed)
      const proof = key.map((byte, i) => byte ^ signature[i]!)
      const expected = mac(mac(salted, "Server Key"), signed)
      return {
        words: `${withoutProof},p=${Buffer.from(proof).toString("base64")}`,
        verify: (last) => {
          const given = Buffer.from(/^v=([A-Za-z\d+/=]+)/.exec(last)?.[1] ?? "", "base64")
          if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
            throw new ServerFault("AUTH_REJECTED", "the server cannot prove that it knows the password")
          }
        }
      }
    }
  }
}
