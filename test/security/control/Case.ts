import type { RequestParts } from "../../support/RawHttp.ts"

/** Ids of what is there while the control corpus is sent. */
export interface Present {
  readonly source: string
  readonly destination: string
  readonly connection: string
  /** Used by a connection that is disabled. */
  readonly transformation: string
  readonly request: string
  readonly event: string
  readonly attempt: string
}

/** One malformed call. `{source}` and the other names of `Present` in its path and body stand for ids. */
export interface ControlCase {
  readonly name: string
  readonly method: string
  /** Below the origin; sent as it is. */
  readonly path: string
  /** Beside the credentials and, with a body, the content type; a name given here replaces those. */
  readonly headers?: ReadonlyArray<readonly [string, string]>
  readonly body?: string | Uint8Array
  /** Leaves the credentials out. */
  readonly anonymous?: boolean
  readonly status: number
  /** The code of the answer, where the contract names one. */
  readonly code?: string
}

/** The body as JSON text, unless it is text already. */
export const json = (body: unknown): string => (typeof body === "string" ? body : JSON.stringify(body))

export const fill = (text: string, present: Present): string =>
  text.replaceAll(
    /\{(source|destination|connection|transformation|request|event|attempt)\}/g,
    (_, name: keyof Present) => present[name]
  )

/** The request of a case, as it goes over the wire. */
export const partsOf = (one: ControlCase, present: Present, key: string): RequestParts => {
  const headers: Array<readonly [string, string]> = [...(one.headers ?? [])]
  const has = (name: string): boolean => headers.some(([given]) => given.toLowerCase() === name)
  if (one.anonymous !== true && !has("authorization")) headers.push(["Authorization", `Bearer ${key}`])
  if (one.body !== undefined && !has("content-type")) headers.push(["Content-Type", "application/json"])
  const body = typeof one.body === "string" ? fill(one.body, present) : one.body
  return {
    method: one.method,
    path: fill(one.path, present),
    headers,
    ...(body === undefined ? {} : { body })
  }
}
