import { constants, createHash, createHmac, type KeyObject, sign } from "node:crypto"
import type { SignedRequest } from "./types/OutboundAuthType.ts"

/** HTTP message signatures (RFC 9421) of requests, with the digest of their bodies (RFC 9530). */

export type SignatureAlgorithm = "hmac-sha256" | "ed25519" | "rsa-pss-sha512" | "ecdsa-p256-sha256"

export interface SignatureParameters {
  readonly created: number
  readonly expires?: number
  readonly keyid: string
  readonly alg?: SignatureAlgorithm
  readonly nonce?: string
  readonly tag?: string
}

/** Parts of a request that are no header, with their values. */
const derived: Readonly<Record<string, (method: string, url: URL) => string>> = {
  "@method": (method) => method,
  "@target-uri": (_, { origin, pathname, search }) => origin + pathname + search,
  "@authority": (_, { host }) => host,
  "@scheme": (_, { protocol }) => protocol.slice(0, -1),
  "@request-target": (_, { pathname, search }) => pathname + search,
  "@path": (_, { pathname }) => pathname,
  "@query": (_, { search }) => (search === "" ? "?" : search)
}

export const derivedComponents: ReadonlyArray<string> = Object.keys(derived)

/** A header as it is signed: the values of a repeated one are one list. */
const fieldOf = (headers: ReadonlyArray<string>, name: string): string | undefined => {
  const values: Array<string> = []
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() === name) values.push(headers[i + 1]!.trim())
  }
  return values.length === 0 ? undefined : values.join(", ")
}

const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`

/**
 * What is signed, and its description for `signature-input`. A header that the request does not have is not covered: the receiver sees in
 * the description what is.
 */
export const signatureBase = (
  { headers, method, url }: Omit<SignedRequest, "body">,
  components: ReadonlyArray<string>,
  parameters: SignatureParameters
): { readonly base: string; readonly input: string } => {
  const parsed = new URL(url)
  const covered: Array<string> = []
  const lines: Array<string> = []
  for (const name of components) {
    const value = derived[name] === undefined ? fieldOf(headers, name) : derived[name](method, parsed)
    if (value === undefined) continue
    covered.push(quoted(name))
    lines.push(`${quoted(name)}: ${value}`)
  }
  const { alg, created, expires, keyid, nonce, tag } = parameters
  const input = [
    `(${covered.join(" ")})`,
    `created=${created}`,
    ...(expires === undefined ? [] : [`expires=${expires}`]),
    `keyid=${quoted(keyid)}`,
    ...(alg === undefined ? [] : [`alg=${quoted(alg)}`]),
    ...(nonce === undefined ? [] : [`nonce=${quoted(nonce)}`]),
    ...(tag === undefined ? [] : [`tag=${quoted(tag)}`])
  ].join(";")
  return { base: [...lines, `"@signature-params": ${input}`].join("\n"), input }
}

const asymmetric = (hash: string | null, key: KeyObject, options: object, data: Buffer): Promise<Buffer> =>
  // With a callback it runs in the thread pool: an RSA signature takes milliseconds.
  new Promise((resolve, reject) =>
    sign(hash, data, { key, ...options }, (error, signature) => (error === null ? resolve(signature) : reject(error)))
  )

const signers: Readonly<Record<SignatureAlgorithm, (key: KeyObject, data: Buffer) => Promise<Buffer>>> = {
  "hmac-sha256": (key, data) => Promise.resolve(createHmac("sha256", key).update(data).digest()),
  ed25519: (key, data) => asymmetric(null, key, {}, data),
  "rsa-pss-sha512": (key, data) =>
    asymmetric("sha512", key, { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 }, data),
  "ecdsa-p256-sha256": (key, data) => asymmetric("sha256", key, { dsaEncoding: "ieee-p1363" }, data)
}

/** Signs a base. Header values are latin-1 on the wire, and so they are in what is signed. */
export const signBase = (algorithm: SignatureAlgorithm, key: KeyObject, base: string): Promise<Buffer> =>
  signers[algorithm](key, Buffer.from(base, "latin1"))

/** Bodies up to this size are hashed at once, which takes less than a millisecond; larger ones in the thread pool. */
const hashedAtOnce = 256 * 1024

export const sha256Of = async (body: Uint8Array): Promise<Buffer> =>
  body.byteLength <= hashedAtOnce
    ? createHash("sha256").update(body).digest()
    : Buffer.from(await crypto.subtle.digest("SHA-256", body as Uint8Array<ArrayBuffer>))

/** The value of `content-digest`. */
export const contentDigest = async (body: Uint8Array): Promise<string> =>
  `sha-256=:${(await sha256Of(body)).toString("base64")}:`
