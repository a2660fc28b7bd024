import type { MessageHead } from "@tidegate/model/Message"

/**
 * A presented secret is a header or query parameter that *is* the sender's credential. Ingress takes it out of the request; it is stored
 * encrypted and restored on delivery. Everything in between sees a mask. This module is pure; storage does the encryption.
 */

/** The mask that replaces a presented secret. */
export const presentedMask = "[PRESENTED]"

const maskedParameter = encodeURIComponent(presentedMask)

/** Headers by lower-case name, query parameters by lower-case decoded name. */
export interface PresentedNames {
  readonly headers: ReadonlyArray<string>
  readonly query: ReadonlyArray<string>
}

/** Where a sender's credentials are in a request. */
export interface PresentedPlaces extends PresentedNames {
  /** The places of the credential by which the source itself verifies: a secret between the sender and the gateway. Absent: none. */
  readonly own?: PresentedNames
}

/** The parts of a request that can contain a credential. */
export type PresentingParts = Pick<MessageHead, "headers" | "query">

/** The credentials that were taken out, in their order in the request. */
export interface PresentedSecrets {
  readonly headers: ReadonlyArray<readonly [name: string, values: ReadonlyArray<string>]>
  /** Decoded names; the values as they were sent, not decoded. */
  readonly query: ReadonlyArray<readonly [name: string, value: string]>
  /** The places of the credential by which the source itself verifies. Absent: none, or stored by a version that did not tell them apart. */
  readonly own?: PresentedNames
}

/**
 * Takes the credentials out of a request. Returns null if it presents none.
 *
 * `everything`: the places are unknown, because the settings that name them cannot be read. Fails closed: all headers and parameters
 * are taken.
 */
export const takePresented = (
  places: PresentedPlaces | "everything",
  request: PresentingParts
): (PresentingParts & { readonly secrets: PresentedSecrets }) | null => {
  const { headers, query } = request
  const taken: Array<readonly [string, ReadonlyArray<string>]> = []
  let masked: Record<string, string | ReadonlyArray<string>> | null = null
  for (const name of places === "everything" ? Object.keys(headers) : places.headers) {
    // A header may have the name of an inherited member, such as `constructor`.
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
    // Letter case is ignored: a parameter in other letter case is not verified, but it still holds the credential.
    if (rawValue === "" || (names !== null && !names.includes(name.toLowerCase()))) return raw
    taken.push([name, rawValue])
    return `${rawName}=${maskedParameter}`
  })
  return taken.length === 0 ? null : { query: masked, taken }
}

interface Parameter {
  readonly name: string
  readonly value: string
  /** The parameter as it was sent, and its two parts; without an equals sign the value is empty. */
  readonly raw: string
  readonly rawName: string
  readonly rawValue: string
}

/** Replaces each parameter of a query, or removes it if `change` returns null. The rest of the query stays unchanged. */
const mapParameters = (query: string, change: (parameter: Parameter) => string | null): string => {
  if (query === "") return query
  // Verification reads queries with `URLSearchParams`, so this must split them the same way: one leading question mark is dropped, and
  // empty pieces are not parameters. The ampersand keeps the constructor from dropping a second question mark.
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

/** Whether the request contains a mask, which may have come from the sender. */
export const carriesMask = ({ headers, query }: PresentingParts): boolean => {
  for (const name in headers) {
    const value = headers[name]!
    if (typeof value === "string" ? value === presentedMask : value.includes(presentedMask)) return true
  }
  if (!query.includes("PRESENTED")) return false
  for (const [, value] of new URLSearchParams(query)) if (value === presentedMask) return true
  return false
}

/** The replacement of the next mask under a name: a value, null to remove the mask, undefined to keep it. */
type Next = (name: string) => string | null | undefined

/** Replaces the masks of a request one by one; a header without remaining values is removed. */
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

/** Returns the values of each name one after the other. */
const inTurn = (secrets: PresentedSecrets["headers"]): Next => {
  const waiting = new Map<string, Array<string>>()
  for (const [name, values] of secrets) waiting.set(name, [...(waiting.get(name) ?? []), ...values])
  return (name) => {
    const values = waiting.get(name)
    return values === undefined ? undefined : (values.shift() ?? null)
  }
}

/**
 * Puts the credentials back where the mask stands under the same name, even if a transformation has changed the rest. Surplus masks are
 * removed. Under a name that presented nothing the text is not our mask and stays.
 */
export const restorePresented = <Parts extends PresentingParts>(request: Parts, secrets: PresentedSecrets): Parts =>
  replaceMasks(request, inTurn(secrets.headers), inTurn(secrets.query.map(([name, value]) => [name, [value]])))

/** The same, without the credential by which the source itself verifies: the receiver could use it to send as the source's sender. */
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
 * Removes the credential by which the source itself verifies from a request. `everything`: its place is unknown. Fails closed: all
 * headers and parameters are removed.
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

/** Removes all masks from a request. */
export const withoutPresented = <Parts extends PresentingParts>(request: Parts): Parts =>
  replaceMasks(request, nothing, nothing)
