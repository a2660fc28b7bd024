import { Fault } from "../engine/Fault.ts"
import * as Characters from "@tidegate/model/Characters"
import { decimal } from "../engine/Libraries.ts"
import { memo } from "../engine/Memo.ts"
import type { Call } from "../engine/Operation.ts"
import { boundedText, divided, finite, power, type Scope, type Term } from "./Arithmetic.ts"
import { functions } from "./Functions.ts"
import { beyond, formulaLimits, syntax, type Token, tokensOf } from "./Tokens.ts"
import { compare, domain, isNumber, numeric, textual, type Value, valueOf } from "./Values.ts"

/**
 * The formula language: that of spreadsheets, without cells. A formula is compiled once to closures. Variables are looked up and never
 * inserted into the text, so data cannot change a formula.
 */

/** Precedence of binary operators. */
const levels: Readonly<Record<string, number>> = {
  "=": 1,
  "<>": 1,
  "<": 1,
  "<=": 1,
  ">": 1,
  ">=": 1,
  "&": 2,
  "+": 3,
  "-": 3,
  "*": 4,
  "/": 4,
  "^": 5
}

const comparisons: Readonly<Record<string, (sign: number) => boolean>> = {
  "=": (sign) => sign === 0,
  "<>": (sign) => sign !== 0,
  "<": (sign) => sign < 0,
  "<=": (sign) => sign <= 0,
  ">": (sign) => sign > 0,
  ">=": (sign) => sign >= 0
}

const binary = (operator: string, left: Term, right: Term): Term => {
  const holds = comparisons[operator]
  if (holds !== undefined) {
    return stepped((scope) => {
      const [a, b] = [left(scope), right(scope)]
      if (typeof a === "string" && typeof b === "string") scope.step((a.length + b.length) / 1000)
      return holds(compare(a, b))
    })
  }
  if (operator === "&") return stepped((scope) => boundedText(textual(left(scope)) + textual(right(scope)), scope))
  if (operator === "+") return stepped((scope) => finite(numeric(left(scope)).plus(numeric(right(scope)))))
  if (operator === "-") return stepped((scope) => finite(numeric(left(scope)).minus(numeric(right(scope)))))
  if (operator === "*") return stepped((scope) => finite(numeric(left(scope)).times(numeric(right(scope)))))
  if (operator === "/") return stepped((scope) => divided(left(scope), right(scope)))
  return stepped((scope) => power(left(scope), right(scope), scope))
}

const stepped =
  (term: Term): Term =>
  (scope) => {
    scope.step(1)
    return term(scope)
  }

/** A Pratt parser, based on the precedence of operators. */
class Parser {
  readonly #tokens: ReadonlyArray<Token>
  #at = 0
  #depth = 0
  /** The argument separator: comma or semicolon, whichever was used first. */
  #separator: string | null = null
  constructor(formula: string) {
    this.#tokens = tokensOf(formula)
  }

  parse(): Term {
    if (this.#next().kind === "end") throw syntax("the formula is empty", 0)
    const term = this.#expression(0)
    const rest = this.#next()
    if (rest.kind !== "end") throw syntax(`${JSON.stringify(rest.text)} is not expected here`, rest.position)
    return term
  }

  #next(): Token {
    return this.#tokens[this.#at]!
  }

