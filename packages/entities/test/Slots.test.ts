import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { type Share, Slots } from "../src/Destination/queue/Slots.ts"
import { Random } from "./Random.ts"

/** Takes as many as it gets. */
const fill = (share: Share): number => {
  let taken = 0
  while (share.take()) taken++
  return taken
}

describe("the slots of a process", () => {
  it("are half a single destination's, however many it wants", () => {
    const slots = new Slots(100, 0)
    expect(fill(slots.share(() => {}))).toBe(50)
  })

  it("leave an equal part for whoever comes, and go to it as they come back", () => {
    const slots = new Slots(120, 0)
    const held = [0, 0, 0, 0]
    const shares = held.map((_, index) => slots.share(() => again(index)))
    const again = (index: number): void => void (held[index]! += fill(shares[index]!))
    // One after the other; those before give back what they have too much of as their deliveries end.
    for (const index of shares.keys()) {
      again(index)
      for (let ends = 0; ends < 500; ends++) {
        const at = ends % (index + 1)
        if (held[at] === 0) continue
        held[at]!--
        shares[at]!.release()
        again(at)
      }
    }
    expect(slots.taken).toBeLessThanOrEqual(120)
    for (const count of held) expect(Math.abs(count - 24)).toBeLessThanOrEqual(2)
  })

  it("are not kept from a quick destination by slow ones that hold all they get", () => {
    const slots = new Slots(64, 0)
    const slow = Array.from({ length: 6 }, () => slots.share(() => {}))
    for (const share of slow) fill(share)
    const quick = slots.share(() => {})
    expect(fill(quick)).toBeGreaterThanOrEqual(1)
  })

  it("are one each when there are more destinations than slots, in turn", () => {
    const slots = new Slots(8, 0)
    const started: Array<number> = []
    const shares = Array.from({ length: 40 }, (_, index): Share => slots.share(() => void (take(index) || undefined)))
    const take = (index: number): boolean => {
      const got = shares[index]!.take()
      if (got) started.push(index)
      return got
    }
    for (const index of shares.keys()) take(index)
    // Each that ends looks for another slot at once, and waits behind those who have waited.
    for (let ended = 0; ended < 72; ended++) {
      const index = started[ended]!
      shares[index]!.release()
      take(index)
    }
    expect(slots.taken).toBe(8)
    expect(started.slice(0, 80)).toStrictEqual([...shares.keys(), ...shares.keys()])
  })

  const seed = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 31 })))
  it.prop("are never more than there are, and nobody who may have one is left waiting", { seed }, ({ seed }) => {
    const random = new Random(seed)
    const most = random.between(1, 60)
    const slots = new Slots(most, 0)
    const wants = Array.from({ length: random.between(1, 30) }, () => 0)
    const held = wants.map(() => 0)
    const shares = wants.map((_, index): Share => slots.share(() => start(index)))
    const start = (index: number): void => {
      while (wants[index]! > 0 && shares[index]!.take()) {
        wants[index]!--
        held[index]!++
      }
    }
    for (let step = 0; step < 500; step++) {
      const index = random.between(0, wants.length - 1)
      if (random.chance(0.5)) {
        wants[index]! += random.between(1, 20)
        start(index)
      } else if (held[index]! > 0) {
        held[index]!--
        shares[index]!.release()
        start(index)
      }
      expect(slots.taken).toBe(held.reduce((sum, count) => sum + count, 0))
      expect(slots.taken).toBeLessThanOrEqual(most)
      const free = most - slots.taken
      const left = held.filter((count, at) => free > 0 && wants[at]! > 0 && count < Math.max(1, free))
      expect(left, "they would have got one").toStrictEqual([])
    }
  })
})

describe("the memory of all windows", () => {
  it("is shared likewise", () => {
    const slots = new Slots(1, 1_000)
    const [big, small] = [slots.share(() => {}), slots.share(() => {})]
    big.hold(500)
    expect(big.hasRoom(1)).toBe(false)
    expect(small.hasRoom(400)).toBe(true)
    small.hold(400)
    expect(small.hasRoom(1)).toBe(false)
    big.letGo(500)
    expect(small.hasRoom(100)).toBe(true)
  })
})
