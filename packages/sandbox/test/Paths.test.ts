import { beforeAll, describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { handler } from "./openSandbox.ts"
import { inRealms, type RealmJob, type RealmResult } from "./sealed/inRealms.ts"
import { changing, noisy, ordinary, transformations, unsuited } from "./sealed/suits.ts"

const modules = join(import.meta.dirname, "../../../node_modules")
const textOf = (path: string): string => readFileSync(join(modules, path), "utf8")

/** What people paste in front of their code, and what they then do with it. */
const bundles: Readonly<Record<string, readonly [code: string, handler: string]>> = {
  dayjs: [
    textOf("dayjs/dayjs.min.js"),
    "request.body = [dayjs('2026-01-31').add(1, 'month').format('YYYY-MM-DD'), dayjs().isValid(), dayjs(0).toISOString()]"
  ],
  moment: [
    textOf("moment/moment.js"),
    "request.body = [moment.utc('2026-01-31').add(1, 'month').format('LLLL'), moment.duration(5, 'days').humanize(), moment().isValid()]"
  ],
  "moment, small": [textOf("moment/min/moment.min.js"), "request.body = moment.utc(0).format()"],
  uuid: [
    textOf("uuid/dist/umd/uuid.min.js"),
    "request.body = [uuid.v5('tidegate', uuid.v5.URL), uuid.v3('x', uuid.NIL), uuid.validate('x'), uuid.parse(uuid.NIL).length]"
  ],
  // It makes code from texts, which nothing here may: it fails, in both.
  lodash: [textOf("lodash/lodash.min.js"), "request.body = _.chunk([1, 2, 3], 2)"]
}
const bundled = Object.entries(bundles).map(
  ([name, [code, use]]) => [name, `${code}\n;${handler(`${use}; return request`)}`] as const
)

const compared = (code: string): RealmJob => ({ code, calls: [{ kind: "compared" }] })
const times = 3

describe("Sealed and fresh isolation", () => {
  const results = new Map<string, ReadonlyArray<RealmResult>>()
  const of = (code: string): ReadonlyArray<RealmResult> => results.get(code) ?? []
  const verdictOf = (code: string) => of(code)[0]?.verdict
  const isIncomparable = (code: string) => /SYNTAX_ERROR|rejection/.test(of(code)[0]?.outcome[0] ?? "")

  beforeAll(async () => {
    const codes = [
      ...transformations,
      ...Object.values({ ...changing, ...noisy, ...ordinary }),
      ...Object.values(unsuited).map(([code]) => code)
    ]
    const jobs = [
      ...codes.map(compared),
      ...bundled.map(([, code]) => ({
        code,
        calls: Array.from({ length: times }, () => ({ kind: "compared" as const }))
      }))
    ]
    // A call that took long is not compared. On a busy machine that says nothing about its code: it is made again.
    for (let left = jobs, times = 0; left.length > 0 && times < 5; times++) {
      for (const [index, answers] of (await inRealms(left)).entries()) results.set(left[index]!.code, answers)
      left = left.filter(({ code }) => verdictOf(code) === null && !isIncomparable(code))
    }
  }, 600_000)

  it("All transformations of the suites give equal results in both isolations, or are pinned", () => {
    expect(transformations.length).toBeGreaterThan(120)
    const pinned = transformations.filter((code) => verdictOf(code)?.kind === "differs")
    // Writes to a built-in prototype, and counts on strict mode for what an undeclared variable is.
    expect(pinned.filter((code) => !/(?:Array|Object)\.prototype\.\w+ =|'use strict'\nundeclared/.test(code))).toEqual(
      []
    )
    expect(pinned.length).toBe(2)
    const uncompared = transformations.filter((code) => verdictOf(code) === null)
    expect(uncompared.filter((code) => !isIncomparable(code))).toEqual([])
    const equal = transformations.filter((code) => verdictOf(code)?.kind === "equal")
    expect(equal.length + pinned.length + uncompared.length).toBe(transformations.length)
    expect(uncompared.length).toBeLessThan(12)
  })

  it.each(Object.entries(ordinary))("Sealed and fresh isolation give equal results for %s", (_, code) => {
    expect(of(code)).toMatchObject([{ verdict: { kind: "equal" } }])
  })

  it.each(Object.entries(changing))("Compared calls get the same time and random values (%s)", (_, code) => {
    expect(of(code)).toMatchObject([{ verdict: { kind: "equal" } }])
  })

  it("A compared call writes its log only once", () => {
    expect(of(changing["all of them in the log"] ?? "")[0]?.logs.length).toBe(1)
  })

  it.each(Object.entries(noisy))("Values that change by themselves do not count as a difference (%s)", (_, code) => {
    expect(of(code)[0]?.outcome[0]).toBe("ok")
    expect(["equal", "noisy"]).toContain(verdictOf(code)?.kind)
  })

  it.each(Object.entries(unsuited))("The isolations differ for %s and the fresh result counts", (_, [code, reason]) => {
    expect(of(code)).toMatchObject([{ verdict: { kind: "differs", reason: expect.stringMatching(reason) } }])
    expect(of(code)[0]?.outcome[0]).toBe("ok")
  })

  it.each(bundled)("The isolations give equal results for pasted library %s, call after call", (name, code) => {
    expect(of(code).length).toBe(times)
    for (const { outcome, verdict } of of(code)) {
      expect(verdict, outcome.slice(0, 3).join(" ")).toEqual({ kind: "equal" })
      expect(outcome[0]).toBe(name === "lodash" ? "RUNTIME_ERROR" : "ok")
    }
  })
})
