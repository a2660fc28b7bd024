import { Effect } from "effect"
import { providerOrigins, sourceProviders } from "@tidegate/channels/SourceProviders"
import { knownOrigins } from "@tidegate/connectors/Connectors"
import { SettingsError } from "./SettingsError.ts"

/** Variables whose values are lists with commas between their parts. */

/** The parts of a comma-separated list. */
export const listed = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")

/** The origin of a URL that consists of an origin alone; null otherwise. */
const originOf = (text: string | undefined): string | null => {
  const url = URL.parse(text ?? "")
  return url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` ? url.origin : null
}

/** The origins of all APIs with a fixed address: those of destinations, and those of the providers of sources. */
const calledOrigins: ReadonlySet<string> = new Set([...knownOrigins, ...providerOrigins(sourceProviders)])

/** Pairs of origins: `https://api.example.com=http://127.0.0.1:9000`. */
export const origins = Effect.fnUntraced(function* (name: string, text: string) {
  const pairs = new Map<string, string>()
  for (const pair of listed(text)) {
    const [known, found, ...more] = pair.split("=").map(originOf)
    if (!known || !found || more.length > 0) {
      return yield* new SettingsError({
        message: `${name} must be pairs of http or https origins like https://api.example.com=http://127.0.0.1:9000`
      })
    }
    // Refused, because it would have no effect and the calls would go to the API itself.
    if (!calledOrigins.has(known)) {
      return yield* new SettingsError({
        message: `${name} names ${known}, which the gateway does not call; it knows ${[...calledOrigins].join(", ")}`
      })
    }
    pairs.set(known, found)
  }
  return pairs
})

/** Origins in the browsers' form. `*` is refused: what every page may call needs no list, and all other calls require a credential. */
export const pageOrigins = Effect.fnUntraced(function* (name: string, text: string) {
  const found = new Set<string>()
  for (const written of listed(text)) {
    const origin = originOf(written)
    // Refused, because it would be a host name that matches nothing.
    if (origin === null || origin.includes("*")) {
      return yield* new SettingsError({
        message: `${name} must be http or https origins like https://app.example.com, without a path, with commas between them: "${written}" is none`
      })
    }
    found.add(origin)
  }
  return found
})

export const domains = Effect.fnUntraced(function* (name: string, text: string) {
  const found = new Set<string>()
  for (const domain of listed(text)) {
    const host = URL.parse(`http://${domain}`)?.hostname
    if (host === undefined || !host.includes(".") || host !== domain.toLowerCase()) {
      return yield* new SettingsError({ message: `${name} must be domains like example.com, with commas between them` })
    }
    found.add(host)
  }
  return found
})
