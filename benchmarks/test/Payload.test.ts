import { expect, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { makePayload, nowMicros, PAYLOAD_BYTES, readStamp, STAMP_BYTES } from "../src/Payload.ts"

const upTo = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))

it.prop(
  "Benchmark payload is 1 KB of JSON and returns the values of its stamp",
  [upTo(Number.MAX_SAFE_INTEGER), upTo(9_999), upTo(99_999_999), upTo(999_999)],
  ([sentAt, run, sequence, customer]) => {
    const bytes = makePayload({ sentAt, run, sequence, customer })
    expect(bytes.length).toBe(PAYLOAD_BYTES)
    expect(readStamp(bytes.subarray(0, STAMP_BYTES))).toStrictEqual({ sentAt, run, sequence, customer })
    const parsed = JSON.parse(bytes.toString()) as Record<string, unknown> & {
      readonly customer: { readonly id: string }
    }
    expect(Number(parsed.customer.id.slice("cus_".length))).toBe(customer)
    expect(Number(parsed["sent_at"])).toBe(sentAt)
    expect(parsed["type"]).toBe("order.created")
  }
)

it("Bytes that are not a benchmark payload have no stamp", () => {
  expect(readStamp(Buffer.from("x".repeat(PAYLOAD_BYTES)))).toBe(undefined)
  expect(readStamp(Buffer.from(`{"other":"${" ".repeat(200)}"}`))).toBe(undefined)
})

it("Benchmark clock is the machine's monotonic clock in microseconds", () => {
  const before = Number(process.hrtime.bigint() / 1000n)
  const now = nowMicros()
  const after = Number(process.hrtime.bigint() / 1000n)
  expect(now).toBeGreaterThanOrEqual(before)
  expect(now).toBeLessThanOrEqual(after)
})
