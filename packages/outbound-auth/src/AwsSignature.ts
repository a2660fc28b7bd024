import { SignatureV4 } from "@smithy/signature-v4"
import { createHash, createHmac } from "node:crypto"
import { inLaterTurn } from "@tidegate/runtime/EventLoopBudget"
import type { Schema } from "effect"
import type { SigningKey } from "./types/Grant.ts"
import type { SignedFacts, SignedRequest } from "./types/OutboundAuthType.ts"

/** Signs requests to Amazon's services and to compatible ones (Signature Version 4). */

export type { SigningKey }

const md5Header = "content-md5"
export const sha256Header = "x-amz-content-sha256"

const ownHeaders = ["host", "authorization", "x-amz-date", "x-amz-security-token", sha256Header]

/** What a signature is valid for, and what it covers beside method, URL, host, time and body. */
export interface SigningScope {
  readonly region: string
  readonly service: string
  /** Digests of the body that are sent as headers. */
  readonly digests?: ReadonlyArray<typeof md5Header | typeof sha256Header>
  /** Whether a header of the request is covered, by its lower-case name. Without it all are: then nobody on the way may change one. */
  readonly covers?: (name: string) => boolean
}

/** The members of an `auth` that make a key. */
export interface KeySettings {
  readonly access_key_id?: Schema.Json
  readonly secret_access_key?: Schema.Json
  readonly session_token?: Schema.Json
  readonly disabled?: Schema.Json
}

/** The key in an `auth`; null: requests are not signed. */
export const signingKeyOf = ({
  access_key_id,
  disabled,
  secret_access_key,
  session_token
}: KeySettings): SigningKey | null =>
  disabled === true || typeof access_key_id !== "string" || typeof secret_access_key !== "string"
    ? null
    : {
        accessKeyId: access_key_id,
        secretAccessKey: secret_access_key,
        ...(typeof session_token === "string" ? { sessionToken: session_token } : {})
      }

/** SHA-256 of the platform, for the signer: the signer's own implementation is asynchronous. */
class Sha256 {
  readonly #hash
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", secret as string | Uint8Array)
  }
  update(data: Uint8Array): void {
    this.#hash.update(data)
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }
  reset(): void {
    throw new Error("each hash is made anew")
  }
}

/** Bytes that are hashed without a pause: about two milliseconds. */
const partBytes = 1024 * 1024

/** The digests of a body. A large body takes several event-loop iterations, so that it does not block the loop. */
const digestsOf = async (body: Uint8Array, withMd5: boolean) => {
  const sha256 = createHash("sha256")
  const md5 = withMd5 ? createHash("md5") : null
  for (let from = 0; from < body.byteLength; from += partBytes) {
    if (from > 0) await new Promise<void>((resolve) => inLaterTurn(resolve))
    const part = body.subarray(from, from + partBytes)
    sha256.update(part)
    md5?.update(part)
  }
  return { [sha256Header]: sha256.digest("hex"), [md5Header]: md5?.digest("base64") ?? "" }
}

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** A query as the signer takes it: decoded, with all values of a name. */
const queryOf = (search: string): Record<string, Array<string>> => {
  const query = new Map<string, Array<string>>()
  for (const part of search.slice(1).split("&")) {
    if (part === "") continue
    const end = part.indexOf("=")
    const name = decoded(end < 0 ? part : part.slice(0, end))
    const values = query.get(name) ?? []
    values.push(end < 0 ? "" : decoded(part.slice(end + 1)))
    query.set(name, values)
  }
  return Object.fromEntries(query)
}

/** Headers by name, without those in `dropped`. One that is there several times has its values in a list, as its receiver reads it. */
const byName = (headers: ReadonlyArray<string>, dropped: ReadonlySet<string>): Map<string, string> => {
  const found = new Map<string, string>()
  for (let i = 0; i < headers.length; i += 2) {
    const [name, value] = [headers[i]!.toLowerCase(), headers[i + 1]!]
    const before = found.get(name)
    if (!dropped.has(name)) found.set(name, before === undefined ? value : `${before},${value}`)
  }
  return found
}

/** What a signature adds to a request. The headers, a flat list, replace those of the same names. */
interface Signature {
  /** The request's own, in the spelling that was signed. */
  readonly url: string
  readonly headers: ReadonlyArray<string>
}

type Facts = Pick<SignedFacts, "timestampSeconds">

/** Makes signatures with this key. A signature covers the body. */
export const awsSignatures = (
  key: SigningKey,
  { covers = () => true, digests = [], region, service }: SigningScope
) => {
  const signature = new SignatureV4({
    service,
    region,
    credentials: key,
    sha256: Sha256,
    // The path in the URL is encoded already. Object stores require exactly one encoding, and all other services a second one.
    uriEscapePath: service !== "s3"
  })
  const own = new Set<string>([...ownHeaders, ...digests])
  // The signer reads the body's digest from this header, also if it is not sent.
  const unsignableHeaders = new Set(digests.includes(sha256Header) ? [] : [sha256Header])
  const sign = async (request: SignedRequest, { timestampSeconds }: Facts): Promise<Signature> => {
    // Some receivers read a plus in a query as a space, and others as a plus.
    const url = new URL(request.url)
    url.search = url.search.replaceAll("+", "%20")
    const { host, hostname, pathname, protocol, search } = url
    const made = await digestsOf(request.body, digests.includes(md5Header))
    const headers: Record<string, string> = { host, [sha256Header]: made[sha256Header] }
    for (const name of digests) headers[name] = made[name]
    for (const [name, value] of byName(request.headers, own)) if (covers(name)) headers[name] = value
    const signed = await signature.sign(
      { method: request.method, protocol, hostname, path: pathname, query: queryOf(search), headers },
      { signingDate: new Date(timestampSeconds * 1_000), unsignableHeaders }
    )
    const added = Object.entries(signed.headers).filter(([name]) => own.has(name) && !unsignableHeaders.has(name))
    return { url: url.href, headers: added.flat() }
  }
  return { own, sign }
}

/** Signs requests with this key. Headers of a request that a signature consists of are replaced. */
export const signer = (key: SigningKey, scope: SigningScope) => {
  const { own, sign } = awsSignatures(key, scope)
  return async <Request extends SignedRequest>(request: Request, facts: Facts): Promise<Request> => {
    const { headers, url } = await sign(request, facts)
    const kept = request.headers.filter((_, i) => !own.has(request.headers[i - (i % 2)]!.toLowerCase()))
    return { ...request, url, headers: [...kept, ...headers] }
  }
}
