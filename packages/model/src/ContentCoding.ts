import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib"

/** How a body may be compressed, by the name in `content-encoding` (RFC 9110, 8.4.1). */
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
 * A body as text is read from it: decompressed, and without a byte order mark. Null: it is compressed in a way that is not known or by
 * several, is no such thing, or has more than `maxBytes` then. To be asked of small bodies: it is done at once.
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
