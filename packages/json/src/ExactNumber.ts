/**
 * JSON numbers that a JavaScript number cannot hold: `12345678901234567891`, `0.1000000000000000055`, `1e400`. All other numbers stay
 * JavaScript numbers (plain numbers), and mean the decimal that they are written as. So a plain number never equals an exact one, and two numbers
 * are equal if their decimals are: `1.0` is `1`, and `1e2` is `100`.
 */

/** Limits of a number: its length in characters, and the largest exponent. All storage and arithmetic supports numbers up to this. */
export const longestNumber = 1_024
export const largestExponent = 9_999
/** Maximum number of them in one text: reading one costs half a microsecond, and writing one costs as much. */
export const maxExactNumbers = 50_000

/** Not in TypeScript's own types, and not available before Node 21. */
const { rawJSON } = JSON as { readonly rawJSON?: (this: void, text: string) => number }

/**
 * One such number. `JSON.stringify` and `String` write its original digits, with the exponent in JavaScript's form. Code that walks a value
 * has to test for it before it tests for objects: it has no members.
 */
export class ExactNumber {
  readonly #text: string
  #decimal: Decimal | undefined

  /** `text`: a number in JSON syntax. `readNumber` decides whether this class is needed. */
  constructor(text: string) {
    this.#text = text
  }

  get decimal(): Decimal {
    return (this.#decimal ??= decimalOf(this.#text))
  }

  toString(): string {
    return this.#text
  }

  /** Typed as the number that it represents: `JSON.stringify` writes its digits. */
  toJSON(): number {
    // Without `rawJSON`, `writeJson` preserves the digits.
    return rawJSON?.(this.#text) ?? Number(this.#text)
  }
}

// Schema accepts an object as JSON only if its prototype chain has nothing but a root.
Object.setPrototypeOf(ExactNumber.prototype, null)

export const isExactNumber = (value: unknown): value is ExactNumber => value instanceof ExactNumber

/** Whether a value is a JSON number in either form. */
export const isJsonNumber = (value: unknown): value is number | ExactNumber =>
  typeof value === "number" || isExactNumber(value)

/** Whether a value is a JSON object, which has members. */
export const isJsonObject = (value: unknown): value is { readonly [name: PropertyKey]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value)

/** A decimal: its sign, its digits without leading and trailing zeros (none: zero), and how many of them precede the point. */
interface Decimal {
  readonly sign: -1 | 0 | 1
  readonly digits: string
  readonly point: number
}

const exponentIn = (text: string): number => Math.max(text.indexOf("e"), text.indexOf("E"))

/** Parses a decimal text of any form: `-1.50`, `.5`, `1E+3`. The cost is proportional to its length: an exponent is never expanded. */
const decimalOf = (text: string): Decimal => {
  const isNegative = text.startsWith("-")
  const from = isNegative || text.startsWith("+") ? 1 : 0
  const mark = exponentIn(text)
  const end = mark < 0 ? text.length : mark
  const dot = text.lastIndexOf(".", end - 1)
  const written = dot < 0 ? text.slice(from, end) : text.slice(from, dot) + text.slice(dot + 1, end)
  let first = 0
  while (first < written.length && written[first] === "0") first++
  let last = written.length
  while (last > first && written[last - 1] === "0") last--
  if (first === last) return { sign: 0, digits: "", point: 0 }
  const before = (dot < 0 ? end : dot) - from - first
  return {
    sign: isNegative ? -1 : 1,
    digits: written.slice(first, last),
    point: before + (mark < 0 ? 0 : Number(text.slice(mark + 1)))
  }
}

const compareDecimals = (a: Decimal, b: Decimal): number => {
  if (a.sign !== b.sign || a.sign === 0) return Math.sign(a.sign - b.sign)
  if (a.point !== b.point) return a.point < b.point ? -a.sign : a.sign
  return a.digits === b.digits ? 0 : a.digits < b.digits ? -a.sign : a.sign
}

const isSame = (a: Decimal, b: Decimal): boolean => a.sign === b.sign && a.point === b.point && a.digits === b.digits

/** A double preserves this many digits of any number without an exponent. */
const keptDigits = 15

/** No double needs more digits than this to be distinguished from all others. */
const maxDigits = 17

/** Whether a number has more digits than that, without leading and trailing zeros. */
const hasMoreDigits = (text: string): boolean => {
  let seen = 0
  let zeros = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 48) {
      if (seen > 0) zeros++
    } else if (code > 48 && code <= 57) {
      seen += zeros + 1
      zeros = 0
      if (seen > maxDigits) return true
    } else if (code === 101 || code === 69) return false
  }
  return false
}

