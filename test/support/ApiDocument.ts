import { readFile } from "node:fs/promises"
import { resolve } from "node:path"

/** The published document of the API, as suites of the dashboard read it. */
export interface ApiDocument {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { readonly security?: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>> }>>
    >
  >
}

export const apiDocument = async (): Promise<ApiDocument> =>
  JSON.parse(await readFile(resolve(import.meta.dirname, "../../packages/client/openapi.json"), "utf8")) as ApiDocument

/** The operation of a call: `POST /events/{id}/retry` for `POST /v1/events/evt_1/retry`. */
export const operationOf = ({ paths }: ApiDocument, call: string): string => {
  const [method = "", path = ""] = call.split(" ")
  // If two paths match, the one without parameters is meant.
  const known = Object.keys(paths).toSorted((a, b) => a.split("{").length - b.split("{").length)
  const found = known.find(
    (one) =>
      paths[one]![method.toLowerCase()] !== undefined &&
      new RegExp(`^(?:/v1)?${one.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path)
  )
  if (found === undefined) throw new Error(`the document has no ${call}`)
  return `${method} ${found}`
}

/** The credentials that may make a call; none: everybody may. */
const securityOf = (document: ApiDocument, call: string) => {
  const [method = "", path = ""] = operationOf(document, call).split(" ")
  return document.paths[path]![method.toLowerCase()]!.security ?? []
}

/** The roles that may make a call; null: everybody. */
export const rolesOf = (document: ApiDocument, call: string): ReadonlyArray<string> | null => {
  const security = securityOf(document, call)
  return security.length === 0 ? null : security.flatMap(({ session = [] }) => session)
}

export interface KeyRights {
  readonly scopes: ReadonlyArray<string>
  readonly execute_grants?: ReadonlyArray<string>
}

/** Whether a project key with these rights may make a call. */
export const mayByKey = (document: ApiDocument, call: string, { execute_grants = [], scopes }: KeyRights): boolean => {
  const security = securityOf(document, call)
  if (security.length === 0) return true
  const needed = security.find(({ project_key }) => project_key !== undefined)?.["project_key"]
  if (needed === undefined || !needed.every((scope) => scopes.includes(scope))) return false
  const [method, path = ""] = operationOf(document, call).split(" ")
  return (
    !needed.includes("control:execute") ||
    execute_grants.includes(`${method}:/v1${path.replaceAll(/\{(\w+)\}/g, ":$1")}`)
  )
}
