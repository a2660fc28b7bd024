import { writeJson } from "@tidegate/json/NumberMarks"
import { looksMasked, maskSecret } from "@tidegate/redaction/Masking"
import { secretNames } from "@tidegate/redaction/SecretNames"
import { withoutSecretLooks } from "@tidegate/redaction/Redaction"
import type { Entry } from "./Kind.ts"
import { referenceIn } from "./References.ts"
import { covers } from "./Secrets.ts"
import { isObject, type Json, type JsonObject } from "./Json.ts"

/** The values that an import changes, as a plan shows them: without secrets, and not too long. */

export interface Change {
  /** Such as `config.rate_limit`, or `steps.to_crm.config.timeout_ms`: an element of a list is named by its `id`, otherwise by its index. */
  readonly path: string
  /** Null: there was none. */
  readonly from: string | null
  /** Null: there is none after it. */
  readonly to: string | null
}

const longest = 120

/** Members whose values are secret, whatever their names are. */
const secretPlaces: ReadonlySet<string> = new Set(["auth", "credentials", "env"])
const isSecretName = secretNames([])

type Path = ReadonlyArray<string>

/** `secrets`: the values of variables, each with what is shown instead. */
type Secrets = ReadonlyMap<string, string>

const isSecretAt = (path: Path): boolean => path.some((name) => secretPlaces.has(name) || isSecretName(name))

const withoutSecrets = (value: Json, path: Path, secrets: Secrets): Json => {
  if (typeof value === "string") {
    const variable = secrets.get(value)
    if (variable !== undefined) return variable
    return isSecretAt(path) && !looksMasked.test(value) ? maskSecret(value) : withoutSecretLooks(value)
  }
  if (Array.isArray(value))
    return value.map((one: Json, index) => withoutSecrets(one, [...path, String(index)], secrets))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, withoutSecrets(inner, [...path, name], secrets)])
  )
}

const shown = (value: Json | undefined, path: Path, secrets: Secrets): string | null => {
  if (value === undefined) return null
  const reference = referenceIn(value)
  const text =
    reference === null ? writeJson(withoutSecrets(value, path, secrets)) : `${reference.target} ${reference.name}`
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

/** A list as members: by the ids of its elements if each has one of its own. */
const byId = (list: ReadonlyArray<Json>): JsonObject => {
  const ids = list.map((one) => (isObject(one) && typeof one["id"] === "string" ? one["id"] : null))
  const isUnique = !ids.includes(null) && new Set(ids).size === ids.length
  return Object.fromEntries(list.map((one, index) => [isUnique ? ids[index]! : String(index), one]))
}

const membersIn = (value: Json | undefined): JsonObject | null => {
  if (Array.isArray(value)) return byId(value)
  return isObject(value) && referenceIn(value) === null ? value : null
}

/** Members that are replaced as a whole, so that a part that is not written is taken away. */
const replaced: ReadonlySet<string> = new Set([
  "condition",
  "conditions",
  "inputs",
  "invocation_inputs",
  "mapping",
  "rules",
  "triggers"
])

const isReplaced = (path: Path): boolean =>
  path.some((name) => replaced.has(name)) ||
  (path[0] === "steps" && path[2] === "config") ||
  (path[1] === "schedule" && (path[2] === "body" || path[2] === "headers"))

const isAlike = (current: Json | undefined, wanted: Json | undefined, path: Path): boolean => {
  if (wanted === undefined || current === undefined) return wanted === current
  return covers(current, wanted) && (!isReplaced(path) || covers(wanted, current))
}

/** The changes of a value. Members of objects that are not written stay, if the object is not replaced as a whole. */
const changesIn = (
  current: Json | undefined,
  wanted: Json | undefined,
  path: Path,
  secrets: Secrets
): ReadonlyArray<Change> => {
  const [before, after] = [membersIn(current), membersIn(wanted)]
  if (before === null || after === null) {
    return isAlike(current, wanted, path)
      ? []
      : [{ path: path.join("."), from: shown(current, path, secrets), to: shown(wanted, path, secrets) }]
  }
  const isWhole = Array.isArray(wanted) || isReplaced(path)
  const gone = isWhole ? Object.keys(before).filter((name) => !Object.hasOwn(after, name)) : []
  return [...Object.keys(after), ...gone].flatMap((name) =>
    changesIn(before[name], after[name], [...path, name], secrets)
  )
}

/** The changes of these members. */
export const changesOf = (
  current: Entry,
  wanted: Entry,
  members: ReadonlyArray<string>,
  secrets: Secrets
): ReadonlyArray<Change> => members.flatMap((member) => changesIn(current[member], wanted[member], [member], secrets))
