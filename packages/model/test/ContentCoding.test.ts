import { describe, expect, it } from "@effect/vitest"
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib"
import { decodedApart, decodedBody } from "@tidegate/model/ContentCoding"

const text = Buffer.from("\ufeffgrüße ".repeat(100))
const plain = text.subarray(3)

const coded: ReadonlyArray<readonly [coding: string | undefined, body: Buffer]> = [
  [undefined, text],
  ["identity", text],
  ["gzip", gzipSync(text)],
  ["X-Gzip", gzipSync(text)],
  ["deflate", deflateSync(text)],
  ["br", brotliCompressSync(text)],
  ["zstd", zstdCompressSync(text)]
]

describe("Compressed body", () => {
  it.each(coded)("A body with the coding %s is read the same at once and in another thread", async (coding, body) => {
    expect(decodedBody(body, coding, 10_000)?.equals(plain)).toBe(true)
    const apart = await decodedApart(body, coding, 10_000)
    expect(Buffer.isBuffer(apart) && apart.equals(plain)).toBe(true)
  })

  it.each(coded.slice(2))("A body with the coding %s that becomes too large is not read", async (coding, body) => {
    expect(decodedBody(body, coding, 500)).toBeNull()
    expect(await decodedApart(body, coding, 500)).toBe("too large")
  })

  it("A body with an unknown, a multiple or a wrong coding is not read", async () => {
    for (const [coding, body] of [
      ["compress", text],
      ["gzip, br", gzipSync(text)],
      ["gzip", text]
    ] as const) {
      expect(decodedBody(body, coding, 10_000)).toBeNull()
      expect(await decodedApart(body, coding, 10_000)).toBeNull()
    }
  })
})
