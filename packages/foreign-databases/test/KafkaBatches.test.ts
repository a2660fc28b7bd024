import { describe, expect, it } from "vitest"
import { gzipSync, zstdCompressSync } from "node:zlib"
import { assigned, assignorNames } from "../src/KafkaAssignors.ts"
import { KafkaBatches, type ReadRecord } from "../src/KafkaBatches.ts"
import { decompressed } from "../src/KafkaCompression.ts"
import type { Aborted } from "../src/KafkaFetchCalls.ts"
import { crc32c } from "../src/KafkaRecords.ts"
import { batchOf, markOf } from "./KafkaBatchOf.ts"

/** What brokers give, without a broker: batches, their compression, and how the leader of a group shares the partitions. */

const plain = Buffer.from(
  Array.from({ length: 40 }, (_, n) => `order ${n} is paid, order ${n % 7} is not; `).join("") + "x".repeat(300)
)
/** The same, compressed by the libraries of Kafka's own producers. */
const snappy = Buffer.from(
  "glNOQVBQWQAAAAABAAAAAQAAAZfyDEBvcmRlciAwIGlzIHBhaWQsIB0RDG5vdDsNEAAxPiEABREdIQAyPiEABREdIQAzPiEABREdIQA0PiEABREdIQA1Pi" +
    "EABREdIQA2PiEABREdIQA3PiEABfgdIQA4PiEAPucAADk+IQA+5wAAMQVTLksBPugAADEFVC4iAD7pAAAxBVUuIgA+6gAAMQVVLiIAPusAADEFVS4iAAWZ" +
    "HewAMQVVLiIABZkuIgAFVS4iAAWZLiIAQlIBBZkuIgBCUwEFmS4iAEJUAQWZHSIEMjA+dgEFmS4iAAW7LqoABTMuIgAFuy4iAAUzLiIABbsuIgAFMy4iAA" +
    "W7LiIABTMuIgAFuy4iAAUzLiIABbsuIgAFMy4iAEJUAQUzLiIAQlQBQu4AQlQBPu4AADMFMy6IAD7uAAQzMT52AT7uAAAzBTMuRAA+7gAAMwUzLiIAPu4A" +
    "ADMFMy4iAD7uAAAzBTMuIgAFuz0QADMFMy4iAAW7LiIAQlQBBbsuIgBCVAEFuy4iAEJUAQW7BSIAeP4BAP4BAP4BAP4BAKoBAA==",
  "base64"
)
const bareSnappy = Buffer.from(
  "8gxAb3JkZXIgMCBpcyBwYWlkLCAdEQxub3Q7DRAAMT4hAAURHSEAMj4hAAURHSEAMz4hAAURHSEAND4hAAURHSEANT4hAAURHSEANj4hAAURHSEANz4hAA" +
    "X4HSEAOD4hAD7nAAA5PiEAPucAADEFUy5LAT7oAAAxBVQuIgA+6QAAMQVVLiIAPuoAADEFVS4iAD7rAAAxBVUuIgAFmR3sADEFVS4iAAWZLiIABVUuIgAF" +
    "mS4iAEJSAQWZLiIAQlMBBZkuIgBCVAEFmR0iBDIwPnYBBZkuIgAFuy6qAAUzLiIABbsuIgAFMy4iAAW7LiIABTMuIgAFuy4iAAUzLiIABbsuIgAFMy4iAA" +
    "W7LiIABTMuIgBCVAEFMy4iAEJUAULuAEJUAT7uAAAzBTMuiAA+7gAEMzE+dgE+7gAAMwUzLkQAPu4AADMFMy4iAD7uAAAzBTMuIgA+7gAAMwUzLiIABbs9" +
    "EAAzBTMuIgAFuy4iAEJUAQW7LiIAQlQBBbsuIgBCVAEFuwUiAHj+AQD+AQD+AQD+AQCqAQA=",
  "base64"
)
const lz4 = Buffer.from(
  "BCJNGGBAgrYBAAD3Am9yZGVyIDAgaXMgcGFpZCwgEQBDbm90OxAAHDEhAAERAAchABwyIQABEQAHIQAcMyEAAREAByEAHDQhAAERAAchABw1IQABEQAHIQ" +
    "AcNiEAAREAByEAHDchAAH4AAchABw4IQAM5wAcOSEADOcAETFTAAhLAQzoABExVAAIIgAM6QARMVUACCIADOoAETFVAAgiAAzrABExVQAIIgABmQAH7AAR" +
    "MVUACCIAAZkACCIAAVUACCIAAZkACCIADVIBAZkACCIADVMBAZkACCIADVQBAZkAByIAETK7AAiIAAGZAAgiAAG7AAgiAAEzAAgiAAG7AAgiAAEzAAgiAA" +
    "G7AAgiAAEzAAgiAAG7AAgiAAEzAAgiAAG7AAgiAAEzAAgiAAG7AAgiAAEzAAgiAA1UAQEzAAgiAA1UAQ3uAA1UAQzuABEzMwAIiAAM7gARMzMACCIADO4A" +
    "ETMzAAgiAAzuABEzMwAIIgAM7gARMzMACCIADO4AETMzAAgiAAG7AAcQAREzMwAIIgABuwAIIgANVAEBuwAIIgANVAEBuwAIIgAN/AMBuwABIgAfeAEA/x" +
    "RQeHh4eHgAAAAA",
  "base64"
)

