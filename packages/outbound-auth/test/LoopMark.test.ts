import { describe, expect, it } from "vitest"
import { endless, type LoopKeys, readChain, writeChain } from "@tidegate/outbound-auth/LoopMark"

const keys: LoopKeys = ["a key"]
const root = "req_00000000000000000000000001"
const id = "req_00000000000000000000000002"
const mark = (hops: number, by: LoopKeys = keys): string => writeChain(by, { root, hops: hops - 1, others: [] })
const read = (header: string | ReadonlyArray<string>, by: LoopKeys = keys) =>
  readChain(by, { "gateway-loop": header }, id)

describe("Loop mark", () => {
  it("A loop mark begins at a request without one and counts up from there", () => {
    const first = readChain(keys, {}, id)
    expect(first).toEqual({ root: id, hops: 0, others: [] })
    const second = read(writeChain(keys, first))
    expect(second).toEqual({ root: id, hops: 1, others: [] })
    expect(read(writeChain(keys, second))).toEqual({ root: id, hops: 2, others: [] })
  })

  it("A loop mark keeps the entries of other gateways, in one header or several", () => {
    const theirs = "tidegate;r=req_00000000000000000000000009;n=3;s=abcdefghijklmnopqrstuv"
    const chain = { root, hops: 4, others: ["cdn.example; v=1", theirs] }
    expect(read(["cdn.example; v=1", `${theirs},${mark(4)}`])).toEqual(chain)
    expect(writeChain(keys, chain)).toBe(`cdn.example; v=1, ${theirs}, ${mark(5)}`)
    expect(read("cdn.example")).toEqual({ root: id, hops: 0, others: ["cdn.example"] })
  })

  it("A loop mark is ignored if its key, count or root was forged", () => {
    const other: LoopKeys = ["another key"]
    const wrong = [
      mark(3, other),
      mark(3).replace("n=3", "n=1"),
      mark(3).replace("n=3", "n=03"),
      mark(3).replace(root, id),
      mark(3).slice(0, -1),
      `${mark(3)}x`
    ]
    for (const header of wrong) expect(read(header)).toMatchObject({ root: id, hops: 0 })
  })

  it("A loop mark is accepted with each key of the key ring and written with the first", () => {
    const ring: LoopKeys = ["a new key", ...keys]
    expect(read(mark(3), ring)).toMatchObject({ root, hops: 3 })
    expect(mark(3, ring)).not.toBe(mark(3))
    expect(read(mark(3, ring))).toMatchObject({ hops: 0 })
  })

  it("The highest count is used if there are several loop marks of this gateway", () => {
    expect(read(`${mark(7)}, ${mark(2)}`)).toEqual({ root, hops: 7, others: [] })
  })

  it("A loop mark longer than any chain of gateways counts as endless and grows no further", () => {
    for (const header of ["x".repeat(2_049), Array.from({ length: 17 }, (_, i) => `gateway-${i}`).join()]) {
      expect(read(header)).toEqual({ root: id, hops: endless, others: [] })
    }
    expect(read(mark(endless + 1))).toMatchObject({ hops: endless })
  })
})
