import { SchemaIssue } from "effect"
import type { FieldError } from "@tidegate/model/GatewayError"

const standard = SchemaIssue.makeFormatterStandardSchemaV1()

/** Converts a schema's message to a sentence that follows the parameter's name. */
const sentences: ReadonlyArray<readonly [said: RegExp, sentence: (found: ReadonlyArray<string>) => string]> = [
  [/^Expected (?:a string representing a finite number|an integer)$/, () => "must be a whole number"],
  [/^Expected a value greater than or equal to (\S+)$/, ([least]) => `must be at least ${least}`],
  [/^Expected a value less than or equal to (\S+)$/, ([most]) => `must be at most ${most}`],
  [/^Expected a value with a length of at most (\d+)$/, ([most]) => `is too long: at most ${most}`],
  [
    /^Expected ("[^"]*"(?: \| "[^"]*")*)$/,
    ([words = ""]) => `must be ${words.replaceAll('"', "").replaceAll(" | ", " or ")}`
  ],
  // All parameters are text: anything else means that it was given several times.
  [/^Expected string$/, () => "must be given once"],
  [/^Expected (.*)$/s, ([what]) => `must be ${what}`]
]

const toSentence = (message: string): string => {
  for (const [said, sentence] of sentences) {
    const found = said.exec(message)
    if (found !== null) return sentence(found.slice(1))
  }
  return message
}

/** The wrong parameters with the reasons. Never with the value: it may be a secret. */
export const fieldFaults = (issue: SchemaIssue.Issue): ReadonlyArray<FieldError> =>
  standard(issue).issues.map(({ message, path }) => ({
    path: (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join("."),
    message: toSentence(message)
  }))
