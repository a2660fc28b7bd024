import { Result, type Schema } from "effect"
import type { Connector, OpenAuth } from "@tidegate/connectors/Connector"
import { compileOutboundAuth, outboundAuthTypes, validateOutboundAuth } from "@tidegate/signatures/OutboundAuth"

/** Stands in the place of every secret. */
export const secret = "s3cret-of-the-destination"

/** Settings of an `auth_type` that are no plain text. */
const particular: Readonly<Record<string, Schema.JsonObject>> = {
  CUSTOM_HEADER: { header_name: "x-key", value: secret }
}

/** An `auth` of a way to authenticate. */
export const authOf = (authType: string): Schema.JsonObject => {
  const row = outboundAuthTypes.find(({ type }) => type === authType)
  if (row === undefined) throw new Error(`there is no ${authType}`)
  const plain = Object.keys(row.settings).map((name) => [name, row.readable.includes(name) ? "readable" : secret])
  return particular[authType] ?? (Object.fromEntries(plain) as Schema.JsonObject)
}

export const openAuthOf = (authType: string): OpenAuth => {
  const checked = Result.getOrThrow(validateOutboundAuth(authType, authOf(authType)))
  return { headers: compileOutboundAuth(checked).headers, signing: null, settings: checked.auth }
}

/** An `auth` of each way that a type allows. */
export const authsOf = (row: Connector): ReadonlyArray<OpenAuth> => row.auths.map(openAuthOf)
