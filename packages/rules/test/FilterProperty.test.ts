import type { Json } from "@tidegate/model/Rule"
import { compileConditions } from "@tidegate/rules/Filter"
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Effect, Result, Schema } from "effect"
import { Generator } from "./Generator.ts"
import { meets } from "./Oracle.ts"

const tape = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5_039 }))), {
  minLength: 40,
  maxLength: 150
})

interface Case {
  readonly document: unknown
  readonly condition: unknown
  readonly subject: "document" | "record" | "headers"
}

/** A case from a tape: any document, or a record with an object of fields asked about it. */
const caseOf = (numbers: ReadonlyArray<number>): Case => {
  const [first = 0, ...rest] = numbers
  const generate = new Generator(rest)
  const subject = (["document", "document", "document", "record", "headers"] as const)[first % 5]!
  if (subject === "document") {
    const document = generate.document(3)
    return { document, condition: generate.condition(document, 3), subject }
  }
  const record = generate.object(() => generate.document(1))
  const document =
    subject === "headers"
      ? Object.fromEntries(Object.entries(record).map(([key, value]) => [key.toLowerCase(), value]))
      : record
  return { document, condition: generate.fields(record, 3), subject }
}

/** The engine's answer; a condition it refuses is a failure of the test, since every generated one is valid. */
const answer = ({ condition, document, subject }: Case): boolean =>
  Result.getOrThrow(compileConditions(condition, { subject }))(document as Json)

describe("Filter compiler and reference implementation", () => {
  it.prop(
    "The compiler and the reference agree on every condition and document",
    { numbers: tape },
    ({ numbers }) => {
      const made = caseOf(numbers)
      expect(answer(made), JSON.stringify(made)).toBe(meets(made.condition, made.document, made.subject))
    },
    { arbitrary: { runs: 5_000, size: 150 } }
  )

  it.effect("The generated cases include enough matches and enough mismatches", () =>
    Effect.gen(function* () {
      const tapes = yield* Arbitrary.sampleEffect(tape, { count: 1_000, size: 150, seed: "balance" })
      const matched = tapes.filter((numbers) => answer(caseOf(numbers))).length
      expect(matched).toBeGreaterThan(200)
      expect(matched).toBeLessThan(800)
    })
  )
})
