import type { FieldError } from "./GatewayError.ts"
import * as Characters from "./Characters.ts"
import { isGateways, setByClient } from "./HeaderRules.ts"
import { Predicate, Result, Schema, SchemaIssue, SchemaParser } from "effect"

/** The faults of an `auth_type` and its `auth`, by path in the written body. */
export type FieldErrors = ReadonlyArray<FieldError>

export const fieldError = (path: string, message: string): Result.Result<never, FieldErrors> =>
  Result.fail([{ path, message }])

const text = Schema.String.annotate({ message: "must be a string" })

/** Whether `name` is an HTTP header name (an RFC 9110 token). */
export const isHeaderName = (name: string): boolean => headerName.test(name)

export const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/

// Compared by code point, because a pattern with control characters is hard to read and easy to get wrong.
export const hasControl = (value: string): boolean =>
  Array.from(value).some((char) => char < " " || (char >= "\u007f" && char <= "\u009f"))

/** An HTTP header name (an RFC 9110 token). */
export const HeaderName = text.check(
  Schema.isPattern(headerName, { message: "must be a valid HTTP header name" }).abort()
)

/** Whether the gateway sets a header itself, or the header belongs to one hop of the connection: settings may not set it. */
export const isSetByGateway = (name: string): boolean => {
  const lower = name.toLowerCase()
  return setByClient.has(lower) || isGateways(lower)
}

/** The name of a header that settings may add to the gateway's requests. */
export const OutboundHeaderName = HeaderName.check(
  Schema.makeFilter(
    (name: string) => !isSetByGateway(name) || "must not be a header that the gateway or HTTP itself sets",
    { toJsonSchema: () => ({ pattern: headerName.source }) }
  )
)

/** Text that authenticates somebody: never empty or blank, because a value that anyone can guess verifies nothing. */
export const Secret = text.check(
  Schema.makeFilter((value: string) => value.trim() !== "" || "must not be empty"),
  Characters.upTo(16_384),
  // A lone surrogate has no UTF-8 bytes, and U+FFFD stands for bytes that were lost. The key would not be the intended one, and
  // broken input would decode to it.
  Schema.makeFilter(
    (value: string) => (value.isWellFormed() && !value.includes("\ufffd")) || "must be valid Unicode text"
  )
)

/** A secret that a person or a setting holds as one line of text. */
export const TextSecret = Secret.check(
  Schema.makeFilter((value: string) => !hasControl(value) || "must not contain control characters")
)

/** A secret that is the value of a header, which HTTP trims. */
export const HeaderSecret = TextSecret.check(
  Schema.makeFilter((value: string) => value === value.trim() || "must not begin or end with white space")
)

/** Text that a sender may present beside a secret: a user name. */
export const Identifier = text.check(
  Schema.isNonEmpty({ message: "must not be empty" }),
  Characters.upTo(1024),
  Schema.makeFilter((value: string) => !hasControl(value) || "must not contain control characters"),
  Schema.makeFilter((value: string) => value.isWellFormed() || "must be valid Unicode text")
)

/** One of a closed list of words. */
export const OneOf = <const Words extends ReadonlyArray<string>>(words: Words): Schema.Literals<Words> =>
  Schema.Literals(words).annotate({ message: `must be one of ${words.join(", ")}` })

// Messages never show the value: it may be a secret.
const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    issue._tag === "MissingKey" ? "is required" : SchemaIssue.defaultLeafHook(issue).replace(/^Expected /, "must be ")
})

/**
 * Decodes the settings of one `auth_type`. `null` means not given. Another name of a setting is accepted and replaced by its
 * canonical one. Unknown settings are dropped, so that nothing unchecked is stored. Errors name the setting as it was written,
 * with one error for each.
 */
export const decodeAuth = <S extends Schema.ConstraintDecoder<unknown>>(
  schema: S,
  aliases: Readonly<Record<string, string>>,
  auth: unknown
): Result.Result<S["Type"], FieldErrors> => {
  const written = auth ?? {}
  if (!Predicate.isObject(written) || Array.isArray(written)) return fieldError("config.auth", "must be an object")

  const settings = new Map(Object.entries(written).filter(([, value]) => value !== null && value !== undefined))
  const writtenName = new Map<string, string>()
  for (const [alias, name] of Object.entries(aliases)) {
    if (!settings.has(alias)) continue
    const value = settings.get(alias)
    if (settings.has(name) && settings.get(name) !== value) {
      return fieldError(`config.auth.${alias}`, `is another name of ${name} and differs from it`)
    }
    if (!settings.has(name)) writtenName.set(name, alias)
    settings.set(name, value)
  }

  return Result.mapError(
    SchemaParser.decodeUnknownResult(schema, { errors: "all" })(Object.fromEntries(settings)),
    (issue) => {
      const messages = new Map<string, string>()
      for (const { message, path = [] } of issuesOf(issue).issues) {
        const names = path.map(String).map((name, depth) => (depth === 0 ? (writtenName.get(name) ?? name) : name))
        const at = ["config", "auth", ...names].join(".")
        if (!messages.has(at)) messages.set(at, message)
      }
      return Array.from(messages, ([path, message]) => ({ path, message }))
    }
  )
}
