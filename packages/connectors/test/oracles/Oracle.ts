import type { OpenAuth } from "@tidegate/connectors/Connector"
import type { Config } from "@tidegate/connectors/Settings"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import type { Received } from "../../../../test/support/Target.ts"

/** What an API answers. */
export interface Answered {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** An answer that is a no, what the provider's own client makes of it, and what we do. */
export interface No {
  readonly what: string
  readonly answer: Answered
  /** Members of the client's error; null: it takes the answer for success, and leaves it to its user to look. */
  readonly client: object | null
  readonly verdict: { readonly code: AttemptErrorCode; readonly final: boolean; readonly retryAfter?: number }
}

/**
 * A mock of an API, which is first proved by the provider's own client: it must read the same from that client's call as from ours,
 * and its errors must be errors to that client.
 */
export interface Oracle {
  readonly type: string
  readonly config: Config
  readonly auth: OpenAuth
  readonly payload: unknown
  /** The same call, made by the provider's client. */
  readonly call: (origin: string) => Promise<unknown>
  /** What a call means, in whatever form it is made. Throws for what the API does not take. */
  readonly meaning: (request: Received) => unknown
  /** A part of what this one means. */
  readonly expected: object
  readonly accepted: Answered
  readonly noes: ReadonlyArray<No>
}

export const secret = "t0ken-of-an-account"

export const bearer: OpenAuth = { headers: { authorization: `Bearer ${secret}` }, signing: null, settings: {} }

/** The one value of a header. Throws where there is none, or more. */
export const headerOf = ({ headers }: Received, name: string): string => {
  const value = headers[name]
  if (typeof value !== "string") throw new Error(`one ${name} is needed`)
  return value
}

const typeOf = (request: Received): string => headerOf(request, "content-type").split(";")[0]!.trim().toLowerCase()

export const jsonOf = (request: Received): Record<string, unknown> => {
  if (typeOf(request) !== "application/json") throw new Error("JSON is needed")
  return JSON.parse(request.body.toString()) as Record<string, unknown>
}

/** The fields of a form; one that is repeated is a list. */
export const formOf = (request: Received): Record<string, string | Array<string>> => {
  if (typeOf(request) !== "application/x-www-form-urlencoded") throw new Error("a form is needed")
  const fields = new URLSearchParams(request.body.toString())
  return Object.fromEntries(
    [...new Set(fields.keys())].map((name) => {
      const all = fields.getAll(name)
      return [name, all.length === 1 ? all[0]! : all]
    })
  )
}

export const isForm = (request: Received): boolean => typeOf(request) === "application/x-www-form-urlencoded"

/** Fails unless it is a POST to this path. */
export const posted = (request: Received, path: string): URL => {
  const url = new URL(request.url, "http://mock")
  if (request.method !== "POST" || decodeURIComponent(url.pathname) !== path) {
    throw new Error(`${request.method} ${url.pathname} is no POST ${path}`)
  }
  return url
}
