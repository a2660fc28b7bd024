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

describe("chains of requests that lead back", () => {
  it("go as deep as they may, and no further", () => {
    const { admits, sentOn } = loopsAt()
    let headers = none
    const depths = [1, 2, 3, 4, 5].map((n) => {
      headers = sentOn(headers, idOf(n))
      return admits(headers)
    })
    expect(depths).toEqual([true, true, true, false, false])
  })

  it("have so many requests in a minute, and as many in the next one", () => {
    const { admits, now, sentOn } = loopsAt()
    const headers = sentOn(none)
    const taken = () => Array.from({ length: 7 }, () => admits(headers)).filter(Boolean).length
    expect(taken()).toBe(5)
    now.ms = 59_999
    expect(taken()).toBe(0)
    now.ms = 60_000
    expect(taken()).toBe(5)
  })

  it("are counted apart, and what is in no chain is not counted", () => {
    const { admits, sentOn } = loopsAt()
    for (let i = 0; i < 20; i++) expect(admits(none)).toBe(true)
    for (let i = 0; i < 6; i++) admits(sentOn(none, idOf(1)))
    expect(admits(sentOn(none, idOf(1)))).toBe(false)
    expect(admits(sentOn(none, idOf(2)))).toBe(true)
  })

  it("are counted however many there are, in bounded memory: the oldest is forgotten", () => {
    const { admits, sentOn } = loopsAt()
    for (let i = 0; i < 6; i++) admits(sentOn(none, idOf(1)))
    expect(admits(sentOn(none, idOf(1)))).toBe(false)
    for (let i = 0; i < 20_000; i++) admits(sentOn(none, idOf(2 + i)))
    expect(admits(sentOn(none, idOf(1)))).toBe(true)
  })

  it("are not stopped by a mark that a stranger makes up", () => {
    const { admits } = loopsAt()
    const forged = `tidegate;r=${idOf(1)};n=9;s=abcdefghijklmnopqrstuv`
    expect(admits({ "gateway-loop": forged })).toBe(true)
    expect(admits({ "gateway-loop": "x".repeat(3_000) })).toBe(false)
  })
})
