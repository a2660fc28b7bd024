import { SignatureV4 } from "@smithy/signature-v4"
import { createHash, createHmac } from "node:crypto"
import { inLaterTurn } from "@tidegate/runtime/EventLoopBudget"
import type { OutboundRequest } from "./Connector.ts"

/** Signs requests to object stores (Signature Version 4 of the service `s3`). */

export interface SigningKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
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

/** Both digests of a body. A large body takes several event-loop iterations, so that it does not block the loop. */
const digestsOf = async (body: Uint8Array) => {
  const sha256 = createHash("sha256")
  const md5 = createHash("md5")
  for (let from = 0; from < body.byteLength; from += partBytes) {
    if (from > 0) await new Promise<void>((resolve) => inLaterTurn(resolve))
    const part = body.subarray(from, from + partBytes)
    sha256.update(part)
    md5.update(part)
  }
  return { sha256: sha256.digest("hex"), md5: md5.digest("base64") }
}

/**
 * Signs requests with this key. The signature covers the body and all given headers. `content-md5` is added, because buckets with
 * retention require it, and all compatible stores accept it.
 */
export const signer = (key: SigningKey, region: string) => {
  const signature = new SignatureV4({
    service: "s3",
    region,
    credentials: key,
    sha256: Sha256,
    // The path in the URL is already encoded, and the protocol requires exactly one encoding.
    uriEscapePath: false
  })
  return async (request: OutboundRequest, timestampSeconds: number): Promise<OutboundRequest> => {
    const { host, hostname, pathname, protocol } = new URL(request.url)
    const { md5, sha256 } = await digestsOf(request.body)
    const headers: Record<string, string> = { host, "content-md5": md5, "x-amz-content-sha256": sha256 }
    for (let i = 0; i < request.headers.length; i += 2) headers[request.headers[i]!] = request.headers[i + 1]!
    const signed = await signature.sign(
      { method: request.method, protocol, hostname, path: pathname, query: {}, headers },
      { signingDate: new Date(timestampSeconds * 1_000) }
    )
    return { ...request, headers: Object.entries(signed.headers).flat() }
  }
}
