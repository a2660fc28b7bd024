import { Effect, Option } from "effect"
import { SettingsError } from "./SettingsError.ts"

export const loopback: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "::1"])

/** The same in URLs. */
export const ownNames: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"])

/** A URL to which paths can be appended. */
const isBase = ({ hash, protocol, search }: URL): boolean => /^https?:$/.test(protocol) && search === "" && hash === ""

/** The URL of a gateway that only this machine reaches. Any other URL cannot be derived: a proxy, a name or a forwarded port may be before it. */
export const publicUrlOf = (
  given: Option.Option<URL>,
  { host, port, scheme }: { readonly host: string; readonly port: number; readonly scheme: string }
): Effect.Effect<string, SettingsError> => {
  if (Option.isSome(given)) {
    return isBase(given.value)
      ? Effect.succeed(given.value.href.replace(/\/+$/, ""))
      : Effect.fail(new SettingsError({ message: "PUBLIC_URL must be an http or https URL without a query" }))
  }
  return loopback.has(host)
    ? Effect.succeed(`${scheme}://localhost:${port}`)
    : Effect.fail(
        new SettingsError({
          message: `PUBLIC_URL is needed where HOST is not loopback (${host}): set it to the URL by which others reach the gateway, such as https://gateway.example.com`
        })
      )
}
