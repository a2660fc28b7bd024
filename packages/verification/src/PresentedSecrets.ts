import type { MessageHead } from "@tidegate/model/Message"

/**
 * A header or query parameter that *is* the sender's credential: it is taken out of a request at the door, is kept sealed,
 * and is put back where the request is delivered. What everything between the two sees is the mask. Pure; the sealing is
 * the storage's.
 */

/** What reads in the place of a presented secret. */
export const presentedMask = "[PRESENTED]"

const maskedParameter = encodeURIComponent(presentedMask)

/** Headers by lower-case name, query parameters by lower-case decoded name. */
export interface PresentedNames {
  readonly headers: ReadonlyArray<string>
  readonly query: ReadonlyArray<string>
}

/** Where a sender's credentials are in a request. */
export interface PresentedPlaces extends PresentedNames {
  /** Those of them that hold what the source itself verifies by: a secret between the sender and the gateway. Absent: none. */
  readonly own?: PresentedNames
}

/** The parts of a request that can present something. */
export type PresentingParts = Pick<MessageHead, "headers" | "query">

/** What was taken out, in the order it stood there. */
export interface PresentedSecrets {
  readonly headers: ReadonlyArray<readonly [name: string, values: ReadonlyArray<string>]>
  /** By decoded name; the value as it was sent, undecoded. */
  readonly query: ReadonlyArray<readonly [name: string, value: string]>
  /** The names of what the source itself verifies by. Absent: none, and in what was stored before they were told apart. */
  readonly own?: PresentedNames
}

/**
 * Takes the credentials out of a request. Null when it presents none: then it is kept as it is.
 *
 * `everything`: nobody can tell where they are, because the settings that say so cannot be read. Fails closed: all headers
 * and parameters are taken.
 */
export const takePresented = (
  places: PresentedPlaces | "everything",
  request: PresentingParts
): (PresentingParts & { readonly secrets: PresentedSecrets }) | null => {
  const { headers, query } = request
  const taken: Array<readonly [string, ReadonlyArray<string>]> = []
  let masked: Record<string, string | ReadonlyArray<string>> | null = null
  for (const name of places === "everything" ? Object.keys(headers) : places.headers) {
    // A header may be called as something is that every object has.
    const value = headers[name] !== undefined && Object.hasOwn(headers, name) ? headers[name] : ""
    const values = (typeof value === "string" ? [value] : value).filter((one) => one !== "")
    if (values.length === 0) continue
    taken.push([name, values])
    masked ??= { ...headers }
    masked[name] = typeof value === "string" ? presentedMask : value.map((one) => (one === "" ? "" : presentedMask))
  }
  const names = places === "everything" ? null : places.query
  const parameters = query === "" || names?.length === 0 ? null : takeParameters(names, query)
  return masked === null && parameters === null
    ? null
    : {
        headers: masked ?? headers,
        query: parameters?.query ?? query,
        secrets: {
          headers: taken,
          query: parameters?.taken ?? [],
          ...(places === "everything" || places.own === undefined ? {} : { own: places.own })
        }
      }
}

const takeParameters = (
  names: ReadonlyArray<string> | null,
  query: string
): { readonly query: string; readonly taken: PresentedSecrets["query"] } | null => {
  const taken: Array<readonly [string, string]> = []
  const masked = mapParameters(query, ({ name, raw, rawName, rawValue }) => {
    // In any case: one that was not verified for that is the credential all the same.
    if (rawValue === "" || (names !== null && !names.includes(name.toLowerCase()))) return raw
    taken.push([name, rawValue])
    return `${rawName}=${maskedParameter}`
  })
  return taken.length === 0 ? null : { query: masked, taken }
}

interface Parameter {
  readonly name: string
  readonly value: string
  /** As it was sent, and its two parts; without an equals sign the value is empty. */
  readonly raw: string
  readonly rawName: string
  readonly rawValue: string
}

