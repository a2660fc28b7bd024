import type { Provider } from "./Provider.ts"
import { codeProviders } from "./providers/code.ts"
import { credentialProviders } from "./providers/credentials.ts"
import { signedProviders } from "./providers/signed.ts"
import { timedProviders } from "./providers/timed.ts"

/** Every provider whose requests can be verified by the source's type alone. */
export const providers: ReadonlyArray<Provider> = [
  ...signedProviders,
  ...timedProviders,
  ...credentialProviders,
  ...codeProviders
]

const byType: ReadonlyMap<string, Provider> = new Map(
  providers.flatMap((provider) => provider.types.map((type): [string, Provider] => [type, provider]))
)

/** The provider of a source's `type`; undefined for other types, which verify by their settings. */
export const providerOf = (type: string): Provider | undefined => byType.get(type)

/** The provider whose rules verify a source of `type` with this stored `auth_type`. */
export const providerFor = (type: string, authType: string | null): Provider | undefined => {
  const provider = byType.get(type)
  return provider?.authType === authType ? provider : undefined
}
