import { isExactNumber, isJsonNumber } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import type { Json } from "@tidegate/model/Rule"
import { nameNames, valueNames } from "@tidegate/redaction/NamedValues"
import { secretNames } from "@tidegate/redaction/SecretNames"
import { isPlainlySecret, redactedInPreviews as mask } from "@tidegate/redaction/SecretValues"

/**
 * Finds credentials as literals in inputs: values with secret names, also inside URLs, forms and JSON texts, and values that look
 * like credentials. Inputs are refused for them, so names that are only about a secret (`authorization_status`) do not count.
 */

/** What is checked. The formatter's own input names do not suggest credentials, so there only the look of values counts. */
export type Looked = "names and looks" | "looks"

const isSecretName = secretNames([])
/** A name with one of these endings is about a secret and is not secret itself. */
const about =
  /(?:^|[^a-z])(?:status|state|type|kind|method|mode|ur[il]|at|date|time|expires|expiry|count|length|hint|policy|required|enabled|reset|consent|version|format|algorithm|provider|changed|updated)$/
const isAbout = (name: string): boolean =>
  about.test(
    name
      .slice(-32)
      .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
      .toLowerCase()
  )
const isSecret = (name: string): boolean => isSecretName(name) && !isAbout(name)

/** The scheme before a credential in a header. */
const scheme = /^(?:basic|bearer|token|digest|apikey)\s+/i
/** Shorter values are no credentials. */
const shortest = 4
/** A deeper value cannot be stored. */
const maxLevels = 64
/** Longer texts are documents, and are not searched. */
const longestText = 65_536

const template = /(?<!\\)\{\{([^{}]*)\}\}/g

/** The literal part of a text, including the default values of templates. `instead`: replaces the parts that the run provides. */
const writtenIn = (text: string, instead: string): string =>
  text.includes("{{")
    ? text.replaceAll(template, (_, path: string) => {
        const literal = /\?\?\s*(\S[^]*)$/.exec(path)?.[1]?.trim() ?? ""
        return /^"[^]*"$/.test(literal) ? literal.slice(1, -1) : instead
      })
    : text

/** Whether a value with a secret name is a literal credential. */
const isWritten = (value: Json): boolean => {
  if (isJsonNumber(value)) return String(value).length >= shortest
  if (typeof value !== "string") return false
  const own = writtenIn(value, "").trim()
  return own.replace(scheme, "").replaceAll(/\s/g, "").length >= shortest && !/^(?:basic|bearer|token)$/i.test(own)
}

/** A whole value like `Bearer k3y…`. Ordinary words after such a word have no digits, or are short. */
const isSchemed = (own: string): boolean => {
  const [, credential] = /^\s*(?:bearer|basic|token)\s+(\S{8,})\s*$/i.exec(own) ?? []
  return credential !== undefined && (/\d/.test(credential) || credential.length >= 20)
}

/** Parameters of a query or a form, at its beginning or after a separator. */
const parameter = /(?:^|[?&;])([\w.%[\]-]{1,128})=([^&#\s]*)/g

const hasParameter = (text: string): boolean =>
  text.includes("=") && [...text.matchAll(parameter)].some(([, name, value]) => isSecret(name!) && isWritten(value!))

/** Whether a JSON text contains a credential; templates in it stand inside texts or for a value. */
const isJsonWithSecret = (text: string, level: number): boolean => {
  if (!/^\s*[[{]/.test(text)) return false
  for (const instead of ["", "0"]) {
    const parsed = parseJson(writtenIn(text, instead))
    if (parsed.kind !== "json") continue
    let isFound = false
    without(parsed.value as Json, "names and looks", "", () => (isFound = true), level + 1)
    return isFound
  }
  return false
}

const isText = (text: string, looked: Looked, level: number): boolean => {
  if (text.length > longestText) return false
  const own = writtenIn(text, "")
  if (isPlainlySecret(own) || isSchemed(own)) return true
  // A mask that was shown instead of a credential and is now written back.
  return looked === "names and looks" && (text === mask || hasParameter(own) || isJsonWithSecret(text, level))
}

/** The value with each credential masked; itself when there are none. The callback gets the place of each. */
export const without = (
  value: Json,
  looked: Looked,
  path: string,
  tell: (path: string) => void,
  level = 0,
  under = false
): Json => {
  if ((under && isWritten(value)) || (typeof value === "string" && isText(value, looked, level))) {
    tell(path)
    return mask
  }
  if (typeof value !== "object" || value === null || isExactNumber(value) || level > maxLevels) return value
  const inside = (of: Json, at: string, isUnder: boolean): Json =>
    without(of, looked, at, tell, level + 1, isUnder && looked === "names and looks")
  if (Array.isArray(value)) {
    const items = value as ReadonlyArray<Json>
    // `["authorization", "…"]` is a pair of a name and its value.
    const isPair = items.length === 2 && typeof items[0] === "string" && isSecret(items[0])
    const shown = items.map((one, i) => inside(one, `${path}[${i}]`, under || (isPair && i === 1)))
    return shown.every((one, i) => one === items[i]) ? value : shown
  }
  const entries = Object.entries(value as { readonly [name: string]: Json })
  // A list of headers or parameters may name each: `{"name": "authorization", "value": "…"}`.
  const isNamed = entries.some(([name, of]) => typeof of === "string" && nameNames.test(name) && isSecret(of))
  let isChanged = false
  const shown = entries.map(([name, of]): [string, Json] => {
    const at = path === "" ? name : `${path}.${name}`
    const after = inside(of, at, under || isSecret(name) || (isNamed && valueNames.test(name)))
    isChanged ||= after !== of
    return [name, after]
  })
  return isChanged ? Object.fromEntries(shown) : value
}

/** Inputs as they are shown. */
export const shownInputs = <Value>(inputs: Value, looked: Looked = "names and looks"): Value =>
  without(inputs as Json, looked, "", () => {}) as Value

/** Where inputs contain credentials, up to a limit. */
export const placesIn = (inputs: unknown, looked: Looked = "names and looks"): ReadonlyArray<string> => {
  const places: Array<string> = []
  without(inputs as Json, looked, "", (place) => void places.push(place))
  return places.slice(0, maxPlaces)
}

const maxPlaces = 20
