import type { GenericAuth } from "./GenericAuth.ts"
import type { PresentedNames, PresentedPlaces } from "./PresentedSecrets.ts"
import { presentedMask } from "./PresentedSecrets.ts"
import type { Provider, ProviderAuth } from "./Provider.ts"
import { providers } from "./Providers.ts"

const nowhere: PresentedNames = { headers: [], query: [] }

/** Where the senders of a provider present a credential: from the provider's row, and from the settings in `auth`. */
const ofProvider = ({ presents, verification }: Provider, auth: ProviderAuth = {}): PresentedNames => {
  const checked =
    verification.kind === "token"
      ? (verification.header ?? auth["header_key"])
      : verification.kind === "scheme"
        ? verification.tokenHeader
        : undefined
  return {
    headers: [...(presents?.headers ?? []), ...(checked === undefined ? [] : [checked.toLowerCase()])],
    query: presents?.query ?? []
  }
}

/** The headers and parameters by which a verified provider authenticates. HTTP Basic uses `authorization`, which no setting names. */
const ownOf = (provider: Provider, auth: ProviderAuth): PresentedNames => {
  const { headers, query } = ofProvider(provider, auth)
  return { headers: provider.verification.kind === "basic" ? ["authorization", ...headers] : headers, query }
}

const ofSettings = ({ auth, auth_type }: GenericAuth): PresentedNames =>
  auth_type === "API_KEY"
    ? {
        headers: auth.header_key === undefined ? [] : [auth.header_key.toLowerCase()],
        query: auth.query_key === undefined ? [] : [auth.query_key.toLowerCase()]
      }
    : { headers: auth_type === "BASIC_AUTH" ? ["authorization"] : [], query: [] }

/**
 * Headers that hold a credential by the definition of HTTP, and headers in which some provider presents one under a name of its own. They
 * are masked on every source, verified or not: an open source in proxy mode is called with bearer tokens, and GitLab sends its token even if
 * its source does not verify.
 *
 * A signature in `authorization` is masked too. It is restored on delivery, so targets still receive it, and one list serves all sources.
 */
export const credentialHeaders: ReadonlyArray<string> = [
  ...new Set([
    "authorization",
    "proxy-authorization",
    "cookie",
    ...providers.flatMap((provider) => ofProvider(provider).headers)
  ])
]

/** The provider of the source's type counts even if the source verifies by another scheme: the provider sends its credentials anyway. */
export const presentedPlaces = (
  provider: Provider | undefined,
  by:
    | { readonly by: "nobody" }
    | { readonly by: "provider"; readonly provider: Provider; readonly auth: ProviderAuth }
    | { readonly by: "settings"; readonly generic: GenericAuth }
): PresentedPlaces => {
  const own = by.by === "nobody" ? nowhere : by.by === "provider" ? ownOf(by.provider, by.auth) : ofSettings(by.generic)
  const places = [provider === undefined ? nowhere : ofProvider(provider), own]
  return {
    headers: [...new Set([...credentialHeaders, ...places.flatMap(({ headers }) => headers)])],
    query: [...new Set(places.flatMap(({ query }) => query.map((name) => name.toLowerCase())))],
    ...(own.headers.length + own.query.length === 0
      ? {}
      : { own: { headers: own.headers, query: own.query.map((name) => name.toLowerCase()) } })
  }
}

/** Stored headers for display: credentials that an older version stored in plain text are masked, too. */
export const shownHeaders = <Value extends string | ReadonlyArray<string>>(
  headers: Readonly<Record<string, Value>>
): Record<string, Value | string | ReadonlyArray<string>> => {
  const shown: Record<string, Value | string | ReadonlyArray<string>> = { ...headers }
  for (const name of credentialHeaders) {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined
    if (value === undefined || value === "") continue
    shown[name] = typeof value === "string" ? presentedMask : value.map(() => presentedMask)
  }
  return shown
}
