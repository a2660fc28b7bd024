import { expect, it } from "@effect/vitest"
import { selfTimes } from "../src/Profile.ts"

const node = (id: number, functionName: string, url = "file:///srv/packages/rules/src/Filter.ts") => ({
  id,
  callFrame: { functionName, url, lineNumber: 9 }
})

it("Profile sums self time over stacks and leaves out idle time", () => {
  const found = selfTimes({
    nodes: [node(1, "(root)", ""), node(2, "match"), node(3, "match"), node(4, "(idle)", ""), node(5, "")],
    samples: [1, 2, 3, 4, 5],
    timeDeltas: [0, 10, 1_000, 2_000, 9_000, 7]
  })
  expect(found).toStrictEqual([
    { name: "match", place: "packages/rules/src/Filter.ts:10", millis: 3, share: 3_000 / 3_007 },
    { name: "(anonymous)", place: "packages/rules/src/Filter.ts:10", millis: 0.007, share: 7 / 3_007 }
  ])
})
