import { describe, expect, it } from "vitest"
import { next, passed } from "../src/TestSignal.ts"

describe("Test signal", () => {
  it("A test signal reaches everybody who asked before it, once, and nobody else", async () => {
    const heard: Array<string> = []
    passed("poll")
    const first = next("poll").then(() => heard.push("first"))
    const second = next("poll").then(() => heard.push("second"))
    const other = next("commit").then(() => heard.push("other"))
    passed("poll")
    await Promise.all([first, second])
    expect(heard).toEqual(["first", "second"])
    const later = next("poll").then(() => heard.push("later"))
    passed("commit")
    await other
    expect(heard).toEqual(["first", "second", "other"])
    passed("poll")
    await later
  })
})
