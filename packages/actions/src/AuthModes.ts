import { didYouMean } from "@tidegate/model/NearestName"
import { type Complaint, decodeAll } from "@tidegate/rules/Decode"
import { HeaderSecret, Identifier, OneOf, OutboundHeaderName, TextSecret } from "@tidegate/model/AuthSettings"
import { Result, Schema } from "effect"
import type { AuthMode, Credentials } from "./Provider.ts"

/** The ways in which calls of HTTP endpoints authenticate, and what each adds to the request. */

/** The credentials in a request. */
export interface Carried {
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** Appended to the query. */
  readonly query: ReadonlyArray<readonly [name: string, value: string]>
  /** Texts to mask in the answer. */
  readonly secrets: ReadonlyArray<string>
}

interface Mode<Fields extends Schema.Struct.Fields> extends Pick<AuthMode, "key" | "fields"> {
  readonly schemas: Fields
  readonly carried: (values: Schema.Struct.Type<Fields>) => Carried
}

type Known = AuthMode & { readonly carried: (values: Schema.JsonObject) => Carried }

/** Refuses an unknown member of credentials. */
export const notOf = (mode: string, path: string, known: ReadonlyArray<string>): Complaint => ({
  path,
  message: `is not a field of the credentials of ${mode}${didYouMean(path, known)}`
})

const mode = <const Fields extends Schema.Struct.Fields>({ carried, fields, key, schemas }: Mode<Fields>): Known => {
  const schema = Schema.Struct(schemas) as unknown as Schema.ConstraintDecoder<Schema.JsonObject>
  return {
    key,
    fields,
    judge: (credentials): Result.Result<Schema.JsonObject, ReadonlyArray<Complaint>> => {
      // A schema without members accepts any value.
      const strange = Object.keys(credentials).filter((name) => !Object.hasOwn(schemas, name))
      return strange.length > 0
        ? Result.fail(strange.map((path) => notOf(key, path, Object.keys(schemas))))
        : decodeAll(schema, credentials, `the credentials of ${key}`)
    },
    // It receives what its own schemas have validated.
    carried: carried as (values: Schema.JsonObject) => Carried
  }
}

const field = (key: string, label: string, type: "secret" | "text", required = true, help: string | null = null) => ({
  key,
  label,
  type,
  required,
  help
})

const ascii = (what: typeof HeaderSecret) =>
  what.check(
    Schema.makeFilter((value: string) => /^[\x20-\x7e]*$/.test(value) || "must be printable ASCII", {
      toJsonSchema: () => ({ minLength: 1 })
    })
  )

/** The idempotency key belongs to the run of a step. If it were the same for all runs, targets would accept only the first call. */
const CredentialHeader = OutboundHeaderName.check(
  Schema.makeFilter(
    (name: string) =>
      name.toLowerCase() !== "idempotency-key" || "must not be a header that the gateway or HTTP itself sets",
    { toJsonSchema: () => ({}) }
  )
)

const nothing: Carried = { headers: {}, query: [], secrets: [] }

export const none = mode({ key: "none", fields: [], schemas: {}, carried: () => nothing })

const basic = mode({
  key: "basic",
  fields: [field("username", "User name", "text"), field("password", "Password", "secret")],
  schemas: { username: Identifier, password: TextSecret },
  carried: ({ password, username }) => {
    const encoded = Buffer.from(`${username}:${password}`).toString("base64")
    return { headers: { authorization: `Basic ${encoded}` }, query: [], secrets: [password, encoded] }
  }
})

const bearer = mode({
  key: "bearer",
  fields: [field("token", "Token", "secret")],
  schemas: { token: ascii(HeaderSecret) },
  carried: ({ token }) => ({ headers: { authorization: `Bearer ${token}` }, query: [], secrets: [token] })
})

const apiKey = mode({
  key: "api_key",
  fields: [
    field("api_key", "API key", "secret"),
    field("name", "Name", "text", false, "Of the header or the query parameter (default: x-api-key)"),
    field("in", "Where", "text", false, "header (default) or query")
  ],
  schemas: {
    api_key: ascii(HeaderSecret),
    name: Schema.optionalKey(CredentialHeader),
    in: Schema.optionalKey(OneOf(["header", "query"]))
  },
  carried: ({ api_key, in: where = "header", name = "x-api-key" }) => ({
    headers: where === "header" ? { [name.toLowerCase()]: api_key } : {},
    query: where === "query" ? [[name, api_key]] : [],
    secrets: [api_key]
  })
})

const customHeader = mode({
  key: "custom_header",
  fields: [field("header_name", "Header", "text"), field("value", "Value", "secret")],
  schemas: { header_name: CredentialHeader, value: ascii(HeaderSecret) },
  carried: ({ header_name, value }) => ({
    headers: { [header_name.toLowerCase()]: value },
    query: [],
    secrets: [value]
  })
})

/** An account that somebody has connected: it is named by `provider_account_id`, and has the credentials. */
export const account = mode({ key: "account", fields: [], schemas: {}, carried: () => nothing })

export const httpModes = [none, basic, bearer, apiKey, customHeader] as const

/** What calls with these credentials add to a request. An unknown mode adds nothing: credentials are validated before they are stored. */
export const carriedBy = ({ mode, values }: Credentials): Carried =>
  httpModes.find(({ key }) => key === mode)?.carried(values) ?? nothing