  #take(): Token {
    const token = this.#next()
    if (token.kind !== "end") this.#at++
    return token
  }

  #is(text: string): boolean {
    const { kind, text: own } = this.#next()
    return kind === "operator" && own === text
  }

  #expression(level: number): Term {
    if (++this.#depth > formulaLimits.depth) throw beyond("is nested too deep", formulaLimits.depth, this.#depth)
    let left = this.#unary()
    for (;;) {
      if (this.#is("%")) {
        this.#take()
        const inner = left
        left = stepped((scope) => numeric(inner(scope)).div(100))
        continue
      }
      const { kind, text } = this.#next()
      const binds = kind === "operator" ? levels[text] : undefined
      if (binds === undefined || binds <= level) break
      this.#take()
      left = binary(text, left, this.#expression(binds))
    }
    this.#depth--
    return left
  }

  #unary(): Term {
    let negative = false
    let isSigned = false
    while (this.#is("-") || this.#is("+")) {
      negative = (this.#take().text === "-") !== negative
      isSigned = true
    }
    const term = this.#primary()
    if (!isSigned) return term
    return stepped((scope) => (negative ? numeric(term(scope)).negated() : numeric(term(scope))))
  }

  #primary(): Term {
    const token = this.#take()
    if (token.kind === "number") {
      const value = new (decimal())(token.text)
      return () => value
    }
    if (token.kind === "text") return () => token.text
    if (token.kind === "operator" && token.text === "(") {
      const inner = this.#expression(0)
      this.#close(token)
      return inner
    }
    if (token.kind === "name") {
      if (this.#is("(")) return this.#calling(token)
      const name = token.text
      if (/^true$/i.test(name)) return () => true
      if (/^false$/i.test(name)) return () => false
      return stepped((scope) => scope.variable(name))
    }
    throw syntax(
      token.kind === "end" ? "the formula ends too early" : `${JSON.stringify(token.text)} is not expected here`,
      token.position
    )
  }

  #close(open: Token): void {
    if (this.#is(")")) this.#take()
    else if (this.#next().kind === "end") throw syntax("a parenthesis is not closed", open.position)
    else throw syntax(`${JSON.stringify(this.#next().text)} is not expected here`, this.#next().position)
  }

  #calling({ position, text }: Token): Term {
    const name = text.toUpperCase()
    const called = functions.get(name)
    if (called === undefined) {
      throw new Fault("FORMATTER_FORMULA_UNKNOWN_FUNCTION", `there is no function ${name.slice(0, 40)}`, {
        field: "formula",
        position
      })
    }
    const open = this.#take()
    const given: Array<Term> = []
    if (!this.#is(")")) {
      for (;;) {
        given.push(this.#expression(0))
        if (!this.#is(",") && !this.#is(";")) break
        const separator = this.#take()
        this.#separator ??= separator.text
        if (separator.text !== this.#separator)
          throw syntax("arguments are separated by commas or by semicolons, not by both", separator.position)
      }
    }
    this.#close(open)
    const { least, most, of } = called
    if (given.length < least || given.length > most) {
      const takes = least === most ? `${least}` : `${least} to ${most}`
      throw new Fault("FORMATTER_FORMULA_ARGUMENTS", `${name} takes ${takes} arguments, not ${given.length}`, {
        field: "formula",
        position
      })
    }
    return stepped(of(given))
  }
}

const compiled = memo(200, (formula): Term | Fault => {
  try {
    return new Parser(formula).parse()
  } catch (cause) {
    if (cause instanceof Fault) return cause
    throw cause
  }
})

/** Compiles a formula. Throws a `Fault` if it is invalid. */
export const compileFormula = (formula: string): Term => {
  const most = formulaLimits.characters
  if (!Characters.isUpTo(formula, most)) throw beyond("has too many characters", most, Characters.count(formula))
  const term = compiled(formula)
  if (term instanceof Fault) throw term
  return term
}

/** Names of templates are case-sensitive. */
const keyOf = (name: string): string => (name.startsWith("{{") ? name : name.toLowerCase())

/** Evaluates a formula with variables, whose names ignore case. */
export const evaluate = (formula: string, variables: ReadonlyArray<readonly [string, unknown]>, call: Call): Value => {
  const term = compileFormula(formula)
  const named = new Map(variables.map(([name, value]) => [keyOf(name), value]))
  let steps = 0
  const scope: Scope = {
    call,
    variable: (name) => {
      const key = keyOf(name)
      if (!named.has(key)) {
        throw new Fault("FORMATTER_FORMULA_UNKNOWN_VARIABLE", `there is no variable ${name.slice(0, 80)}`, {
          field: "formula"
        })
      }
      return valueOf(named.get(key), name)
    },
    step: (taken) => {
      steps += taken
      if (steps > formulaLimits.steps) {
        throw new Fault("FORMATTER_FORMULA_LIMIT", "the formula takes too many steps", { limit: formulaLimits.steps })
      }
    }
  }
  const value = term(scope)
  call.spend(steps * 2)
  if (isNumber(value) && !value.isFinite()) throw domain("the number is too large")
  return value
}
