import { Predicate, Result } from "effect"

/** Why a list of status expressions is invalid, and the index of the invalid one. */
export interface StatusExpressionInvalid {
  readonly index: number
  readonly message: string
}

type StatusTest = (status: number) => boolean

const single = /^\d{3}$/
const range = /^(\d{3})-(\d{3})$/
const comparison = /^(>=|<=|>|<)(\d{3})$/

const compileForm = (form: string): StatusTest | null => {
  if (single.test(form)) {
    const code = Number(form)
    return (status) => status === code
  }
  const [, from, to] = range.exec(form) ?? []
  if (from !== undefined && to !== undefined) {
    const low = Number(from)
    const high = Number(to)
    return low <= high ? (status) => status >= low && status <= high : null
  }
  const [, sign, text] = comparison.exec(form) ?? []
  const bound = Number(text)
  switch (sign) {
    case ">":
      return (status) => status > bound
    case ">=":
      return (status) => status >= bound
    case "<":
      return (status) => status < bound
    case "<=":
      return (status) => status <= bound
  }
  return null
}

/**
 * Compiles `response_status_codes`: the forms `404` (also as a number), `500-599`, `>400`, `>=500`, `<=499`, `<500`;
 * a leading `!` excludes the statuses. A status is covered if a form includes it and no `!` form excludes it; with
 * only `!` forms, every other status is covered.
 */
export const compileStatusExpressions = (
  expressions: ReadonlyArray<string | number>
): Result.Result<StatusTest, StatusExpressionInvalid> => {
  const included: Array<StatusTest> = []
  const excluded: Array<StatusTest> = []
  for (const [index, expression] of expressions.entries()) {
    const text = String(expression)
    const negated = Predicate.isString(expression) && text.startsWith("!")
    const test = compileForm(negated ? text.slice(1) : text)
    if (test === null) {
      return Result.fail({ index, message: "is not a status like 404, 500-599, >400, >=500, <=499 or !401" })
    }
    if (negated) excluded.push(test)
    else included.push(test)
  }
  return Result.succeed(
    (status) =>
      (included.length === 0 || included.some((test) => test(status))) && !excluded.some((test) => test(status))
  )
}
