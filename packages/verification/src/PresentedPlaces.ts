import type { GenericAuth } from "./GenericAuth.ts"
import type { PresentedNames, PresentedPlaces } from "./PresentedSecrets.ts"
import { presentedMask } from "./PresentedSecrets.ts"
import type { Provider, ProviderAuth } from "./Provider.ts"
import { providers } from "./Providers.ts"

const nowhere: PresentedNames = { headers: [], query: [] }

/** Where the senders of a provider present a credential, as far as its row says; `auth` says the rest. */
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

/** What a request of a verified provider proves itself by: HTTP Basic has its credential where no setting names it. */
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
 * Headers that hold a credential by HTTP's own definition, whoever sends them where; and those in which some provider
 * presents one under a name of its own. They are taken on every source, verified or not: an open source in proxy mode is
 * called with bearer tokens, and a GitLab whose source verifies nobody sends its token all the same.
 *
 * A signature in `authorization` is taken too: it is forwarded as it came, so nobody misses it, and one list serves all.
 */
export const credentialHeaders: ReadonlyArray<string> = [
  ...new Set([
    "authorization",
    "proxy-authorization",
    "cookie",
    ...providers.flatMap((provider) => ofProvider(provider).headers)
  ])
]

/** The source's own type counts also when it is verified otherwise: its provider sends what it sends. */
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

/** Stored headers as they may be shown: what an older version has stored in the clear reads as the mask too. */
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
