import type { Decimal } from "decimal.js"
import * as Characters from "@tidegate/model/Characters"
import { Fault } from "../engine/Fault.ts"
import { decimal } from "../engine/Libraries.ts"
import { unitOf } from "../text/Search.ts"
import { divided, power, type Scope, type Term } from "./Arithmetic.ts"
import { formulaLimits } from "./Tokens.ts"
import { domain, isFault, isNumber, numeric, ofDouble, textual, truth, type Value, wrongType } from "./Values.ts"

/** The functions of the formula language. */

interface Function {
  readonly least: number
  readonly most: number
  /** The term of a call, from the terms of its arguments: `IF` evaluates only one of them. */
  readonly of: (given: ReadonlyArray<Term>) => Term
}

const many = formulaLimits.arguments

/** A function of evaluated arguments. */
const plain = (least: number, most: number, run: (values: ReadonlyArray<Value>, scope: Scope) => Value): Function => ({
  least,
  most,
  of: (given) => (scope) =>
    run(
      given.map((term) => term(scope)),
      scope
    )
})

const numbers = (least: number, most: number, run: (values: ReadonlyArray<Decimal>, scope: Scope) => Value): Function =>
  plain(least, most, (values, scope) => run(values.map(numeric), scope))

const ofNumber = (run: (value: Decimal, scope: Scope) => Value): Function =>
  numbers(1, 1, ([value], scope) => run(value!, scope))

/** A function that is computed with doubles; throws a `Fault` if it has no value. */
const double = (run: (value: number) => number): Function => ofNumber((value) => ofDouble(run(value.toNumber())))

const zero = () => new (decimal())(0)
const one = () => new (decimal())(1)

/** The number of decimal places for ROUND and similar functions. */
const placesOf = (value: Decimal | undefined): number => {
  const places = value?.trunc().toNumber() ?? 0
  if (Math.abs(places) > 100) throw domain("there are at most 100 decimal places")
  return places
}

const rounded = (rounding: Decimal.Rounding): Function =>
  numbers(1, 2, ([value, places]) => {
    const scale = new (decimal())(10).pow(placesOf(places))
    return value!.times(scale).toDecimalPlaces(0, rounding).div(scale)
  })

const away = (value: Decimal): Decimal => value.toDecimalPlaces(0, 0)

/** Rounds away from zero to the next even or odd number: EVEN and ODD. */
const parity = (odd: boolean): Function =>
  ofNumber((value) => {
    const whole = away(value)
    const isOdd = !whole.mod(2).isZero()
    if (isOdd === odd) return whole
    return whole.plus(value.isNegative() && !value.isZero() ? -1 : 1)
  })

const multiple = (rounding: (quotient: Decimal) => Decimal): Function =>
  numbers(1, 2, ([value, significance]) => {
    const by = significance ?? one()
    if (by.isZero()) return zero()
    if (value!.isPositive() && !value!.isZero() && by.isNegative())
      throw domain("the significance is negative, and the number is not")
    return rounding(value!.div(by)).times(by)
  })

const whole = (value: Decimal): Decimal => {
  const truncated = value.trunc()
  if (truncated.isNegative() && !truncated.isZero()) throw domain("a number from 0 is taken here")
  if (truncated.greaterThan(Number.MAX_SAFE_INTEGER)) throw domain("the number is too large")
  return truncated
}

/** The remainder of a division, with the divisor's sign. Computed with all digits, because the quotient would be rounded. */
const modulo = (value: Decimal, by: Decimal): Decimal => {
  divided(value, by)
  const left = value.mod(by)
  return left.isZero() || left.isNegative() === by.isNegative() ? left : left.plus(by)
}

const gcd = (a: Decimal, b: Decimal): Decimal => {
  let [x, y] = [a, b]
  while (!y.isZero()) [x, y] = [y, x.mod(y)]
  return x
}

const factorial = (most: number, by: number): Function =>
  ofNumber((value, scope) => {
    const last = whole(value).toNumber()
    if (last > most)
      throw new Fault("FORMATTER_FORMULA_LIMIT", `factorials are of at most ${most}`, { limit: most, actual: last })
    scope.step(last / 4)
    let product = one()
    for (let factor = last; factor > 1; factor -= by) product = product.times(factor)
    return product
  })

const sum = (values: ReadonlyArray<Decimal>): Decimal => values.reduce((total, value) => total.plus(value), zero())

const median = (values: ReadonlyArray<Decimal>): Decimal => {
  const sorted = values.toSorted((a, b) => a.comparedTo(b))
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : sorted[middle - 1]!.plus(sorted[middle]!).div(2)
}

