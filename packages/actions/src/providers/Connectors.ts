import { type Answer, type Connector } from "@tidegate/connectors/Connector"
import { connectors, settingsOf } from "@tidegate/connectors/Connectors"
import { literal } from "@tidegate/connectors/Rendering"
import { secretsIn } from "@tidegate/connectors/SecretSettings"
import { type Config, type Setting, type Settings, writtenMembers } from "@tidegate/connectors/Settings"
import { parseJson, utf8 } from "@tidegate/json/JsonText"
import type { Json } from "@tidegate/model/Rule"
import { type Complaint, decodeAll } from "@tidegate/rules/Decode"
import { type OutboundAuth, outboundAuthOf, validateOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import { Result, Schema, SchemaParser } from "effect"
import { notOf } from "../AuthModes.ts"
import {
  type AuthMode,
  calling,
  type CredentialField,
  type Inputs,
  invalid,
  isOpen,
  type Provider,
  type SentTo
} from "../Provider.ts"

/** The destination types, each as a provider with one action: its settings are the inputs, its secrets are the credentials. */

/**
 * Types that forward a request unchanged are not actions: the provider `http` has one for that. A step that sends to a consumer would have to wait
 * until the consumer fetches.
 */
const isAction = ({ isPulled, settings }: Connector): boolean => !("http_method" in settings) && isPulled !== true

/** Settings that only destinations have: an action has a rate limit of its own. */
const ofDestinations = new Set(["rate_limit", "rate_limit_period", "max_concurrency", "batch"])

/** Ways to authenticate that an action cannot use: deliveries are signed, and consents are given, for a destination. */
const notOfActions = new Set(["SERVICE_SIGNATURE", "OAUTH2_AUTHORIZATION_CODE"])

const nameOf = (type: string): string => {
  const words = type.toLowerCase().replaceAll("_", " ")
  return words[0]!.toUpperCase() + words.slice(1)
}

const labelOf = (name: string): string => nameOf(name)

const accepts = ({ schema }: Setting, value: unknown): boolean =>
  Result.isSuccess(SchemaParser.decodeUnknownResult(schema as unknown as Schema.ConstraintDecoder<unknown>)(value))

/** Whether it contains templates. Two braces alone are not a template. */
const isTemplate = (one: Setting): boolean => !accepts(one, "{{") && !accepts(one, ["{{"])

/** A text longer than any setting allows is refused without further checks. */
const longestText = 131_072

const literally = (value: Json): Json =>
  typeof value === "string" && value.length <= longestText
    ? literal(value)
    : Array.isArray(value)
      ? value.map(literally)
      : value

/** Inputs are resolved already, so they contain no templates. JSON may come as a value instead of a text. */
const readBy =
  (settings: Settings) =>
  (inputs: Inputs): Inputs =>
    Object.fromEntries(
      Object.entries(inputs).map(([name, given]) => {
        const one = Object.hasOwn(settings, name) ? settings[name] : undefined
        if (one === undefined || given === null) return [name, given]
        const value = isTemplate(one) ? literally(given) : given
        if (typeof value === "string" || accepts(one, value)) return [name, value]
        const text = JSON.stringify(value)
        return [name, isTemplate(one) ? literal(text) : text]
      })
    )

const secretSettings = ({ settings }: Connector): Settings =>
  Object.fromEntries(Object.entries(settings).filter(([, { mask }]) => mask !== undefined))

const descriptionOf = ({ schema }: Setting): string | null => {
  const description = (schema.ast.annotations as { readonly description?: unknown } | undefined)?.description
  return typeof description === "string" ? description : null
}

const modeOf = (row: Connector, type: string): AuthMode => {
  const { readable, settings } = outboundAuthOf(type)!
  const secrets = secretSettings(row)
  const fields: ReadonlyArray<CredentialField> = [
    ...Object.entries(secrets).map(([key, one]): CredentialField => ({
      key,
      label: labelOf(key),
      type: "secret",
      required: "needed" in one,
      help: "needed" in one ? one.needed : descriptionOf(one)
    })),
    ...Object.entries(settings).map(([key, schema]): CredentialField => ({
      key,
      label: labelOf(key),
      type: readable.includes(key) ? "text" : "secret",
      required: schema.ast.context?.isOptional !== true,
      help: descriptionOf({ schema } as Setting)
    }))
  ]
  const own = Schema.Struct(writtenMembers(secrets, {})) as unknown as Schema.ConstraintDecoder<Config>
  return {
    key: type === "NO_AUTH" ? "none" : type.toLowerCase(),
    fields,
    judge: (credentials) => {
      const isOwn = ([name]: readonly [string, unknown]): boolean => Object.hasOwn(secrets, name)
      const entries = Object.entries(credentials)
      const written = Object.fromEntries(entries.filter(isOwn))
      const missing = Object.entries(secrets).flatMap(([path, one]): ReadonlyArray<Complaint> =>
        "needed" in one && (written[path] ?? null) === null ? [{ path, message: `is required: ${one.needed}` }] : []
      )
      if (missing.length > 0) return Result.fail(missing)
      const rest = Object.fromEntries(entries.filter((entry) => !isOwn(entry)))
      const strange = Object.keys(rest).filter((name) => !fields.some(({ key }) => key === name) && !(name in settings))
      const aliases = outboundAuthOf(type)!.aliases
      const unknown = strange.filter((name) => !Object.hasOwn(aliases, name) && name !== "service_account_key")
      if (unknown.length > 0) {
        return Result.fail(
          unknown.map((path) =>
            notOf(
              type,
              path,
              fields.map(({ key }) => key)
            )
          )
        )
      }
      return Result.flatMap(decodeAll(own, written, "the credentials"), (judged) =>
        Result.mapBoth(validateOutboundAuth(type, rest, row.auths), {
          onFailure: (faults) =>
            faults.map(({ message, path }) => ({ message, path: path.replace(/^config\.auth\.?/, "") })),
          onSuccess: ({ auth }) => Object.assign({}, auth, judged)
        })
      )
    }
  }
}

/** An answer is small: targets say little about what they have accepted. */
const outputOf = ({ body, status }: Answer): Json => {
  const parsed = body.length === 0 ? null : parseJson(body)
  return { status, body: parsed === null ? null : parsed.kind === "json" ? (parsed.value as Json) : utf8(body) }
}

/** Where a destination's example takes values from an event, a step's example takes them from the run. */
const sampleText = (value: Json): Json =>
  typeof value === "string"
    ? value.replaceAll("{{payload.", "{{trigger.body.").replaceAll("{{payload}}", "{{trigger.body}}")
    : Array.isArray(value)
      ? value.map(sampleText)
      : value

const bytesOf = (payload: Json): Uint8Array =>
  Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload))

