import * as formulajs from "@formulajs/formulajs"
import { Context, Random } from "effect"
import { describe, expect, it } from "vitest"
import { functions } from "../src/formula/Functions.ts"
import { outcomeOf } from "./Run.ts"

/** The functions of the formula language beside those of a library that was written for spreadsheets by others. */

const valueOf = (formula: string, variables: object = {}) => {
  const { failed, output } = outcomeOf("number.formula", { formula, variables })
  return failed ?? output?.["result"]
}

const random = Context.get(Context.empty(), Random.Random)
const between = (least: number, most: number): number => {
  const drawn = least + random.nextDoubleUnsafe() * (most - least)
  return Math.round(drawn * 1000) / 1000
}
const whole = (least: number, most: number): number => Math.floor(between(least, most + 1))

type Draw = () => ReadonlyArray<number>
const several =
  (least: number, most: number): Draw =>
  () =>
    Array.from({ length: whole(1, 8) }, () => between(least, most))
const one =
  (least: number, most: number): Draw =>
  () => [between(least, most)]

/** What each function is tried with. Not there: TRUNC and ATAN2, in which the library is wrong (by a double, and by its order). */
const drawn: Readonly<Record<string, Draw>> = {
  ABS: one(-100, 100),
  SIGN: one(-5, 5),
  SUM: several(-100, 100),
  PRODUCT: several(-10, 10),
  SQRT: one(0, 1000),
  POWER: () => [between(0.1, 10), whole(-5, 5)],
  QUOTIENT: () => [between(-100, 100), between(1, 10)],
  MOD: () => [between(-100, 100), whole(1, 10)],
  EVEN: one(-100, 100),
  INT: one(-100, 100),
  ODD: one(-100, 100),
  ROUND: () => [between(-100, 100), whole(0, 2)],
  ROUNDDOWN: () => [between(-100, 100), whole(0, 2)],
  ROUNDUP: () => [between(-100, 100), whole(0, 2)],
  MAX: several(-100, 100),
  MIN: several(-100, 100),
  SQRTPI: one(0, 100),
  DEGREES: one(-10, 10),
  RADIANS: one(-360, 360),
  COS: one(-10, 10),
  ACOS: one(-1, 1),
  COSH: one(-5, 5),
  ACOSH: one(1, 100),
  SIN: one(-10, 10),
  ASIN: one(-1, 1),
  SINH: one(-5, 5),
  ASINH: one(-100, 100),
  TAN: one(-1, 1),
  ATAN: one(-100, 100),
  TANH: one(-5, 5),
  ATANH: one(-0.9, 0.9),
  EXP: one(-10, 10),
  LN: one(0.1, 1000),
  LOG: () => [between(0.1, 1000), between(2, 10)],
  LOG10: one(0.1, 1000),
  FACT: () => [whole(0, 17)],
  FACTDOUBLE: () => [whole(0, 17)],
  GCD: () => [whole(0, 1000), whole(1, 1000)],
  LCM: () => [whole(1, 100), whole(1, 100)],
  AVERAGE: several(-100, 100),
  MEDIAN: several(-100, 100),
  GEOMEAN: several(0.1, 100),
  CEILING: () => [between(-100, 100), whole(1, 10)],
  FLOOR: () => [between(1, 100), whole(1, 10)]
}

const theirs = formulajs as unknown as Readonly<Record<string, (...args: ReadonlyArray<number>) => unknown>>

describe("Formula functions", () => {
  it.each(Object.entries(drawn))("Formula function %s agrees with the reference library", (name, draw) => {
    for (let times = 0; times < 40; times++) {
      const given = draw()
      const [own, other] = [valueOf(`${name}(${given.join(",")})`), theirs[name]!(...given)]
      expect(own, `${name}(${given.join(",")})`).toBeTypeOf("number")
      const [a, b] = [Number(own), Number(other)]
      expect(Math.abs(a - b), `${name}(${given.join(",")}): ${a}, not ${b}`).toBeLessThanOrEqual(
        Math.max(1e-9, Math.abs(b) * 1e-9)
      )
    }
  })
})