const mode = (values: ReadonlyArray<Decimal>): Decimal => {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value.toString(), (counts.get(value.toString()) ?? 0) + 1)
  const most = Math.max(...counts.values())
  if (most < 2) throw domain("no number is there twice")
  return values.find((value) => counts.get(value.toString()) === most)!
}

const logarithm = (value: Decimal, base: number | null): Value => {
  if (!value.isPositive() || value.isZero()) throw domain("logarithms are of numbers above 0")
  const number = value.toNumber()
  if (base === 10) return ofDouble(Math.log10(number))
  if (base === 2) return ofDouble(Math.log2(number))
  if (base === null) return ofDouble(Math.log(number))
  if (base <= 0 || base === 1) throw domain("a base is above 0, and not 1")
  return ofDouble(Math.log(number) / Math.log(base))
}

const test = (holds: (value: Value) => boolean): Function => plain(1, 1, ([value]) => holds(value ?? null))
const isBlank = (value: Value): boolean => value === null || value === ""

const text = (least: number, most: number, run: (text: string, values: ReadonlyArray<Value>) => string): Function =>
  plain(least, most, ([value, ...rest], scope) => {
    const given = textual(value ?? null)
    scope.step(given.length / 200)
    return run(given, rest)
  })

const countOf = (value: Value | undefined, preset: number): number => {
  const count = value === undefined ? preset : numeric(value).trunc().toNumber()
  if (count < 0) throw domain("a number from 0 is taken here")
  return Math.min(count, formulaLimits.text)
}

const shortCircuit = (until: boolean): Function => ({
  least: 1,
  most: many,
  of: (given) => (scope) => given.some((term) => truth(term(scope)) === until) === until
})

const random = (scope: Scope): number => {
  scope.call.warn("RANDOM_SEEDED", "the number is drawn from the run's seed", "formula")
  return scope.call.random()
}

