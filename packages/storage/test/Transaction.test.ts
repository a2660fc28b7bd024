import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Ref } from "effect"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { fail } from "@tidegate/model/GatewayError"
import { overtaken, query } from "../src/Transaction.ts"

const cause = new Error("a detail for the log")
const lost = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause }) })
const deadlock = new SqlError.SqlError({ reason: new SqlError.DeadlockError({ cause }) })
const slow = new SqlError.SqlError({ reason: new SqlError.StatementTimeoutError({ cause }) })
const wrong = new SqlError.SqlError({ reason: new SqlError.SqlSyntaxError({ cause }) })

/** Fails with these in turn, then succeeds; tells the outcome and how often it was tried. */
const run = Effect.fnUntraced(function* (errors: ReadonlyArray<SqlError.SqlError>) {
  const tries = yield* Ref.make(0)
  const fiber = yield* Ref.getAndUpdate(tries, (count) => count + 1).pipe(
    Effect.flatMap((index) => {
      const error = errors[index]
      return error === undefined ? Effect.succeed("done") : Effect.fail(error)
    }),
    query,
    Effect.match({ onSuccess: (answer) => answer, onFailure: ({ code }) => code }),
    Effect.forkChild
  )
  yield* TestClock.adjust("10 seconds")
  return [yield* Fiber.join(fiber), yield* Ref.get(tries)]
})

describe("Transaction", () => {
  it.effect("A transaction is repeated after errors that may be temporary", () =>
    Effect.gen(function* () {
      expect(yield* run([deadlock, lost, overtaken("changed")])).toStrictEqual(["done", 4])
    })
  )

  it.effect("A transaction reports 503 for a missing or slow database and 500 for other errors", () =>
    Effect.gen(function* () {
      expect(yield* run(Array.from({ length: 99 }, () => lost))).toStrictEqual(["QUEUE_UNAVAILABLE", 6])
      expect(yield* run([slow])).toStrictEqual(["QUEUE_UNAVAILABLE", 1])
      expect(yield* run([wrong])).toStrictEqual(["INTERNAL_ERROR", 1])
    })
  )

  it.effect("A failed transaction hides its cause from the caller and passes on its own errors", () =>
    Effect.gen(function* () {
      const { data, message } = yield* Effect.flip(query(Effect.fail(wrong)))
      expect(message).toBe("the request could not be carried out")
      // Under which the log has the cause.
      expect(JSON.stringify(data)).toMatch(/^\{"error_id":"err_[0-9a-f]{24}"\}$/)
      const refusal = fail("CONNECTION_PAUSED", "it is paused")
      expect(yield* Effect.flip(query(Effect.fail(refusal)))).toBe(refusal)
    })
  )
})
