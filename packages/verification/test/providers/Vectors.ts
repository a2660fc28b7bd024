import { readFileSync } from "node:fs"
import { Schema } from "effect"
import type { InboundRequest, Provider, Verification } from "@tidegate/verification/Provider"
import { providerOf } from "@tidegate/verification/Providers"
import type { SignatureScheme } from "@tidegate/verification/SignatureScheme"
import { compileSourceAuth } from "@tidegate/verification/SourceAuth"

const Vector = Schema.Struct({
  type: Schema.String,
  /** Who computed the signature. */
  origin: Schema.String,
  auth: Schema.Record(Schema.String, Schema.String),
  request: Schema.Struct({
    method: Schema.String,
    url: Schema.String,
    now: Schema.Number,
    body: Schema.String,
    headers: Schema.Record(Schema.String, Schema.String)
  })
})
export type Vector = typeof Vector.Type

const file = new URL("../fixtures/providers/vectors.json", import.meta.url)

/** A genuine request of every provider that is data; made by fixtures/providers/make.sh and not by the code under test. */
export const vectors = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Vector)))(readFileSync(file, "utf8"))

export const requestOf = ({ request }: Vector): InboundRequest => ({
  method: request.method,
  url: request.url,
  headers: request.headers,
  query: URL.parse(request.url)?.search.slice(1) ?? "",
  body: Buffer.from(request.body, "utf8"),
  nowSeconds: request.now
})

export const rowOf = ({ type }: Vector): Provider => {
  const provider = providerOf(type)
  if (provider === undefined) throw new Error(`${type} is in no row`)
  return provider
}

/** The verdict on a vector's request, with some of it, or of its settings, replaced. */
export const verdict = (vector: Vector, changed: Partial<InboundRequest> = {}, auth: object = vector.auth) =>
  compileSourceAuth({ type: vector.type, auth_type: rowOf(vector).authType, auth }).verify({
    ...requestOf(vector),
    ...changed
  })

export const withHeader = ({ request }: Vector, name: string, value: string | ReadonlyArray<string> | undefined) => ({
  headers: { ...request.headers, [name]: value }
})

type Scheme = Extract<Verification, { readonly kind: "scheme" }>

/** The scheme that decides about a vector and the header with its signature; null when nothing in it is signed. */
export const signatureOf = (
  vector: Vector
): { readonly scheme: SignatureScheme; readonly header: string; readonly value: string } | null => {
  const { verification } = rowOf(vector)
  if (verification.kind !== "scheme") return null
  const { schemes }: Scheme = verification
  for (const scheme of schemes) {
    // The fixture of a family of headers has ours in the second.
    const header = scheme.header.replace("{n}", "2")
    const value = vector.request.headers[header]
    if (value !== undefined) return { scheme, header, value }
  }
  return null
}

export const nameOf = ({ origin, type }: Vector): string => `${type} (${origin})`
