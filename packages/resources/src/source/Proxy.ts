import { Result, Schema } from "effect"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import type { ProxySettings } from "@tidegate/model/Source"
import { urlFault } from "@tidegate/model/UrlFault"
import { describedAs } from "../DescribedAs.ts"
import { fieldError, type FieldErrors } from "../Input.ts"
import { HttpUrl, OneOf, optional } from "../Members.ts"

/** How `config.mode` and `config.proxy` are written and what they result in: each implies the other. */

const longestUrl = 2048
const defaultTimeoutMs = 10_000

/** A setting that may be absent or null: then it has its default. */
const setting = <S extends Schema.Top>(schema: S, message: string) =>
  optional(Schema.NullOr(schema).annotate({ message }))

const flag = (about: { readonly default?: boolean; readonly description?: string }) =>
  setting(Schema.Boolean.annotate(about), "must be true, false or null")

const between = (
  minimum: number,
  maximum: number,
  about: { readonly default: number; readonly description?: string }
) => {
  const message = `must be a whole number from ${minimum} to ${maximum}, or null`
  return setting(
    Schema.Number.check(
      Schema.makeFilter((n: number) => (Number.isInteger(n) && n >= minimum && n <= maximum) || message)
    ).pipe(describedAs(Schema.Int.check(Schema.isBetween({ minimum, maximum })).annotate(about))),
    message
  )
}

const members = {
  enabled: flag({ description: "true is mode proxy" }),
  target_url: setting(
    Schema.String.check(Schema.makeFilter((text: string) => urlFault(text, longestUrl) ?? true)),
    "must be a string"
  ),
  path_forwarding: flag({ default: true }),
  query_forwarding: flag({ default: true }),
  forward_credentials: flag({
    default: false,
    description:
      "Whether the upstream gets the credential that the source verifies its senders by, too. Other credentials that a sender presents are always forwarded"
  }),
  timeout_ms: between(1_000, 30_000, {
    description: "Milliseconds that the upstream may take",
    default: defaultTimeoutMs
  }),
  capture_response_bytes: between(0, maxCapturedBytes, {
    description: "Bytes of the upstream's answer that are stored; the sender gets all of it",
    default: maxCapturedBytes
  })
}

/** `{}` means none, as null does. */
export const Empty = Schema.Struct({}).pipe(
  describedAs(Schema.Record(Schema.String, Schema.Json).check(Schema.isMaxProperties(0)))
)

const Shown = Schema.Struct({
  ...members,
  target_url: HttpUrl(longestUrl).annotate({ examples: ["https://api.example.com/base"] })
}).annotate({ identifier: "ProxySettings", description: "The API whose answer the senders get." })

export const Proxy = Schema.NullOr(Schema.Struct(members))
  .annotate({ message: "must be an object or null" })
  .pipe(describedAs(Schema.Union([Shown, Empty, Schema.Null])))

export const Mode = OneOf(["webhook", "proxy"]).annotate({
  description: "Default: webhook, or proxy if `proxy` is enabled"
})
export type Mode = typeof Mode.Type

interface Written {
  readonly mode?: Mode
  readonly proxy?: typeof Proxy.Type
}

interface Settled {
  readonly mode: Mode
  readonly proxy: ProxySettings | null
}

/**
 * Mode and proxy after a change. `proxy.enabled` and mode `proxy` are one setting: writing one sets the other, and both together
 * must agree. Written proxy settings replace the stored ones as a whole; in webhook mode they are stored but not used.
 */
export const modeAndProxy = (written: Written, stored: Settled): Result.Result<Settled, FieldErrors> => {
  const given = written.proxy === undefined ? undefined : isEmpty(written.proxy) ? null : written.proxy
  const enabled = given?.enabled ?? undefined
  if (written.mode !== undefined && enabled !== undefined && enabled !== (written.mode === "proxy")) {
    return fieldError("config.proxy.enabled", `must not be ${enabled} when config.mode is "${written.mode}"`)
  }
  const mode = written.mode ?? (enabled === undefined ? stored.mode : enabled ? "proxy" : "webhook")
  const proxy = given === undefined ? stored.proxy : given
  if (proxy === null) {
    return mode === "proxy"
      ? fieldError("config.proxy", 'is required while config.mode is "proxy"')
      : Result.succeed({ mode, proxy })
  }
  if (typeof proxy.target_url !== "string") {
    return fieldError("config.proxy.target_url", "is required: an absolute http or https URL")
  }
  return Result.succeed({
    mode,
    proxy: {
      enabled: mode === "proxy",
      target_url: proxy.target_url,
      path_forwarding: proxy.path_forwarding ?? true,
      query_forwarding: proxy.query_forwarding ?? true,
      forward_credentials: proxy.forward_credentials ?? false,
      timeout_ms: proxy.timeout_ms ?? defaultTimeoutMs,
      capture_response_bytes: proxy.capture_response_bytes ?? maxCapturedBytes
    }
  })
}

const isEmpty = (proxy: object | null): boolean => proxy === null || Object.keys(proxy).length === 0