/** A query with each parameter replaced, or left out where `change` gives null. Whatever else is in it stays as it is. */
const mapParameters = (query: string, change: (parameter: Parameter) => string | null): string => {
  // As `URLSearchParams` reads a query, which verification goes by: a question mark before it is none of it, and empty pieces
  // are no parameters. Behind an ampersand, no further question mark is taken off.
  const start = query.startsWith("?") ? 1 : 0
  const decoded = [...new URLSearchParams(`&${query.slice(start)}`)]
  let index = 0
  const pieces = query
    .slice(start)
    .split("&")
    .flatMap((raw) => {
      if (raw === "") return [raw]
      const [name, value] = decoded[index++]!
      const equals = raw.indexOf("=")
      const rawName = equals < 0 ? raw : raw.slice(0, equals)
      return change({ name, value, raw, rawName, rawValue: equals < 0 ? "" : raw.slice(equals + 1) }) ?? []
    })
  return query.slice(0, start) + pieces.join("&")
}

/** Whether there is a mask in it, which may be the sender's own. */
export const carriesMask = ({ headers, query }: PresentingParts): boolean => {
  for (const name in headers) {
    const value = headers[name]!
    if (typeof value === "string" ? value === presentedMask : value.includes(presentedMask)) return true
  }
  if (!query.includes("PRESENTED")) return false
  for (const [, value] of new URLSearchParams(query)) if (value === presentedMask) return true
  return false
}

/** What takes the place of the next mask under a name: a value, null for nothing, undefined to leave it. */
type Next = (name: string) => string | null | undefined

/** A request with its masks replaced one by one; a header of which nothing is left is gone. */
const replaceMasks = <Parts extends PresentingParts>(request: Parts, nextHeader: Next, nextParameter: Next): Parts => {
  const headers: Record<string, string | ReadonlyArray<string>> = { ...request.headers }
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === "string" ? value !== presentedMask : !value.includes(presentedMask)) continue
    const values = [value].flat().flatMap((one) => {
      const next = one === presentedMask ? nextHeader(name) : undefined
      return next === undefined ? one : (next ?? [])
    })
    if (values.length === 0) delete headers[name]
    else headers[name] = typeof value === "string" ? values[0]! : values
  }
  const query = mapParameters(request.query, ({ name, raw, rawName, value }) => {
    if (value !== presentedMask) return raw
    const next = nextParameter(name)
    return next === undefined ? raw : next === null ? null : `${rawName}=${next}`
  })
  return { ...request, headers, query }
}

/** By name, what stands there one after the other. */
const inTurn = (secrets: PresentedSecrets["headers"]): Next => {
  const waiting = new Map<string, Array<string>>()
  for (const [name, values] of secrets) waiting.set(name, [...(waiting.get(name) ?? []), ...values])
  return (name) => {
    const values = waiting.get(name)
    return values === undefined ? undefined : (values.shift() ?? null)
  }
}

/**
 * Puts the credentials back where the mask stands under the same name, also when a transformation has changed all around
 * it. A mask more than there were secrets is left out; under a name that presented nothing it is not ours and stays.
 */
export const restorePresented = <Parts extends PresentingParts>(request: Parts, secrets: PresentedSecrets): Parts =>
  replaceMasks(request, inTurn(secrets.headers), inTurn(secrets.query.map(([name, value]) => [name, [value]])))

/**
 * The same, but for what the source itself verifies by, which is left out: whoever gets it could send as the source's sender.
 */
export const restoreOthers = <Parts extends PresentingParts>(request: Parts, secrets: PresentedSecrets): Parts => {
  const { headers, own, query } = secrets
  if (own === undefined) return restorePresented(request, secrets)
  return replaceMasks(
    request,
    inTurn(headers.map(([name, values]) => [name, own.headers.includes(name) ? [] : values])),
    inTurn(query.map(([name, value]) => [name, own.query.includes(name.toLowerCase()) ? [] : [value]]))
  )
}

/**
 * A request as it came, without what the source itself verifies by. `everything`: nobody can tell what that is. Fails closed: all
 * headers and parameters are left out.
 */
export const withoutOwn = <Parts extends PresentingParts>(
  request: Parts,
  places: PresentedPlaces | "everything"
): Parts => {
  if (places !== "everything" && places.own === undefined) return request
  const taken = takePresented(places, request)
  if (taken === null) return request
  const { secrets, ...masked } = taken
  const parts = { ...request, ...masked }
  return places === "everything" ? withoutPresented(parts) : restoreOthers(parts, secrets)
}

const nothing = () => null

/** The request without what was masked in it. */
export const withoutPresented = <Parts extends PresentingParts>(request: Parts): Parts =>
  replaceMasks(request, nothing, nothing)
