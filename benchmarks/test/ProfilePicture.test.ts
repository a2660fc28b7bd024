import { expect, it } from "@effect/vitest"
import type { CpuProfile } from "../src/Profile.ts"
import { partsOf, picture } from "../src/ProfilePicture.ts"

const frame = (functionName: string, url = "") => ({ functionName, url, lineNumber: 0 })

const profile = {
  nodes: [
    { id: 1, callFrame: frame("(root)"), children: [2, 4, 6, 7] },
    { id: 2, callFrame: frame("flush", "file:///x/node_modules/@effect/sql-pg/dist/PgClient.js"), children: [3] },
    { id: 3, callFrame: frame("writev") },
    { id: 4, callFrame: frame("admit", "file:///x/packages/ingress/src/handler/Admission.ts"), children: [5] },
    { id: 5, callFrame: frame("get", "node:internal/url") },
    { id: 6, callFrame: frame("(garbage collector)") },
    { id: 7, callFrame: frame("(idle)") }
  ],
  samples: [3, 2, 5, 6, 7, 7],
  timeDeltas: [0, 1_000, 200, 300, 400, 5_000]
} as unknown as CpuProfile

it("The CPU of an event is divided by kind of work, a system call counts for its caller, and idle time does not count", () => {
  expect(partsOf(profile, 10).map(({ micros, name }) => [name, micros])).toEqual([
    ["PostgreSQL client", 20],
    ["PostgreSQL client: writes", 100],
    ["sender's request and answer", 30],
    ["garbage collection", 40]
  ])
})

it("The picture has a bar for each profile on one scale, and the name of each part once", () => {
  const parts = partsOf(profile, 10)
  const drawn = picture([
    { name: "before", parts },
    { name: "a <b> & c", parts: parts.slice(0, 1) }
  ])
  expect(drawn).toContain("190 µs")
  expect(drawn).toContain("20 µs")
  expect(drawn).toContain("a &lt;b> &amp; c")
  expect(drawn.match(/>PostgreSQL client</g)).toHaveLength(1)
})
