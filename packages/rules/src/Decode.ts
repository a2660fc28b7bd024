import { Predicate, Result, Schema, SchemaIssue } from "effect"
import { didYouMean } from "@tidegate/model/NearestName"
import { below } from "./ConditionInvalid.ts"

/** An error in written input, and its place. */
export interface Complaint {
  readonly path: string
  readonly message: string
}

export const complain = (path: string, message: string): Result.Result<never, Complaint> =>
  Result.fail({ path, message })

/** Separates the message about an unknown member from the valid names, because the schema's issue does not list them. */
const mark = "\u0000"

const namesIn = ({ ast }: SchemaIssue.UnexpectedKey): string =>
  "propertySignatures" in ast ? ast.propertySignatures.map(({ name }) => String(name)).join(mark) : ""

const meantBy = (message: string, key: unknown): string => {
  const [said = "", ...names] = message.split(mark)
  return said + (typeof key === "string" ? didYouMean(key, names) : "")
}

/** Decodes `written` by its schema. `what` names the input in the message about unknown members. Messages never contain values. */
export const decode = <S extends Schema.ConstraintDecoder<unknown>>(
  schema: S,
  written: unknown,
  what: string
): Result.Result<S["Type"], Complaint> =>
  Result.mapError(decodeAll(schema, written, what), ([first]) => first ?? { path: "", message: "is not valid" })

/** Like `decode`, but returns all errors. */
export const decodeAll = <S extends Schema.ConstraintDecoder<unknown>>(
  schema: S,
  written: unknown,
  what: string
): Result.Result<S["Type"], ReadonlyArray<Complaint>> =>
  Result.mapError(
    Schema.decodeUnknownResult(schema, { onExcessProperty: "error", errors: "all" })(written),
    ({ issue }) =>
      SchemaIssue.makeFormatterStandardSchemaV1({
        leafHook: (leaf) => {
          if (leaf._tag === "MissingKey") return "is required"
          if (leaf._tag === "UnexpectedKey") return `is not a field of ${what}${mark}${namesIn(leaf)}`
          return SchemaIssue.defaultLeafHook(leaf)
        }
      })(issue).issues.map(({ message, path }) => {
        const keys = (path ?? []).map((step) => (Predicate.isObject(step) ? step.key : step))
        return {
          path: keys.reduce<string>((at, key) => below(at, Predicate.isNumber(key) ? key : String(key)), ""),
          message: message.includes(mark) ? meantBy(message, keys.at(-1)) : message
        }
      })
  )