/** Writes the exponent in one form: `1E400` is `1e+400`. */
const exact = (text: string): ExactNumber =>
  new ExactNumber(
    exponentIn(text) < 0 ? text : text.replace(/[eE]([+-]?)/, (_, sign: string) => `e${sign === "" ? "+" : sign}`)
  )

/** The number of a decimal text: a plain one if that has the same value. */
export const readNumber = (text: string): number | ExactNumber => {
  if (hasMoreDigits(text)) return exact(text)
  const plain = Number(text)
  if (text.length <= keptDigits && exponentIn(text) < 0) return plain
  if (String(plain) === text) return plain
  return Number.isFinite(plain) && isSame(decimalOf(String(plain)), decimalOf(text)) ? plain : exact(text)
}

/** Whether a number has no fraction. */
export const isWholeNumber = (value: number | ExactNumber): boolean =>
  typeof value === "number" ? Number.isInteger(value) : value.decimal.point >= value.decimal.digits.length

/** The sign of `a - b`, by their decimals. */
export const compareNumbers = (a: number | ExactNumber, b: number | ExactNumber): number =>
  typeof a === "number" && typeof b === "number"
    ? a < b
      ? -1
      : a > b
        ? 1
        : a === b
          ? 0
          : Number.NaN
    : compareDecimals(ofEither(a), ofEither(b))

const ofEither = (value: number | ExactNumber): Decimal =>
  typeof value === "number" ? decimalOf(String(value)) : value.decimal

/** Whether both are the same number. A plain and an exact number never are. */
export const areEqualNumbers = (a: number | ExactNumber, b: number | ExactNumber): boolean =>
  typeof a === "number" || typeof b === "number" ? a === b : isSame(a.decimal, b.decimal)

/** Whether two JSON values are equal; the order of members does not matter. A comparison by members alone would treat any two exact numbers as equal. */
export const isSameJson = (a: unknown, b: unknown): boolean => {
  if (isJsonNumber(a) || isJsonNumber(b)) return isJsonNumber(a) && isJsonNumber(b) && areEqualNumbers(a, b)
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((one, index) => isSameJson(one, b[index]))
    )
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return a === b
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isSameJson(a[name], b[name]))
  )
}

/** The sum, by decimals: 0.1 plus 0.2 is 0.3. Null if it has more digits than a number may have. */
export const addNumbers = (a: number | ExactNumber, b: number | ExactNumber): number | ExactNumber | null => {
  if (Number.isSafeInteger(a) && Number.isSafeInteger(b)) {
    const sum = Number(a) + Number(b)
    if (Number.isSafeInteger(sum)) return sum
  }
  const [left, right] = [ofEither(a), ofEither(b)]
  const behind = Math.max(left.digits.length - left.point, right.digits.length - right.point, 0)
  // A carry, a sign and a point may be added.
  if (Math.max(left.point, right.point, 1) + behind > longestNumber - 3) return null
  const scaled = ({ digits, point, sign }: Decimal): bigint =>
    BigInt(sign) * BigInt(digits.padEnd(point + behind, "0") || "0")
  const sum = scaled(left) + scaled(right)
  const digits = String(sum < 0n ? -sum : sum).padStart(behind + 1, "0")
  const whole = digits.slice(0, digits.length - behind)
  const fraction = digits.slice(digits.length - behind).replace(/0+$/, "")
  return readNumber(`${sum < 0n ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`)
}

/** The same text for all spellings of a number's value: its digits, and the position of the point. */
export const canonicalNumber = (value: number | ExactNumber): string => {
  if (typeof value === "number") return String(value === 0 ? 0 : value)
  const { digits, point, sign } = value.decimal
  return `${sign < 0 ? "-" : ""}${digits}e${point - digits.length}`
}

/** The value in plain digits, without an exponent; null if these exceed the limit of a number. */
export const plainNumber = (value: ExactNumber): string | null => {
  const { digits, point, sign } = value.decimal
  const minus = sign < 0 ? "-" : ""
  if (Math.abs(point) > longestNumber) return null
  if (point <= 0) return `${minus}0.${"0".repeat(-point)}${digits}`
  if (point >= digits.length) return minus + digits.padEnd(point, "0")
  return `${minus}${digits.slice(0, point)}.${digits.slice(point)}`
}
