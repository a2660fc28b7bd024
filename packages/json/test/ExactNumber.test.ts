import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { Decimal } from "decimal.js"
import {
  addNumbers,
  areEqualNumbers,
  canonicalNumber,
  compareNumbers,
  ExactNumber,
  isExactNumber,
  isSameJson,
  longestNumber,
  maxExactNumbers,
  plainNumber,
  readNumber
} from "@tidegate/json/ExactNumber"
import { fromJsonText } from "@tidegate/json/JsonSchema"
import { parseJson, parsingJson, readJson, readJsonbBytes } from "@tidegate/json/JsonText"
import { LargeJson } from "@tidegate/json/LargeJson"
import { mayRoundIn, roundNumbers, writeJson } from "@tidegate/json/NumberMarks"

const parsed = (text: string): unknown => {
  const read = parseJson(text)
  if (read.kind !== "json") throw new Error(read.kind)
  expect(JSON.stringify(parseJson(Buffer.from(text)))).toBe(JSON.stringify(read))
  return read.value
}

const whole = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))
const digits = (minLength: number, maxLength: number) =>
  Arbitrary.map(Arbitrary.array(whole(0, 9), { minLength, maxLength }), (all) => all.join(""))

/** A number of JSON, in any way to write it. */
const written = Arbitrary.map(
  Arbitrary.all([Arbitrary.schema(Schema.Boolean), digits(1, 40), digits(0, 30), whole(-999, 999), whole(0, 4)]),
  ([isNegative, before, behind, exponent, form]) => {
    const number = `${isNegative ? "-" : ""}${before.replace(/^0+(?=.)/, "")}${behind === "" ? "" : `.${behind}`}`
    return number + ["", `e${exponent}`, `E${exponent}`, `e${exponent < 0 ? "" : "+"}${exponent}`, "e00"][form]!
  }
)

/** Numbers that lie beside each other. */
const near = Arbitrary.map(
  Arbitrary.all([digits(1, 2), digits(0, 1), whole(-1, 1)]),
  ([before, behind, exponent]) => `9007199254740${before}${behind === "" ? "" : `.${behind}`}e${exponent}`
)

/** What a decimal amounts to, as a fraction of big integers. */
const fraction = (text: string): readonly [numerator: bigint, denominator: bigint] => {
  const [, sign, whole = "", part = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)!
  const power = Number(exponent) - part.length
  const value = BigInt(`${sign}${whole}${part}`)
  return power >= 0 ? [value * 10n ** BigInt(power), 1n] : [value, 10n ** BigInt(-power)]
}
const signOf = (left: string, right: string): number => {
  const [[a, b], [c, d]] = [fraction(left), fraction(right)]
  return a * d < c * b ? -1 : a * d > c * b ? 1 : 0
}

describe("Number that JavaScript would round", () => {
  it.each([
    ["an id beyond 2^53", "12345678901234567891"],
    ["the first whole number that a double does not have", "9007199254740993"],
    ["more digits than a double keeps", "0.1000000000000000055"],
    ["what is larger than any double", "1e+400"],
    ["what is smaller than any double", "-1.5e-4000"],
    ["so many digits as may be", "7".repeat(1_024)]
  ])("Number keeps its digits: %s", (_name, text) => {
    const value = parsed(`{"a":[${text}],"b":${text}}`) as { readonly a: ReadonlyArray<unknown>; readonly b: unknown }
    expect(isExactNumber(value.a[0])).toBe(true)
    expect(String(value.b)).toBe(text)
    expect(JSON.stringify(value)).toBe(`{"a":[${text}],"b":${text}}`)
  })

  it.each(["1", "1.0", "-0", "1E5", "1e22", "0.1", "9007199254740992", "0.30000000000000004", "1e308", "5e-324"])(
    "Number %s is parsed as a plain number",
    (text) => expect(parsed(`[${text}]`)).toEqual([JSON.parse(text)])
  )

  it("Long number is recognized only where it is a JSON number, and not inside texts and names", () => {
    const text = String.raw`{"12345678901234567891":"12345678901234567891","a\"1e999":["\\",12345678901234567891],"e":true}`
    expect(JSON.stringify(parsed(text))).toBe(text)
    expect(isExactNumber((parsed(text) as { readonly [name: string]: unknown })["12345678901234567891"])).toBe(false)
  })

  it("Long number can have any member name, and the last of several equal names counts", () => {
    const value = parsed('{"__proto__":12345678901234567891,"a":1e400,"a":9007199254740993}') as object
    expect(Object.keys(value)).toEqual(["__proto__", "a"])
    expect(JSON.stringify(value)).toBe('{"__proto__":12345678901234567891,"a":9007199254740993}')
  })

  it("Long number in invalid JSON is refused", () => {
    for (const text of ["012345678901234567891", "1.2.3456789012345678", "12345678901234567891x", "[1e400e400]"]) {
      expect(parseJson(text).kind).toBe("invalid")
    }
  })

  it("Long number does not change plain numbers beside it", () => {
    const plain = [2 ** 52, 2 ** 52 + 1, -(2 ** 52), 2 ** 53, 2 ** 53 - 1].join()
    const text = `[${plain},4503599627370496.0,45035996273704970E-1,12345678901234567891,1e400]`
    expect(JSON.stringify(parsed(text))).toBe(
      `[${plain},4503599627370496,4503599627370497,12345678901234567891,1e+400]`
    )
  })

  it("Long number passes schemas of JSON unchanged", () => {
    const value = parsed('{"a":{"b":[12345678901234567891]}}')
    for (const schema of [Schema.Json, Schema.JsonObject, Schema.toCodecJson(Schema.Unknown)]) {
      expect(JSON.stringify(Schema.decodeUnknownSync(schema)(value))).toBe('{"a":{"b":[12345678901234567891]}}')
    }
    const carried = fromJsonText(Schema.toCodecJson(Schema.Struct({ a: Schema.JsonObject })))
    const text = Schema.encodeUnknownSync(carried)(value)
    expect(JSON.stringify(Schema.decodeUnknownSync(carried)(text))).toBe('{"a":{"b":[12345678901234567891]}}')
    expect(() => Schema.decodeUnknownSync(carried)("{")).toThrow("a text of JSON")
  })

  it("Long number is found in a large JSON text that is read in part", () => {
    const large = LargeJson.of(Buffer.from(`{"x":"${"x".repeat(70_000)}","id":12345678901234567891}`))!
    expect(String(large.reach([{ kind: "key", key: "id" }])[0])).toBe("12345678901234567891")
  })
})

