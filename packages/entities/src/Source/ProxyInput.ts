import { Result, Schema } from "effect"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import type { ProxySettings } from "@tidegate/model/Source"
import { fieldError, type FieldErrors } from "@tidegate/resources/Input"
import { urlFault } from "@tidegate/model/UrlFault"

/** How `config.mode` and `config.proxy` are written, and what becomes of them: each implies the other. */

const longestUrl = 2048
const defaultTimeoutMs = 10_000

/** A setting that may be left out, or null: then it has its default. */
const setting = <S extends Schema.Top>(schema: S, message: string) =>
  Schema.optionalKey(Schema.NullOr(schema).annotate({ message }))

const flag = setting(Schema.Boolean, "must be true, false or null")

const between = (minimum: number, maximum: number) => {
  const message = `must be a whole number from ${minimum} to ${maximum}, or null`
  return setting(
    Schema.Number.check(
      Schema.makeFilter((n: number) => (Number.isInteger(n) && n >= minimum && n <= maximum) || message)
    ),
    message
  )
}

export const ProxyInput = Schema.NullOr(
  Schema.Struct({
    enabled: flag,
    target_url: setting(
      Schema.String.check(Schema.makeFilter((text: string) => urlFault(text, longestUrl) ?? true)),
      "must be a string"
    ),
    path_forwarding: flag,
    query_forwarding: flag,
    timeout_ms: between(1_000, 30_000),
    capture_response_bytes: between(0, maxCapturedBytes)
  })
).annotate({ message: "must be an object or null" })

export type Mode = "webhook" | "proxy"

interface Written {
  readonly mode?: Mode
  readonly proxy?: typeof ProxyInput.Type
}

interface Settled {
  readonly mode: Mode
  readonly proxy: ProxySettings | null
}

/**
 * Mode and proxy after a change. `proxy.enabled` and mode `proxy` are one setting: who writes one has written the other,
 * and both at once must agree. Written proxy settings replace the stored ones whole; in webhook mode they lie dormant.
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
      timeout_ms: proxy.timeout_ms ?? defaultTimeoutMs,
      capture_response_bytes: proxy.capture_response_bytes ?? maxCapturedBytes
    }
  })
}

const isEmpty = (proxy: object | null): boolean => proxy === null || Object.keys(proxy).length === 0
