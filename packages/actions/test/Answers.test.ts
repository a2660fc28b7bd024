import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { answered } from "../src/Answers.ts"

describe("Answer of a failed action call", () => {
  it.each([
    ["7", 7_000],
    ["0.25", 250],
    ["Fri, 02 Jan 2026 00:00:30 GMT", 30_000],
    ["soon", undefined],
    ["-1", undefined]
  ])("Header Retry-After %s of a failed action call asks for a wait of %s ms", (after, wait) => {
    const headers = { "retry-after": after, date: "Fri, 02 Jan 2026 00:00:00 GMT" }
    const read = answered({ status: 429, headers, body: Buffer.alloc(0), bodyTruncated: false })
    expect(Result.isFailure(read) && read.failure.retry_after_ms).toBe(wait)
  })
})
