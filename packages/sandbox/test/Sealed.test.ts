import { beforeAll, describe, expect, it } from "@effect/vitest"
import { inRealms, type RealmJob, type RealmResult } from "./sealed/inRealms.ts"
import { leftovers } from "./sealed/leftovers.ts"
import { kinds, reach } from "./sealed/reach.ts"

const patience = 20_000

/** A call that leaves something behind, and one that looks for it. */
const codeOf = ({ code = "", leave, look }: (typeof leftovers)[number]): string =>
  `${code};addHandler("transform", (request, context) => {
    if (request.query === "leave") { ${leave}; return { body: "left" } }
    return { body: (() => { ${look} })() }
  })`

const generic: RealmJob = {
  code: reach,
  calls: [
    { kind: "sealed", query: "describe", wallMs: patience },
    ...kinds.flatMap((kind) => [
      { kind: "sealed" as const, query: `attack:${kind}`, wallMs: patience },
      { kind: "sealed" as const, query: "describe", wallMs: patience }
    ])
  ]
}
/** To know that it would be seen. */
const seen: RealmJob = { code: reach, calls: [{ kind: "fresh", query: "self:add", wallMs: patience }] }

const pairs = leftovers.flatMap((leftover): ReadonlyArray<RealmJob> => {
  const code = codeOf(leftover)
  const look = { kind: "sealed", query: "look" } as const
  const leave = { kind: "sealed", query: "leave", wallMs: leftover.isEndless === true ? 30 : 1_000 } as const
  return [
    { code, calls: [look] },
    { code, calls: [leave, look, look] }
  ]
})

/** Lines of what can be reached; an array when the call came to one. */
const linesOf = (result: RealmResult | undefined): ReadonlyArray<string> =>
  result?.outcome[0] === "ok" ? JSON.parse(result.outcome[2] ?? "[]") : []

describe("Reused isolate", () => {
  let results: ReadonlyArray<ReadonlyArray<RealmResult>>
  beforeAll(async () => {
    results = await inRealms([generic, seen, ...pairs])
  }, 600_000)

  it("A reused isolate is the same for each call, whatever earlier calls changed", () => {
    const [clean, ...later] = results[0] ?? []
    const before = linesOf(clean)
    expect(before.length).toBeGreaterThan(1_000)
    let attempts = 0
    for (const [index, kind] of kinds.entries()) {
      const attack = later[2 * index]
      // What was done to each, one after the other, came to an end.
      expect(attack?.outcome[0], `${kind}: ${attack?.outcome.join(" ")}`).toBe("ok")
      attempts += Number(attack?.outcome[2])
      const after = linesOf(later[2 * index + 1])
      expect(
        after.filter((line, at) => line !== before[at]),
        kind
      ).toEqual([])
      expect(after.length).toBe(before.length)
    }
    expect(attempts).toBeGreaterThan(10_000)
  })

  it("A reused isolate is frozen except for the objects made for the call", () => {
    const open = linesOf(results[0]?.[0]).flatMap((line) => {
      const [path, , isExtensible] = line.split(";")
      return isExtensible === "false" ? [] : [path]
    })
    const own = /^(of (async)?running|globalThis\.__proto__(\.(console(\.\w+)?|process(\.env)?|addHandler))?)$/i
    expect(open.length).toBeGreaterThan(5)
    expect(open.filter((path) => !own.test(path ?? ""))).toEqual([])
  })

  it("The test sees additions everywhere in a fresh context, so it would see them in a reused isolate", () => {
    expect(Number(results[1]?.[0]?.outcome[2])).toBeGreaterThan(1_000)
  })

  it("A reused isolate keeps nothing of an earlier call, however that call ended", () => {
    expect(leftovers.length).toBeGreaterThanOrEqual(200)
    const found = leftovers.filter((_, index) => {
      const [untouched] = results[2 + 2 * index] ?? []
      const [, ...looks] = results[3 + 2 * index] ?? []
      return (
        untouched === undefined ||
        looks.length !== 2 ||
        looks.some((look) => JSON.stringify(look) !== JSON.stringify(untouched))
      )
    })
    expect(found.map(({ name }) => name)).toEqual([])
  })

  it("The endless calls of this suite were stopped", () => {
    const stopped = leftovers.flatMap(({ isEndless }, index) =>
      isEndless ? [results[3 + 2 * index]?.[0]?.outcome[0]] : []
    )
    expect(stopped.length).toBeGreaterThanOrEqual(30)
    expect(stopped.filter((how) => how !== "timeout" && how !== "rejection")).toEqual([])
  })
})