describe("JSON values", () => {
  const same = (a: string, b: string) => [isSameJson(parsed(a), parsed(b)), isSameJson(parsed(b), parsed(a))]

  it.each([
    ['{"a":12345678901234567891,"b":[1]}', '{"b":[1.0],"a":12345678901234567891.0}'],
    ['[1e400,{"a":null}]', '[10e399,{"a":null}]'],
    ['"x"', '"x"'],
    ["0", "-0"]
  ])("JSON values are equal: %s and %s", (a, b) => expect(same(a, b)).toEqual([true, true]))

  it.each([
    ['{"a":12345678901234567891}', '{"a":12345678901234567892}'],
    ["[1e400]", "[1e401]"],
    ["[0.1]", "[0.1000000000000000055]"],
    ["[12345678901234567891]", '["12345678901234567891"]'],
    ["12345678901234567891", "{}"],
    ["[]", "{}"],
    ["[1,2]", "[2,1]"],
    ['{"a":1}', '{"a":1,"b":null}'],
    ['{"a":null}', '{"b":null}'],
    ['{"__proto__":1}', '{"a":1}'],
    ["null", "{}"],
    ["null", "false"]
  ])("JSON values are not equal: %s and %s", (a, b) => expect(same(a, b)).toEqual([false, false]))
})

describe("JSON numbers", () => {
  it.prop("JSON numbers keep their value through every reader", [written], ([text]) => {
    const number = parsed(text) as number | ExactNumber
    expect(signOf(JSON.stringify(number), text)).toBe(0)
    expect(String(readNumber(text))).toBe(String(number))
    // As it is stored, and read back.
    const json = JSON.stringify({ a: [number, "x"] })
    expect(JSON.stringify(readJson(json))).toBe(json)
    expect(mayRoundIn(json) || !isExactNumber(number)).toBe(true)
    expect(roundNumbers(json)).toBe(JSON.stringify(JSON.parse(json)))
  })

  it.prop(
    "JSON numbers compare like their decimals",
    [Arbitrary.array(near, { minLength: 2, maxLength: 2 }), written],
    ([[left = "", beside = ""], other]) => {
      for (const right of [beside, other]) {
        const [a, b] = [readNumber(left), readNumber(right)]
        const sign = signOf(left, right)
        expect(compareNumbers(a, b)).toBe(sign)
        expect(compareNumbers(b, a)).toBe(sign === 0 ? 0 : -sign)
        expect(areEqualNumbers(a, b)).toBe(sign === 0)
        expect(canonicalNumber(a) === canonicalNumber(b)).toBe(sign === 0)
      }
    }
  )

  it.prop("JSON number has one canonical form, however it is written", [digits(1, 30)], ([text]) => {
    const whole = BigInt(text)
    const ways = [String(whole), `${whole}.000`, `${whole}e0`, `${whole * 1_000n}e-3`, `${whole}.0E+0`]
    expect(new Set(ways.map((text) => canonicalNumber(readNumber(text)))).size).toBe(1)
  })

  it.prop("JSON numbers are written with all digits on any platform", [written, Schema.Json], ([text, value]) => {
    const whole = { text, a: [readNumber(text), value], b: { c: readNumber(text), mark: 2 ** 52 + 1 } }
    expect(writeJson(whole)).toBe(JSON.stringify(whole))
    expect(writeJson(whole, 2)).toBe(JSON.stringify(whole, null, 2))
  })

  it.prop("JSON numbers in binary jsonb are read with all digits", [digits(1, 30), Schema.String], ([number, text]) => {
    const whole = BigInt(number)
    const json = Buffer.from(`x${JSON.stringify({ text })}`.replace('{"text"', `{"n": ${whole}, "text"`))
    const value = readJsonbBytes(json, 1, json.length)
    expect(JSON.stringify(value)).toBe(JSON.stringify({ n: 0, text }).replace('"n":0', `"n":${whole}`))
  })

  it("JSON number in plain digits has a maximum length", () => {
    const plain = (text: string) => plainNumber(readNumber(text) as ExactNumber)
    expect(plain("12345678901234567891e2")).toBe("1234567890123456789100")
    expect(plain("-1234567890.12345678901e-12")).toBe("-0.00123456789012345678901")
    expect(plain("1e1023")).toBe(`1${"0".repeat(1_023)}`)
    expect(plain("1e1024")).toBeNull()
    expect(plain("1e-9999")).toBeNull()
  })
})

