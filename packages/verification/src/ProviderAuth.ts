import { Effect, Predicate, Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { decodeAuth, fieldError, hasControl } from "@tidegate/model/AuthSettings"
import type { FieldErrors } from "@tidegate/model/AuthSettings"
import { basicCheck, keyCheck } from "./Credentials.ts"
import type { Certificates, Check, Provider, ProviderAuth, ProviderSetting } from "./Provider.ts"
import { type OwnNames, unknownSettings, unlessRefused } from "@tidegate/model/SettingNames"
import { compileScheme } from "./SignatureScheme.ts"

/** Names of a provider's settings. */
export const ownNames = ({ settings }: Provider): OwnNames => ({
  names: settings.map(({ name }) => name),
  aliases: [...settings.flatMap(({ aliases = [] }) => aliases), "provider"]
})

/** Settings of the generic schemes. A provider's type determines all of these itself. */
const generic = [
  "header_key",
  "header_name",
  "signature_header",
  "query_key",
  "algorithm",
  "encoding",
  "prefix",
  "timestamp_header",
  "tolerance_seconds"
]

const valueOf = ({ problem, secret }: ProviderSetting) =>
  Schema.String.annotate({ message: "must be a string" }).check(
    Schema.makeFilter((value: string) => value.trim() !== "" || "must not be empty"),
    Characters.upTo(4096),
    Schema.makeFilter(
      (value: string) => (value.isWellFormed() && !value.includes("\ufffd")) || "must be valid Unicode text"
    ),
    Schema.makeFilter(
      (value: string) =>
        !hasControl(secret ? value : value.replaceAll(/[\t\r\n]/g, "")) || "must not contain control characters"
    ),
    Schema.makeFilter((value: string) => problem?.(value) ?? true)
  )

const keyOf = (setting: ProviderSetting) => {
  const value = valueOf(setting)
  if (setting.default !== undefined) return value.pipe(Schema.withDecodingDefaultKey(Effect.succeed(setting.default)))
  return setting.required ? value : Schema.optionalKey(value)
}

/**
 * Validates the `config.auth` of a source of `type`, which is one of `provider`. Returns canonical names with defaults filled in. Settings
 * of the generic schemes and unknown settings are refused.
 */
export const validateProviderAuth = (
  provider: Provider,
  type: string,
  written: unknown
): Result.Result<ProviderAuth, FieldErrors> => {
  const { settings, verification } = provider
  const schema = Schema.Struct(Object.fromEntries(settings.map((setting) => [setting.name, keyOf(setting)])))
  const aliases = Object.fromEntries(
    settings.flatMap(({ aliases = [], name }) => aliases.map((alias) => [alias, name]))
  )
  const decoded = Result.flatMap(decodeAuth(schema, aliases, written), (auth) =>
    // Settings that are valid one by one can still yield no key together, if exactly one of two is required.
    verification.kind === "code" && verification.compile(auth, () => undefined) === null
      ? fieldError("config.auth", `must hold exactly one of ${settings.map(({ name }) => name).join(", ")}`)
      : Result.succeed(auth)
  )
  return unlessRefused(refusedSettings(provider, type, written), decoded)
}

/** Settings that are refused whatever their value is, because the author believes that they have an effect. */
const refusedSettings = (provider: Provider, type: string, written: unknown): FieldErrors => {
  if (!Predicate.isObject(written)) return []
  const { aliases, names } = ownNames(provider)
  const own = [...names, ...aliases]
  const given = (name: string): unknown => (Object.hasOwn(written, name) ? Reflect.get(written, name) : undefined)
  const isGiven = (name: string) => given(name) !== undefined && given(name) !== null
  const byType = generic.filter((name) => !own.includes(name))
  const refused = byType
    .filter(isGiven)
    .map((name) => ({ path: `config.auth.${name}`, message: `is set by the type ${type}: leave it out` }))
    .concat(unknownSettings(`the type ${type}`, { names, aliases: [...aliases, ...byType] }, written))
  if (isGiven("provider") && given("provider") !== type) {
    refused.push({ path: "config.auth.provider", message: `must be the type of the source, ${type}` })
  }
  // A type that verifies without settings would ignore these, and check less than the author believes.
  if (refused.length === 0 && provider.settings.every(({ required }) => !required) && !own.some(isGiven)) {
    return Object.keys(written).map((name) => ({
      path: `config.auth.${name}`,
      message: "must not be null: leave config.auth empty when there is nothing to write"
    }))
  }
  return refused
}

/** Prepares the verification of a provider's requests. Returns null if the settings yield no usable key. */
export const compileProvider = (
  { verification }: Provider,
  auth: ProviderAuth,
  certificates: Certificates
): Check | null => {
  switch (verification.kind) {
    case "code":
      return verification.compile(auth, certificates)
    case "basic": {
      const { password, username } = auth
      return username === undefined || password === undefined ? null : basicCheck(username, password)
    }
    case "token": {
      const { api_key, header_key } = auth
      const header = verification.header ?? header_key
      return api_key === undefined || header === undefined ? null : keyCheck(api_key, { header, query: undefined })
    }
    default: {
      const { webhook_secret_key } = auth
      if (webhook_secret_key === undefined) return null
      const { schemes, tokenHeader } = verification
      const checks = schemes.map((scheme) => ({
        header: scheme.header,
        check: compileScheme(scheme, webhook_secret_key)
      }))
      const byToken =
        tokenHeader === undefined ? null : keyCheck(webhook_secret_key, { header: tokenHeader, query: undefined })
      const [first] = checks
      if (checks.length === 1 && byToken === null) return first?.check ?? null
      return (request) => {
        const signed = checks.find(({ header }) => request.headers[header] !== undefined)
        return signed === undefined ? (byToken?.(request) ?? false) : (signed.check?.(request) ?? false)
      }
    }
  }
}