const records = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    key: `k${n}`,
    headers: { n: String(n) },
    value: Buffer.from(`x${n}`)
  }))

/** All records of these batches from an offset on, and where the last batch ends. */
const read = async (batches: ReadonlyArray<Buffer>, from = 0, aborted: ReadonlyArray<Aborted> = []) => {
  const all = new KafkaBatches(Buffer.concat(batches), aborted)
  const found: Array<ReadRecord> = []
  let next = BigInt(from)
  for (let open = await all.open(next); open !== null; open = await all.open(next)) {
    for (let one = open.records.next(); one.done !== true; one = open.records.next()) {
      if (one.value !== null) found.push(one.value)
    }
    next = open.next
  }
  return { found, offsets: found.map(({ offset }) => Number(offset)), next: Number(next) }
}

/** Why they are not read. */
const refusal = (...batches: ReadonlyArray<Buffer>): Promise<string> =>
  read(batches).then(
    ({ found }) => `${found.length} were read`,
    (fault: Error) => fault.message
  )

/** The batch after a change, with the checksum that goes with it. */
const changed = (change: (batch: Buffer) => void): Buffer => {
  const batch = batchOf({ first: 0, records: records(2) })
  change(batch)
  batch.writeUInt32BE(crc32c([batch.subarray(21)]), 17)
  return batch
}

describe("Batches of a partition", () => {
  it("Records have their offsets, times, keys and headers, and those before the wanted offset are passed over", async () => {
    const { found, next, offsets } = await read(
      [batchOf({ first: 5, records: records(4), time: 1_700_000_000_123 }), batchOf({ first: 9, records: records(1) })],
      7
    )
    expect([offsets, next]).toEqual([[7, 8, 9], 10])
    expect(found[0]).toMatchObject({ time: 1_700_000_000_123, headers: [["n", "2"]] })
    expect([found[0]!.key, found[0]!.value].map(String)).toEqual(["k2", "x2"])
  })

  it("A batch whose last records are gone ends where it ended, and the last batch may be cut off", async () => {
    const whole = batchOf({ first: 0, records: records(2), behind: 9 })
    const { next, offsets } = await read([whole, batchOf({ first: 10, records: records(2) }).subarray(0, 80)])
    expect([offsets, next]).toEqual([[0, 1], 10])
  })

  it("Fifty headers of a record are read, and none that is long", async () => {
    const headers = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, n) => [`h${n}`, n === 1 ? "x".repeat(2_000) : "x"])
    )
    const { found } = await read([batchOf({ first: 0, records: [{ key: null, headers, value: Buffer.from("b") }] })])
    expect(found[0]!.headers.map(([name]) => name)).toEqual(
      Array.from({ length: 50 }, (_, n) => `h${n}`).filter((name) => name !== "h1")
    )
  })

  it("Transactions that were taken back are left out, and so are the marks; the next one of the same producer is not", async () => {
    const { next, offsets } = await read(
      [
        batchOf({ first: 0, records: records(1), producer: 7 }),
        batchOf({ first: 1, records: records(1), producer: 8 }),
        batchOf({ first: 2, records: records(1) }),
        markOf("abort", 7, 3),
        batchOf({ first: 4, records: records(1), producer: 7 }),
        markOf("commit", 7, 5),
        markOf("commit", 8, 6)
      ],
      0,
      [{ producer: 7n, from: 0n }]
    )
    expect([offsets, next]).toEqual([[1, 2, 4], 7])
  })

  it.each([
    ["with another checksum", () => batchOf({ first: 0, records: records(2) }).fill(1, 70, 71), "another checksum"],
    ["of an old format", () => changed((batch) => batch.writeInt8(1, 16)), "before Kafka 0.11"],
    ["that is shorter than its head", () => changed((batch) => batch.writeInt32BE(20, 8)), "no valid length"],
    ["with a length below zero", () => changed((batch) => batch.writeInt32BE(-1, 8)), "no valid length"],
    ["with a count below zero", () => changed((batch) => batch.writeInt32BE(-1, 57)), "no valid head"],
    ["with two thousand million records", () => changed((batch) => batch.writeInt32BE(0x7fffffff, 57)), "out of range"],
    ["whose last offset is before its records", () => changed((batch) => batch.writeInt32BE(0, 23)), "order"],
    ["with a compression that is not known", () => changed((batch) => batch.writeInt16BE(7, 21)), "not known (7)"],
    ["whose compression is none", () => changed((batch) => batch.writeInt16BE(1, 21)), "damaged"],
    ["that is before the wanted offset", () => changed((batch) => batch.writeBigInt64BE(-1n, 0)), "no valid head"]
  ] as const)("A batch %s is refused", async (_, batch, says) => {
    expect(await refusal(batch())).toContain(says)
  })

  it("A broker that gives what was not asked for is refused", async () => {
    await expect(read([batchOf({ first: 0, records: records(2) })], 5)).rejects.toThrow("before those asked for")
  })
})

