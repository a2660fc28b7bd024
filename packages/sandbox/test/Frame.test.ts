import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { encodeFrame, makeFrameReader } from "../src/Frame.ts"
import type { Frame } from "../src/Frame.ts"

const readAll = (chunks: ReadonlyArray<Buffer>): ReadonlyArray<Frame> => {
  const frames: Array<Frame> = []
  const read = makeFrameReader((frame) => frames.push(frame))
  for (const chunk of chunks) read(chunk)
  return frames
}

const frames: ReadonlyArray<Frame> = [
  ["", "", ""],
  ["{}", "é", "💧"],
  ["a".repeat(1_000), "", "b".repeat(70_000)],
  ["x", "y", ""]
]
const stream = Buffer.concat(frames.map(encodeFrame))

describe("Frames", () => {
  it("Frames are read from a stream as they were written, however the stream is cut", () => {
    for (const size of [1, 2, 11, 12, 13, 1_000, stream.length]) {
      const chunks = []
      for (let at = 0; at < stream.length; at += size) chunks.push(stream.subarray(at, at + size))
      expect(readAll(chunks)).toEqual(frames)
    }
  })

  it("An incomplete frame is not read", () => {
    const whole = encodeFrame(["a", "b", "c"])
    expect(readAll([whole.subarray(0, -1)])).toEqual([])
    expect(readAll([whole, whole.subarray(0, -1)])).toEqual([["a", "b", "c"]])
  })

  it("A frame of an impossible length ends the stream", () => {
    expect(() => readAll([Buffer.alloc(12, 0xff)])).toThrow("a frame of")
  })

  it.prop(
    "Frames carry any texts",
    { texts: Schema.Array(Schema.Tuple([Schema.String, Schema.String, Schema.String])) },
    ({ texts }) => {
      // Half of a surrogate pair has no UTF-8; JSON text, which is what they carry, has none.
      const whole = texts.map((frame): Frame => [
        frame[0].toWellFormed(),
        frame[1].toWellFormed(),
        frame[2].toWellFormed()
      ])
      expect(readAll([Buffer.concat(whole.map(encodeFrame))])).toEqual(whole)
    }
  )
})
