import { Config, Effect, Option, Redacted, Result } from "effect"
import { SettingsError } from "./SettingsError.ts"

/** An address alone, without a name. */
const mailAddress = /^[\x21-\x3b\x3d\x3f\x41-\x7e]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+$/

/** Whether user name and password are percent-encoded correctly. */
const isEncoded = ({ password, username }: URL): boolean =>
  Result.isSuccess(Result.try(() => decodeURIComponent(username + password)))

/** The mail server for alerts. The error contains no part of the URL, which may have a password. */
export const mailServer = Effect.fnUntraced(function* () {
  const url = Option.getOrNull(yield* Config.option(Config.Redacted("SMTP_URL")))
  const from = Option.getOrNull(yield* Config.option(Config.String("SMTP_FROM")))
  if (url === null && from === null) return null
  if (url === null || from === null)
    return yield* new SettingsError({ message: "SMTP_URL and SMTP_FROM need each other" })
  const parsed = URL.parse(Redacted.value(url))
  const isBare = parsed !== null && /^\/?$/.test(parsed.pathname) && parsed.search === "" && parsed.hash === ""
  if (
    parsed === null ||
    !/^smtps?:$/.test(parsed.protocol) ||
    parsed.hostname === "" ||
    !isBare ||
    !isEncoded(parsed)
  ) {
    return yield* new SettingsError({
      message:
        "SMTP_URL must be a URL like smtp://user:password@mail.example.com:587 or smtps://mail.example.com, without a path"
    })
  }
  if (!mailAddress.test(from)) {
    return yield* new SettingsError({ message: "SMTP_FROM must be an e-mail address like alerts@example.com" })
  }
  return { url, from }
})