describe("Compression of batches", () => {
  it.each([
    ["gzip", 1, gzipSync(plain)],
    ["snappy of Kafka's own producers", 2, snappy],
    ["snappy in one block", 2, bareSnappy],
    ["lz4", 3, lz4],
    ["zstd", 4, zstdCompressSync(plain)]
  ] as const)("Records by %s are what they were", async (_, codec, bytes) => {
    expect((await decompressed(codec, bytes)).equals(plain)).toBe(true)
    await expect(decompressed(codec, bytes.subarray(0, bytes.length - 20))).rejects.toThrow("damaged")
  })

  const bomb = Buffer.alloc(17 * 1024 * 1024)
  /** A literal, and then copies of it without end. */
  const snappyBomb = Buffer.concat([
    Buffer.from([0x80, 0x80, 0x80, 0x80, 1, 0, 1]),
    ...Array.from({ length: 300_000 }, () => Buffer.from([0xfe, 1, 0]))
  ])
  const longMatch = Buffer.concat([Buffer.from([0x1f, 1, 1, 0]), Buffer.alloc(100_000, 255), Buffer.from([0])])
  const lz4Of = (block: Buffer): Buffer =>
    Buffer.concat([
      Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]),
      Buffer.from([block.length & 255, (block.length >> 8) & 255, block.length >> 16, 0]),
      block
    ])
  const lz4Bomb = lz4Of(longMatch)

  const endlessNumber = Buffer.concat([Buffer.from([0xf0]), Buffer.alloc(100_000, 255)])

  it.each([
    ["gzip", 1, gzipSync(bomb)],
    ["snappy", 2, snappyBomb],
    ["lz4", 3, lz4Bomb],
    ["lz4 whose number of literals does not end", 3, lz4Of(endlessNumber)],
    ["zstd", 4, zstdCompressSync(bomb)]
  ] as const)("A bomb by %s is refused", async (_, codec, bytes) => {
    expect(bytes.length).toBeLessThan(1024 * 1024)
    await expect(decompressed(codec, bytes)).rejects.toMatchObject({
      code: "RESPONSE_TOO_LARGE",
      message: "a batch of records has more than 16 MiB without its compression"
    })
  })

  it.each([
    ["snappy that refers to what is before it", 2, Buffer.from([10, 0x01, 5])],
    ["snappy whose literal is longer than it", 2, Buffer.from([10, 0xfc, 255, 255, 255, 127, 1])],
    ["snappy whose length never ends", 2, Buffer.alloc(20, 255)],
    ["lz4 that has no head", 3, Buffer.from([1, 2, 3, 4, 5, 6, 7, 8])],
    ["lz4 whose block is longer than it", 3, Buffer.concat([lz4.subarray(0, 7), Buffer.from([255, 255, 255, 127, 1])])],
    ["lz4 that refers to itself", 3, Buffer.concat([lz4.subarray(0, 7), Buffer.from([4, 0, 0, 0, 0x10, 1, 0, 0])])]
  ] as const)("Damaged %s is refused", async (_, codec, bytes) => {
    await expect(decompressed(codec, bytes)).rejects.toThrow("damaged")
  })
})

describe("Leader of a consumer group", () => {
  const member = (id: string, ...topics: ReadonlyArray<string>) => ({ id, topics })
  const members = [member("b", "orders", "paid"), member("a", "orders"), member("c", "paid")]
  const counts = new Map([
    ["orders", 3],
    ["paid", 4]
  ])
  const shared = (assignor: string) =>
    Object.fromEntries(Array.from(assigned(assignor, members, counts)!, ([id, all]) => [id, Object.fromEntries(all)]))

  it("Partitions are shared as Kafka's own assignors share them", () => {
    expect(assignorNames).toEqual(["range", "roundrobin"])
    expect(shared("range")).toEqual({ a: { orders: [0, 1] }, b: { orders: [2], paid: [0, 1] }, c: { paid: [2, 3] } })
    expect(shared("roundrobin")).toEqual({
      a: { orders: [0, 2] },
      b: { orders: [1], paid: [0, 2] },
      c: { paid: [1, 3] }
    })
    expect(assigned("sticky", members, counts)).toBe(null)
  })
})
