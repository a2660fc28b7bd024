import { Result } from "effect"
import { maxValues } from "@tidegate/model/BodyLimits"
import {
  answerPattern,
  codePattern,
  type Narrowing,
  type RecordFilter,
  type RecordFilters
} from "@tidegate/model/RecordFilter"
import { fieldError, type FieldErrors } from "./Input.ts"

/* The caller's filters of records, read by their declaration, from a query or a body in the same way. */

/** The values of a filter's name: a query's texts are single or repeated, and its flags are parsed already. */
export interface Written {
  readonly [name: string]: unknown
}

type Read<A> = Result.Result<A | undefined, FieldErrors>

/** Values that are repeated or separated by commas. */
export const separated = (lists: ReadonlyArray<string | ReadonlyArray<string> | undefined>): ReadonlyArray<string> => [
  ...new Set(
    lists
      .flat()
      .flatMap((text) => text?.split(",") ?? [])
      .map((text) => text.trim())
      .filter((text) => text !== "")
  )
]

const isBlank = (value: unknown): boolean => value === undefined || (typeof value === "string" && value.trim() === "")

/** A value that has several names. Different values under two names are an error: one of them would be lost silently. */
const underOneName = (written: Written, names: ReadonlyArray<string>): Read<string | boolean> => {
  const [first, ...others] = names.filter((name) => !isBlank(written[name]))
  if (first === undefined) return Result.succeed(undefined)
  const said = (name: string) => {
    const value = written[name]
    return typeof value === "string" ? value.trim() : (value as boolean)
  }
  const other = others.find((name) => said(name) !== said(first))
  return other === undefined
    ? Result.succeed(said(first))
    : fieldError(other, `is an alias of ${first}, which has another value`)
}

const isRange = (text: string): boolean => {
  const [from = "", to = from] = text.split("-")
  return answerPattern.test(text) && from <= to
}

const severalOf = (
  name: string,
  declared: RecordFilter,
  given: ReadonlyArray<string>
): Result.Result<ReadonlyArray<string>, FieldErrors> => {
  if (given.length > maxValues) return fieldError(name, `takes at most ${maxValues} values`)
  switch (declared.kind) {
    case "words": {
      const { maxWords, words } = declared
      const isUpper = words.every((word) => word === word.toUpperCase())
      const found = [...new Set(given.map((word) => (isUpper ? word.toUpperCase() : word.toLowerCase())))]
      if (!found.every((word) => words.includes(word))) return fieldError(name, `must be of ${words.join(", ")}`)
      if (maxWords === 1 && found.length > 1) return fieldError(name, `must be one of ${words.join(", ")}`)
      return Result.succeed(found)
    }
    case "codes": {
      const found = [...new Set(given.map((code) => code.toUpperCase()))]
      return found.every((code) => codePattern.test(code))
        ? Result.succeed(found)
        : fieldError(name, "must be codes, as TIMEOUT")
    }
    case "answers":
      return given.every(isRange)
        ? Result.succeed(given)
        : fieldError(name, "must be statuses of answers, as 500, or ranges of them, as 500-599")
    default:
      return Result.succeed(given)
  }
}

const readOne = (
  name: string,
  declared: RecordFilter,
  written: Written
): Read<boolean | string | ReadonlyArray<string>> => {
  const names = [name, ...(declared.aliases ?? [])]
  if (declared.kind === "flag") return underOneName(written, names)
  if (declared.kind === "text") return underOneName(written, names)
  if (declared.kind === "word") {
    return Result.flatMap(underOneName(written, names), (word) =>
      word === undefined || declared.words.includes(String(word))
        ? Result.succeed(word)
        : fieldError(name, `must be one of ${declared.words.join(", ")}`)
    )
  }
  const given = separated(names.map((one) => written[one] as string | ReadonlyArray<string> | undefined))
  return Result.map(severalOf(name, declared, given), (found) => (found.length === 0 ? undefined : found))
}

/** The written filters, under their own names; or their faults. */
export const readNarrowing = <Filters extends RecordFilters>(
  filters: Filters,
  written: Written
): Result.Result<Narrowing<Filters>, FieldErrors> => {
  const faults: Array<FieldErrors[number]> = []
  const read: Record<string, unknown> = {}
  for (const [name, declared] of Object.entries(filters)) {
    const value = readOne(name, declared, written)
    if (Result.isFailure(value)) faults.push(...value.failure)
    else if (value.success !== undefined) read[name] = value.success
  }
  return faults.length > 0 ? Result.fail(faults) : Result.succeed(read as Narrowing<Filters>)
}
