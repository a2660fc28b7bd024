import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { FairQueue } from "../src/FairQueue.ts"

const one = { bytes: 1, work: 1 }

/** `loud` has a thousand items, and then `quiet` gets two. */
const flooded = () => {
  const queue = new FairQueue<string>()
  for (let n = 0; n < 1_000; n++) queue.add("loud", `loud ${n}`, one)
  queue.add("quiet", "quiet 0", one)
  queue.add("quiet", "quiet 1", one)
  return queue
}

describe("Fair queue", () => {
  it("A batch has all items in their order if they fit into it", () => {
    const queue = new FairQueue<string>()
    for (const item of ["a", "b", "c"]) queue.add("key", item, one)
    expect(queue.take({ bytes: 3, work: 3 })).toEqual(["a", "b", "c"])
    expect(queue.length).toBe(0)
    expect(queue.take({ bytes: 3, work: 3 })).toEqual([])
  })

  it("Items of a quiet key do not wait for those of a flooded one", () => {
    const queue = flooded()
    expect(queue.take({ bytes: 100, work: 5 })).toEqual(["loud 0", "quiet 0", "loud 1", "quiet 1", "loud 2"])
    expect(queue.take({ bytes: 100, work: 2 })).toEqual(["loud 3", "loud 4"])
    expect(queue.length).toBe(995)
  })

  it("A key that was served in the last batch is behind the others in the next one", () => {
    const queue = flooded()
    expect(queue.take({ bytes: 1, work: 1 })).toEqual(["loud 0"])
    expect(queue.take({ bytes: 1, work: 1 })).toEqual(["quiet 0"])
    expect(queue.take({ bytes: 1, work: 1 })).toEqual(["loud 1"])
  })

  it("Neither the bytes nor the work of a batch exceed its limits, unless a single item does", () => {
    const queue = new FairQueue<string>()
    queue.add("a", "large", { bytes: 10, work: 1 })
    queue.add("b", "small", { bytes: 1, work: 1 })
    queue.add("b", "hard", { bytes: 1, work: 9 })
    expect(queue.take({ bytes: 5, work: 5 })).toEqual(["large"])
    expect(queue.take({ bytes: 5, work: 5 })).toEqual(["small"])
    expect(queue.take({ bytes: 5, work: 5 })).toEqual(["hard"])
  })

  const Steps = Schema.Array(
    Schema.Union([
      Schema.Struct({
        key: Schema.Literals(["a", "b", "c"]),
        bytes: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))
      }),
      Schema.Struct({ work: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 7 })) })
    ])
  )

  it.prop("Every item leaves exactly once, and items of one key in their order", [Steps], ([steps]) => {
    const queue = new FairQueue<string>()
    const added: Array<string> = []
    const taken: Array<string> = []
    const take = (work: number) => {
      const before = queue.length
      const batch = queue.take({ bytes: 12, work })
      expect(batch.length).toBeLessThanOrEqual(work)
      if (before > 0) expect(batch.length).toBeGreaterThan(0)
      expect(queue.length).toBe(before - batch.length)
      taken.push(...batch)
    }
    for (const step of steps) {
      if ("work" in step) take(step.work)
      else {
        const item = `${step.key} ${added.length}`
        added.push(item)
        queue.add(step.key, item, { bytes: step.bytes, work: 1 })
      }
    }
    while (queue.length > 0) take(4)
    const of = (items: ReadonlyArray<string>, key: string) => items.filter((item) => item.startsWith(key))
    expect(taken.length).toBe(added.length)
    for (const key of ["a", "b", "c"]) expect(of(taken, key)).toEqual(of(added, key))
  })
})