describe("Formula language", () => {
  it("Formula language has exactly the documented functions", () => {
    const documented =
      "VALUE ABS SIGN GCD LCM SUM PRODUCT SQRT POW POWER QUOTIENT MOD CEILING FLOOR EVEN INT ODD ROUND ROUNDDOWN ROUNDUP TRUNC RAND RANDBETWEEN MAX MIN PI SQRTPI DEGREES RADIANS COS ACOS COSH ACOSH SIN ASIN SINH ASINH TAN ATAN ATAN2 TANH ATANH EXP LN LOG LOG10 FACT FACTDOUBLE AVERAGE MEDIAN MODE GEOMEAN IF AND OR NOT TRUE FALSE ISBLANK ISLOGICAL ISTEXT ISNONTEXT ISNUMBER ISODD ISEVEN IFERROR COUNT LEN CONCAT LOWER UPPER LEFT RIGHT MID"
    expect([...functions.keys()].toSorted()).toEqual(documented.split(" ").toSorted())
  })

  it.each([
    ["IF(FALSE, 1/0, 2)", 2],
    ["AND(FALSE, 1/0)", false],
    ["OR(TRUE, 1/0)", true],
    ["NOT(1=2)", true],
    ["MODE(1,2,2,3)", 2],
    ["MOD(1e30,7)", 1],
    ["MOD(-1e30,7)", 6],
    ["MOD(7,-5)", -3],
    ["MODE(1,2)", "FORMATTER_FORMULA_DOMAIN"],
    ['COUNT(1,"a",2)', 2],
    ['LEN("héllo")', 5],
    ['CONCAT("a",1,TRUE)', "a1TRUE"],
    ['LOWER("ABC") & UPPER("d")', "abcD"],
    ['LEFT("abc") & RIGHT("abc",2) & MID("abc",2,1)', "abcb"],
    ['VALUE("1,234.5")', 1234.5],
    ['VALUE("5%")', 0.05],
    ['VALUE(" 12.5 % ")', 0.125],
    ['"50%"*2', 1],
    ['VALUE("%")', "FORMATTER_FORMULA_TYPE"],
    ['VALUE("x")', "FORMATTER_FORMULA_TYPE"],
    ['ISBLANK("")', true],
    ["ISNUMBER(1)", true],
    ['ISNUMBER("1")', false],
    ['ISTEXT("a")', true],
    ["ISNONTEXT(1)", true],
    ["ISLOGICAL(1=1)", true],
    ["ISODD(3)", true],
    ["ISEVEN(3)", false],
    ["TRUNC(-75.74,2)", -75.74],
    ["TRUNC(8.999)", 8],
    ["ATAN2(1,2)", 1.10714871779409],
    ["ROUND(PI(), 1)", 3.1],
    ['"Mon"="mon"', true],
    ["2<10", true],
    ['"2"<10', true],
    ["1<>1", false],
    ["50%*4", 2],
    ["-(1+2)*3", -9],
    ["1;2", "FORMATTER_FORMULA_SYNTAX"],
    ['"open', "FORMATTER_FORMULA_SYNTAX"],
    ["#", "FORMATTER_FORMULA_SYNTAX"],
    ["IF(1;2;3)", 2],
    [`${"(".repeat(31)}1${")".repeat(31)}`, 1],
    [`${"(".repeat(33)}1${")".repeat(33)}`, "FORMATTER_FORMULA_LIMIT"]
  ])("Formula %s has the value %j", (formula, value) => expect(valueOf(formula)).toBe(value))

  it("Formula length is counted in characters and not in UTF-16 units", () => {
    expect(valueOf(`"${"😀".repeat(4094)}"`)).toBe("😀".repeat(4094))
  })

  it.each([
    ["characters", `1${" ".repeat(4095)}+1`],
    ["characters", `"${"😀".repeat(4095)}"`],
    ["tokens", `1${"+1".repeat(250)}`],
    ["arguments", `SUM(${Array.from({ length: 101 }, () => "1").join(",")})`]
  ])("Formula is limited in its number of %s", (what, formula) => {
    expect(valueOf(formula)).toBe(what === "arguments" ? "FORMATTER_FORMULA_ARGUMENTS" : "FORMATTER_FORMULA_LIMIT")
  })
})