describe("Sum of two numbers", () => {
  const small = Arbitrary.map(
    Arbitrary.all([Arbitrary.schema(Schema.Boolean), digits(1, 30), digits(0, 30), whole(-99, 99)]),
    ([isNegative, before, behind, exponent]) =>
      `${isNegative ? "-" : ""}1${before}${behind === "" ? "" : `.${behind}`}e${exponent}`
  )
  const Oracle = Decimal.clone({ precision: 1_000, toExpNeg: -9_000, toExpPos: 9_000 })

  it.prop("Sum of two numbers agrees with another decimal library", [small, small], ([a, b]) => {
    const sum = addNumbers(readNumber(a), readNumber(b))!
    expect(areEqualNumbers(sum, readNumber(new Oracle(a).plus(b).toString()))).toBe(true)
  })

  it("Sum of two numbers keeps every digit and is a plain number if that is exact", () => {
    const add = (a: string, b: string) => writeJson(addNumbers(readNumber(a), readNumber(b)))
    expect(add("9007199254740992", "1")).toBe("9007199254740993")
    expect(add("12345678901234567891", "-12345678901234567890")).toBe("1")
    expect(add("0.1", "0.2")).toBe("0.3")
    expect(add("-0.1000000000000000055", "0.1")).toBe("-5.5e-18")
    expect(add("1e-400", "0")).toBe(`0.${"0".repeat(399)}1`)
    expect(addNumbers(-0, 0)).toBe(0)
    expect(addNumbers(readNumber("1e308"), 5e-324)).not.toBeNull()
  })

  it("Sum of two numbers is null when it has more digits than a number may have", () => {
    expect(addNumbers(readNumber("1e9999"), 1)).toBeNull()
    expect(addNumbers(readNumber("1e-9999"), 1)).toBeNull()
    expect(addNumbers(readNumber("9".repeat(longestNumber - 3)), 1)).not.toBeNull()
    expect(addNumbers(readNumber("9".repeat(longestNumber)), 1)).toBeNull()
  })
})

/** The quickest of a few, in milliseconds: what else the machine does is not counted. */
const quickest = (run: () => void): number =>
  Math.min(
    ...Array.from({ length: 5 }, () => {
      const since = performance.now()
      run()
      return performance.now() - since
    })
  )

describe("Hostile numbers", () => {
  it("Numbers with huge exponents are compared by their exponents and not written out", () => {
    const [a, b] = [readNumber("1e9999") as ExactNumber, readNumber("10e9998") as ExactNumber]
    expect(areEqualNumbers(a, b)).toBe(true)
    const far = new ExactNumber("1e+999999999999")
    expect(quickest(() => expect(compareNumbers(far, new ExactNumber("2e+999999999998"))).toBe(1))).toBeLessThan(5)
    expect(canonicalNumber(far)).toBe("1e999999999999")
  })

  it("Long numbers are parsed in many parts and limited in number", () => {
    const many = (count: number) => Buffer.from(`[${"1e400,".repeat(count - 1)}1e400]`)
    const parts = parsingJson(many(maxExactNumbers))
    let count = 0
    for (let part = parts.next(); ; part = parts.next(), count++) {
      if (part.done !== true) continue
      expect(part.value.kind).toBe("json")
      break
    }
    expect(count).toBeGreaterThan(20)
    expect(parseJson(many(maxExactNumbers + 1)).kind).toBe("digits")
  })
})
