import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { makeSampler, samplers } from "../src/Sampler.ts"
import { formatTraceparent, parseTraceparent, type TraceContext } from "../src/TraceContext.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const spanId = "b7ad6b7169203331"

/** Hexadecimal digits, and what they are written as: never all of them 0. */
const Digits = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 15 })))
const written = (digits: ReadonlyArray<number>, length: number): string =>
  `${digits.map((digit) => digit.toString(16)).join("")}${"0".repeat(length)}`.slice(0, length - 1) + "1"

describe("Header traceparent", () => {
  it.prop("A formatted traceparent can be parsed back", [Digits, Digits, Schema.Boolean], ([trace, span, sampled]) => {
    const context = { traceId: written(trace, 32), spanId: written(span, 16), sampled }
    expect(parseTraceparent(formatTraceparent(context))).toEqual(context)
  })

  const piece = (...texts: [string, ...Array<string>]) => Schema.Literals(texts)
  const Versions = piece("00", "00", "00", "01", "cc", "ff", "0", "0G")
  const Traces = piece(traceId, traceId, "0".repeat(32), traceId.toUpperCase(), traceId.slice(1), `${traceId}0`)
  const Spans = piece(spanId, spanId, "0".repeat(16), spanId.toUpperCase(), spanId.slice(1))
  const Flags = piece("00", "01", "03", "ff", "1", "0x")
  const Rests = piece("", "", "", "-", "-what-the-future-will-be-like", " ", "-\n")
  const isHex = (text: string, length: number) => text.length === length && text.replaceAll(/[^0-9a-f]/g, "") === text

  it.prop(
    "A traceparent is parsed exactly when the standard calls it valid",
    [Versions, Traces, Spans, Flags, Rests],
    ([version, trace, span, flags, rest]) => {
      const isValid =
        isHex(version, 2) &&
        version !== "ff" &&
        isHex(trace, 32) &&
        !/^0+$/.test(trace) &&
        isHex(span, 16) &&
        !/^0+$/.test(span) &&
        isHex(flags, 2) &&
        (rest === "" || (version !== "00" && rest.startsWith("-") && !rest.endsWith("\n")))
      const sampled = Number.parseInt(flags, 16) % 2 === 1
      expect(parseTraceparent(`${version}-${trace}-${span}-${flags}${rest}`)).toEqual(
        isValid ? { traceId: trace, spanId: span, sampled } : null
      )
    },
    { arbitrary: { runs: 1_000 } }
  )

  it.prop("Random text is no valid traceparent", [Schema.String], ([text]) => expect(parseTraceparent(text)).toBeNull())

  it.each([
    undefined,
    [],
    [`00-${traceId}-${spanId}-01`, `00-${traceId}-${spanId}-01`],
    `01-${traceId}-${spanId}-01-${"x".repeat(300)}`
  ])("The header value %s is not parsed as a traceparent", (value) => expect(parseTraceparent(value)).toBeNull())
})

describe("Trace sampler", () => {
  const parent = (sampled: boolean) => ({ traceId, spanId, sampled })

  it("A parent-based sampler follows the parent's decision, and the others ignore it", () => {
    const answers = samplers.map((name) => {
      const sampler = makeSampler(name, 0)
      const of = (sender: TraceContext | null) => sampler(() => traceId, sender)
      return [name, of(null), of(parent(true)), of(parent(false))]
    })
    expect(answers).toEqual([
      ["always_on", true, true, true],
      ["always_off", false, false, false],
      ["traceidratio", false, false, false],
      ["parentbased_always_on", true, true, false],
      ["parentbased_always_off", false, true, false],
      ["parentbased_traceidratio", false, true, false]
    ])
  })

  const share = (ratio: number, ids: ReadonlyArray<string>) =>
    ids.filter((id) => makeSampler("traceidratio", ratio)(() => id, null))
  const Percent = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 }))

  it.prop("A larger sampling ratio never samples fewer traces", [Digits, Percent, Percent], ([digits, a, b]) => {
    const ids = [written(digits, 32)]
    const [less, more] = a < b ? [a / 100, b / 100] : [b / 100, a / 100]
    expect(share(more, ids).length).toBeGreaterThanOrEqual(share(less, ids).length)
    expect([share(0, ids), share(1, ids)]).toEqual([[], ids])
  })

  it("A sampling ratio of 0.25 samples a quarter of evenly spread trace ids", () => {
    const ids = Array.from(
      { length: 4_096 },
      (_, at) => `${"0".repeat(18)}${(at * 16).toString(16).padStart(4, "0")}${"0".repeat(10)}`
    )
    expect(share(0.25, ids)).toHaveLength(1_024)
  })
})
