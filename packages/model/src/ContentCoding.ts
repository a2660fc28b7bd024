import { promisify } from "node:util"
import {
  brotliDecompress,
  brotliDecompressSync,
  gunzip,
  gunzipSync,
  inflate,
  inflateSync,
  zstdDecompress,
  zstdDecompressSync
} from "node:zlib"

type Options = { readonly maxOutputLength: number }

/** Decompresses a body: at once, or in another thread. */
interface Decoder {
  readonly now: (body: Uint8Array, options: Options) => Buffer
  readonly apart: (body: Uint8Array, options: Options) => Promise<Buffer>
}

const gzip: Decoder = { now: gunzipSync, apart: promisify(gunzip) }

/** The decoders of compressed bodies, by the name in `content-encoding` (RFC 9110, 8.4.1). */
const decoders: Readonly<Record<string, Decoder>> = {
  gzip,
  "x-gzip": gzip,
  deflate: { now: inflateSync, apart: promisify(inflate) },
  br: { now: brotliDecompressSync, apart: promisify(brotliDecompress) },
  zstd: { now: zstdDecompressSync, apart: promisify(zstdDecompress) }
}

/** What a header says: "plain": the body is not compressed; null: its compression is unknown or multiple. */
const decoderOf = (contentEncoding: ContentEncoding): Decoder | "plain" | null => {
  const coding = String(contentEncoding ?? "")
    .trim()
    .toLowerCase()
  if (coding === "" || coding === "identity") return "plain"
  return Object.hasOwn(decoders, coding) ? decoders[coding]! : null
}

type ContentEncoding = string | ReadonlyArray<string> | undefined

const mark = Buffer.from([0xef, 0xbb, 0xbf])

const withoutMark = (plain: Buffer): Buffer => (plain.subarray(0, 3).equals(mark) ? plain.subarray(3) : plain)

/**
 * A body ready to be read as text: decompressed, and without a byte order mark. Null: its compression is unknown, multiple or
 * invalid, or the result has more than `maxBytes`. It is synchronous, so only for small bodies.
 */
export const decodedBody = (body: Buffer, contentEncoding: ContentEncoding, maxBytes: number): Buffer | null => {
  const decoder = decoderOf(contentEncoding)
  if (decoder === null) return null
  try {
    return withoutMark(decoder === "plain" ? body : decoder.now(body, { maxOutputLength: maxBytes }))
  } catch {
    return null
  }
}

/**
 * The same for large bodies, because ten megabytes take a twentieth of a second to decompress. "too large": the result has more than
 * `maxBytes`.
 */
export const decodedApart = async (
  body: Buffer,
  contentEncoding: ContentEncoding,
  maxBytes: number
): Promise<Buffer | "too large" | null> => {
  const decoder = decoderOf(contentEncoding)
  if (decoder === null) return null
  try {
    return withoutMark(decoder === "plain" ? body : await decoder.apart(body, { maxOutputLength: maxBytes }))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? "too large" : null
  }
}
