import { SignatureV4 } from "@smithy/signature-v4"
import { createHash, createHmac } from "node:crypto"
import { inLaterTurn } from "@tidegate/runtime/EventLoopBudget"
import type { OutboundRequest } from "./Connector.ts"

/** Requests signed as object stores ask for it (Signature Version 4 of the service `s3`). */

export interface SigningKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** The hash of the signer, by the platform: its own waits for each. */
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

/** Hashed in one go: some two milliseconds. */
const partBytes = 1024 * 1024

/** Both digests of a body. A large one takes some turns of the loop, which everybody shares. */
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
 * Signs requests with this key. The signature covers the body and every header that is given; besides, `content-md5` is what
 * buckets with retention ask for, and all kin of the protocol understand.
 */
export const signer = (key: SigningKey, region: string) => {
  const signature = new SignatureV4({
    service: "s3",
    region,
    credentials: key,
    sha256: Sha256,
    // The path stands encoded in the URL already, and once is what the protocol says.
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
