import { describe, expect, it } from "vitest"
import { makeLoops } from "@tidegate/entities/Loops"
import type { Values } from "@tidegate/model/Message"

const idOf = (n: number): string => `req_${String(n).padStart(26, "0")}`
const limits = { hops: 3, descendants: 5 }
const none: Values = {}

const loopsAt = (now = { ms: 0 }) => {
  const { admits, next } = makeLoops(["a key"], limits, () => now.ms)
  /** The headers of what is sent on because of a request. */
  const sentOn = (headers: Values, id = idOf(1)): Values => ({ "gateway-loop": next(headers, id) })
  return { admits, now, sentOn }
}

describe("Chains of requests that lead back", () => {
  it("A chain of requests can reach its maximum depth but not exceed it", () => {
    const { admits, sentOn } = loopsAt()
    let headers = none
    const depths = [1, 2, 3, 4, 5].map((n) => {
      headers = sentOn(headers, idOf(n))
      return admits(headers)
    })
    expect(depths).toEqual([true, true, true, false, false])
  })

  it("A chain of requests has a maximum number of requests per minute", () => {
    const { admits, now, sentOn } = loopsAt()
    const headers = sentOn(none)
    const taken = () => Array.from({ length: 7 }, () => admits(headers)).filter(Boolean).length
    expect(taken()).toBe(5)
    now.ms = 59_999
    expect(taken()).toBe(0)
    now.ms = 60_000
    expect(taken()).toBe(5)
  })

  it("Chains are counted separately, and requests outside of chains are not counted", () => {
    const { admits, sentOn } = loopsAt()
    for (let i = 0; i < 20; i++) expect(admits(none)).toBe(true)
    for (let i = 0; i < 6; i++) admits(sentOn(none, idOf(1)))
    expect(admits(sentOn(none, idOf(1)))).toBe(false)
    expect(admits(sentOn(none, idOf(2)))).toBe(true)
  })

  it("Any number of chains is counted in bounded memory, and the oldest is forgotten", () => {
    const { admits, sentOn } = loopsAt()
    for (let i = 0; i < 6; i++) admits(sentOn(none, idOf(1)))
    expect(admits(sentOn(none, idOf(1)))).toBe(false)
    for (let i = 0; i < 20_000; i++) admits(sentOn(none, idOf(2 + i)))
    expect(admits(sentOn(none, idOf(1)))).toBe(true)
  })

  it("A forged loop mark does not stop a request", () => {
    const { admits } = loopsAt()
    const forged = `tidegate;r=${idOf(1)};n=9;s=abcdefghijklmnopqrstuv`
    expect(admits({ "gateway-loop": forged })).toBe(true)
    expect(admits({ "gateway-loop": "x".repeat(3_000) })).toBe(false)
  })
})
