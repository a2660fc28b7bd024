import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib"

/** The decoders of compressed bodies, by the name in `content-encoding` (RFC 9110, 8.4.1). */
const decoders: Readonly<Record<string, (body: Uint8Array, options: { readonly maxOutputLength: number }) => Buffer>> =
  {
    gzip: gunzipSync,
    "x-gzip": gunzipSync,
    deflate: inflateSync,
    br: brotliDecompressSync,
    zstd: zstdDecompressSync
  }

const mark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * A body ready to be read as text: decompressed, and without a byte order mark. Null: its compression is unknown, multiple or
 * invalid, or the result has more than `maxBytes`. It is synchronous, so only for small bodies.
 */
export const decodedBody = (
  body: Buffer,
  contentEncoding: string | ReadonlyArray<string> | undefined,
  maxBytes: number
): Buffer | null => {
  const coding = String(contentEncoding ?? "")
    .trim()
    .toLowerCase()
  let plain = body
  if (coding !== "" && coding !== "identity") {
    const decode = Object.hasOwn(decoders, coding) ? decoders[coding]! : null
    if (decode === null) return null
    try {
      plain = decode(body, { maxOutputLength: maxBytes })
    } catch {
      return null
    }
  }
  return plain.subarray(0, 3).equals(mark) ? plain.subarray(3) : plain
}