export const functions: ReadonlyMap<string, Function> = new Map<string, Function>(
  Object.entries({
    VALUE: plain(1, 1, ([value]) => {
      if (typeof value === "boolean") throw wrongType(value, "a text that is a number")
      return numeric(value ?? null)
    }),
    ABS: ofNumber((value) => value.abs()),
    SIGN: ofNumber((value) => new (decimal())(value.isZero() ? 0 : value.isNegative() ? -1 : 1)),
    GCD: numbers(1, many, (values) => values.map(whole).reduce(gcd)),
    LCM: numbers(1, many, (values) =>
      values.map(whole).reduce((a, b) => (a.isZero() || b.isZero() ? zero() : a.times(b).div(gcd(a, b))))
    ),
    SUM: numbers(1, many, sum),
    PRODUCT: numbers(1, many, (values) => values.reduce((product, value) => product.times(value))),
    SQRT: ofNumber((value) => {
      if (value.isNegative() && !value.isZero()) throw domain("there is no root of a negative number")
      return value.sqrt()
    }),
    POW: plain(2, 2, ([base, exponent], scope) => power(base!, exponent!, scope)),
    POWER: plain(2, 2, ([base, exponent], scope) => power(base!, exponent!, scope)),
    QUOTIENT: plain(2, 2, ([left, right]) => (divided(left!, right!) as Decimal).trunc()),
    MOD: numbers(2, 2, ([value, by]) => modulo(value!, by!)),
    CEILING: multiple((quotient) => quotient.ceil()),
    FLOOR: multiple((quotient) => quotient.floor()),
    EVEN: parity(false),
    ODD: parity(true),
    INT: ofNumber((value) => value.floor()),
    ROUND: rounded(4),
    ROUNDDOWN: rounded(1),
    ROUNDUP: rounded(0),
    TRUNC: rounded(1),
    RAND: plain(0, 0, (_, scope) => ofDouble(random(scope))),
    RANDBETWEEN: numbers(2, 2, ([low, high], scope) => {
      const [least, most] = [low!.ceil(), high!.floor()]
      if (most.lessThan(least)) throw domain("the first number is above the second")
      return most.minus(least).plus(1).times(random(scope)).floor().plus(least)
    }),
    MAX: numbers(1, many, (values) => values.reduce((a, b) => (b.greaterThan(a) ? b : a))),
    MIN: numbers(1, many, (values) => values.reduce((a, b) => (b.lessThan(a) ? b : a))),
    PI: plain(0, 0, () => ofDouble(Math.PI)),
    SQRTPI: double((value) => Math.sqrt(value * Math.PI)),
    DEGREES: double((value) => (value * 180) / Math.PI),
    RADIANS: double((value) => (value * Math.PI) / 180),
    COS: double(Math.cos),
    ACOS: double(Math.acos),
    COSH: double(Math.cosh),
    ACOSH: double(Math.acosh),
    SIN: double(Math.sin),
    ASIN: double(Math.asin),
    SINH: double(Math.sinh),
    ASINH: double(Math.asinh),
    TAN: double(Math.tan),
    ATAN: double(Math.atan),
    ATAN2: numbers(2, 2, ([x, y]) => {
      if (x!.isZero() && y!.isZero())
        throw new Fault("FORMATTER_DIVISION_BY_ZERO", "a division by zero", { field: "formula" })
      return ofDouble(Math.atan2(y!.toNumber(), x!.toNumber()))
    }),
    TANH: double(Math.tanh),
    ATANH: double(Math.atanh),
    EXP: double(Math.exp),
    LN: ofNumber((value) => logarithm(value, null)),
    LOG: numbers(1, 2, ([value, base]) => logarithm(value!, base?.toNumber() ?? 10)),
    LOG10: ofNumber((value) => logarithm(value, 10)),
    FACT: factorial(170, 1),
    FACTDOUBLE: factorial(288, 2),
    AVERAGE: numbers(1, many, (values) => sum(values).div(values.length)),
    MEDIAN: numbers(1, many, median),
    MODE: numbers(1, many, mode),
    GEOMEAN: numbers(1, many, (values) => {
      if (values.some((value) => !value.isPositive() || value.isZero()))
        throw domain("a geometric mean is of numbers above 0")
      return ofDouble(Math.exp(values.reduce((total, value) => total + Math.log(value.toNumber()), 0) / values.length))
    }),
    IF: {
      least: 2,
      most: 3,
      of:
        ([condition, then, otherwise]) =>
        (scope) =>
          truth(condition!(scope)) ? then!(scope) : otherwise === undefined ? false : otherwise(scope)
    },
    IFERROR: {
      least: 2,
      most: 2,
      of:
        ([value, otherwise]) =>
        (scope) => {
          try {
            return value!(scope)
          } catch (cause) {
            const codes = ["FORMATTER_DIVISION_BY_ZERO", "FORMATTER_FORMULA_TYPE", "FORMATTER_FORMULA_DOMAIN"]
            if (!isFault(cause, codes)) throw cause
            return otherwise!(scope)
          }
        }
    },
    AND: shortCircuit(false),
    OR: shortCircuit(true),
    NOT: plain(1, 1, ([value]) => !truth(value ?? null)),
    TRUE: plain(0, 0, () => true),
    FALSE: plain(0, 0, () => false),
    ISBLANK: test(isBlank),
    ISLOGICAL: test((value) => typeof value === "boolean"),
    ISTEXT: test((value) => typeof value === "string"),
    ISNONTEXT: test((value) => typeof value !== "string"),
    ISNUMBER: test(isNumber),
    ISODD: ofNumber((value) => !value.trunc().mod(2).isZero()),
    ISEVEN: ofNumber((value) => value.trunc().mod(2).isZero()),
    COUNT: plain(1, many, (values) => ofDouble(values.filter((value) => isNumber(value)).length)),
    LEN: plain(1, 1, ([value], scope) => {
      const given = textual(value ?? null)
      scope.step(given.length / 200)
      return ofDouble(Characters.count(given))
    }),
    CONCAT: plain(1, many, (values, scope) => {
      let joined = ""
      for (const value of values) {
        joined += textual(value)
        if (joined.length > formulaLimits.text) {
          throw new Fault("FORMATTER_FORMULA_LIMIT", "a text becomes too long", {
            limit: formulaLimits.text,
            actual: joined.length
          })
        }
      }
      scope.step(joined.length / 1000)
      return joined
    }),
    LOWER: text(1, 1, (given) => given.toLowerCase()),
    UPPER: text(1, 1, (given) => given.toUpperCase()),
    LEFT: text(1, 2, (given, [count]) => given.slice(0, unitOf(given, countOf(count, 1)))),
    RIGHT: text(1, 2, (given, [count]) =>
      given.slice(unitOf(given, Math.max(Characters.count(given) - countOf(count, 1), 0)))
    ),
    MID: text(3, 3, (given, [start, count]) => {
      const from = countOf(start, 1)
      if (from < 1) throw domain("characters are counted from 1")
      return given.slice(unitOf(given, from - 1), unitOf(given, from - 1 + countOf(count, 1)))
    })
  })
)