/** Determined by the inputs that the type names, each as written or with its default. */
const sentToBy = (names: ReadonlyArray<string>, given: Settings): SentTo => ({
  inputs: names,
  of: (inputs) => {
    const values = names.map((name): Json | undefined => {
      const one = given[name]!
      return inputs[name] ?? ("default" in one ? (one.default as Json) : undefined)
    })
    return values.some((value) => value === undefined || isOpen(value))
      ? null
      : values.map(String).join(" ").toLowerCase()
  }
})

/** The provider of a destination type. */
const providerOf = (row: Connector): Provider => {
  const { description, example, pace, perStep, settings, type } = row
  const secrets = secretSettings(row)
  const without = new Set([...ofDestinations, ...Object.keys(secrets), ...(perStep?.without ?? [])])
  const given: Settings = Object.fromEntries(Object.entries(settings).filter(([name]) => !without.has(name)))
  const inputs: Settings = perStep === undefined ? given : { ...given, [perStep.name]: perStep.payload }
  const written = (example["config"] ?? {}) as Config
  const modes = row.auths.filter((auth) => !notOfActions.has(auth)).map((auth) => modeOf(row, auth))
  const [first, ...others] = modes
  const isInput = ([name]: readonly [string, Json]): boolean => Object.hasOwn(given, name)
  return {
    key: type.toLowerCase(),
    name: nameOf(type),
    description,
    icon_key: type.toLowerCase(),
    manifest_version: "1.0.0",
    auth: [first!, ...others],
    actions: [
      calling({
        key: "send",
        name: "Send",
        description: `${description} As a destination of type ${type} does, with inputs of this step.`,
        category: "destinations",
        version: "1.0.0",
        inputs,
        read: readBy(given),
        ...(perStep?.address === undefined ? {} : { sentTo: sentToBy(perStep.address, given) }),
        output: {
          type: "object",
          properties: {
            status: { type: "integer" },
            body: { description: "What the target has answered: JSON where it is some, else its text" }
          },
          required: ["status", "body"]
        },
        primary_output: "body",
        sample: {
          inputs: {
            ...Object.fromEntries(
              Object.entries(written)
                .filter(isInput)
                .map(([name, value]) => [name, sampleText(value)])
            ),
            ...(perStep === undefined ? {} : { [perStep.name]: perStep.example })
          },
          output: { status: 200, body: {} }
        },
        rate_limit: pace === undefined ? null : { requests: pace.perSecond, period: "second" },
        call: (values, { mode, values: credentials }) => {
          const config = values as Config
          const payload = perStep === undefined ? null : (config[perStep.name] ?? null)
          const own = Object.fromEntries(
            Object.entries(config).filter(([name, value]) => name in given && value !== null)
          )
          const kept = Object.entries(credentials)
          const secret = Object.fromEntries(kept.filter(([name]) => Object.hasOwn(secrets, name)))
          const auth: OutboundAuth = {
            auth_type: mode === "none" ? null : mode.toUpperCase(),
            auth: Object.fromEntries(kept.filter(([name]) => !Object.hasOwn(secrets, name)))
          }
          const complete = settingsOf(row, { ...own, ...secret, ...perStep?.settings?.(payload) })
          if (Result.isFailure(complete)) {
            return Result.fail(
              invalid(complete.failure.map(({ message, path }) => ({ message, path: path.replace(/^config\./, "") })))
            )
          }
          const hidden = new Set(outboundAuthOf(auth.auth_type)?.readable)
          return Result.succeed({
            kind: "send",
            connector: row,
            settings: complete.success,
            auth,
            message: {
              method: "POST",
              path: "/",
              query: "",
              headers: {
                "content-type": typeof payload === "string" ? "text/plain; charset=utf-8" : "application/json"
              },
              body: bytesOf(payload)
            },
            secrets: [
              ...Object.entries(auth.auth).flatMap(([name, value]) =>
                typeof value === "string" && !hidden.has(name) ? [value] : []
              ),
              ...secretsIn(row, complete.success)
            ],
            output: outputOf
          })
        }
      })
    ]
  }
}

export const connectorProviders: ReadonlyArray<Provider> = connectors.filter(isAction).map(providerOf)
