import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { makePayload, nowMicros, PAYLOAD_BYTES, readStamp, STAMP_BYTES } from "../src/Payload.ts"

const upTo = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))

it.prop(
  "a payload is 1 KB of JSON that gives its stamp back",
  [upTo(Number.MAX_SAFE_INTEGER), upTo(9_999), upTo(99_999_999)],
  ([sentAt, run, sequence]) => {
    const bytes = makePayload({ sentAt, run, sequence })
    assert.strictEqual(bytes.length, PAYLOAD_BYTES)
    assert.deepStrictEqual(readStamp(bytes.subarray(0, STAMP_BYTES)), { sentAt, run, sequence })
    const parsed = JSON.parse(bytes.toString()) as Record<string, unknown>
    assert.strictEqual(Number(parsed["sent_at"]), sentAt)
    assert.strictEqual(parsed["type"], "order.created")
  }
)

it("bytes that are no payload have no stamp", () => {
  assert.strictEqual(readStamp(Buffer.from("x".repeat(PAYLOAD_BYTES))), undefined)
  assert.strictEqual(readStamp(Buffer.from(`{"other":"${" ".repeat(100)}"}`)), undefined)
})

it("the clock is the machine's monotonic clock in microseconds", () => {
  const before = Number(process.hrtime.bigint() / 1000n)
  const now = nowMicros()
  const after = Number(process.hrtime.bigint() / 1000n)
  assert.isAtLeast(now, before - 100)
  assert.isAtMost(now, after + 100)
})
