import { createHash } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"
import { AwsV4Signer } from "aws4fetch"

/**
 * An object store as far as putting and getting objects goes. It signs what it is sent once more, by a library that the gateway
 * does not use, and takes only what comes out the same; a test has the vendor's own client talk to it first.
 */

export interface StoredObject {
  readonly body: Buffer
  readonly headers: IncomingMessage["headers"]
}

export interface StoreKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

const region = "eu-central-1"
export const storeKey: StoreKey = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalr/XUtn+FEMI=K7MDENG" }

const refuse = (response: ServerResponse, status: number, code: string, more = ""): void =>
  void response
    .writeHead(status, { "content-type": "application/xml" })
    .end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message>${more}</Error>`)

/** Why a request is not taken for its key's; null when it is. */
const faultOf = async (request: IncomingMessage, body: Buffer, key: StoreKey, regions: ReadonlyArray<string>) => {
  const { headers, method = "GET", url = "/" } = request
  const authorization = headers.authorization ?? ""
  const [, id, signedFor, names = ""] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/([\w-]+)\/s3\/aws4_request, ?SignedHeaders=([\w;-]+), ?Signature=[\da-f]{64}$/.exec(
      authorization
    ) ?? []
  if (id !== key.accessKeyId) return ["InvalidAccessKeyId", 403] as const
  if (signedFor === undefined || !regions.includes(signedFor)) return ["AuthorizationHeaderMalformed", 400] as const
  const digest = createHash("sha256").update(body).digest("hex")
  const claimed = headers["x-amz-content-sha256"]
  if (claimed !== digest) return ["XAmzContentSHA256Mismatch", 400] as const
  const md5 = headers["content-md5"]
  if (md5 !== undefined && md5 !== createHash("md5").update(body).digest("base64")) return ["BadDigest", 400] as const
  const unsigned = Object.keys(headers).filter((name) => name.startsWith("x-amz-") && !names.split(";").includes(name))
  if (unsigned.length > 0) return ["AccessDenied", 403] as const
  const signed = names.split(";").filter((name) => !["host", "x-amz-date", "x-amz-security-token"].includes(name))
  const again = await new AwsV4Signer({
    method,
    url: `http://${headers.host}${url}`,
    headers: Object.fromEntries(signed.map((name) => [name, String(headers[name])])),
    ...(body.length > 0 ? { body } : {}),
    ...key,
    service: "s3",
    region: signedFor,
    datetime: String(headers["x-amz-date"]),
    allHeaders: true
  }).sign()
  const spaceless = (text: string | null): string => (text ?? "").replaceAll(" ", "")
  return spaceless(again.headers.get("authorization")) === spaceless(authorization)
    ? null
    : (["SignatureDoesNotMatch", 403] as const)
}

/** What a suite changes while the store runs. */
export interface StoreHooks {
  /** The code with which an object is refused; null: it is stored. */
  refusal: (body: Buffer) => string | null
  /** The answer waits for this. */
  stored: () => Promise<void>
}

/** With these buckets, for this key, in `eu-central-1` and `auto`. */
export const startStore = async (buckets: ReadonlyArray<string>, key: StoreKey = storeKey) => {
  const hooks: StoreHooks = { refusal: () => null, stored: () => Promise.resolve() }
  /** By bucket and key, decoded. */
  const objects = new Map<string, StoredObject>()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request)
    const fault = await faultOf(request, body, key, [region, "auto"])
    if (fault !== null) {
      const [code, status] = fault
      return refuse(response, status, code, code === "AuthorizationHeaderMalformed" ? `<Region>${region}</Region>` : "")
    }
    // The bucket is the first label of a host that has one, else the first part of the path.
    const [label = "", rest] = (request.headers.host ?? "").split(/\.(?=store\.test)/)
    const path = decodeURIComponent((request.url ?? "").split("?")[0]!).slice(1)
    const [bucket, name] =
      rest === undefined ? [path.split("/")[0]!, path.split("/").slice(1).join("/")] : [label, path]
    if (!buckets.includes(bucket)) return refuse(response, 404, "NoSuchBucket")
    const at = `${bucket}/${name}`
    if (request.method === "PUT") {
      const refusal = hooks.refusal(body)
      if (refusal !== null) return refuse(response, 400, refusal)
      objects.set(at, { body, headers: request.headers })
      await hooks.stored()
      response.writeHead(200, { etag: `"${createHash("md5").update(body).digest("hex")}"` }).end()
    } else {
      const found = objects.get(at)
      if (found === undefined) return refuse(response, 404, "NoSuchKey")
      const { "content-encoding": coding, "content-type": type } = found.headers
      response
        .writeHead(200, { "content-type": type, ...(coding === undefined ? {} : { "content-encoding": coding }) })
        .end(found.body)
    }
  }
  // A sender that is killed amid its body gets nothing.
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    hooks,
    objects,
    port,
    origin: `http://127.0.0.1:${port}`,
    region,
    close: () => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    }
  }
}
