import { eventSub } from "./providers/EventSub.ts"
import { gitHost } from "./providers/GitHost.ts"
import { graph } from "./providers/Graph.ts"
import { jsonFeed } from "./providers/JsonFeed.ts"
import { watch } from "./providers/Watch.ts"
import { webSub } from "./providers/WebSub.ts"
import type { SourceProvider, Trigger } from "./SourceProvider.ts"

/** Every provider of sources. */
export const sourceProviders: ReadonlyArray<SourceProvider> = [webSub, jsonFeed, watch, graph, eventSub, gitHost]

export const sourceProviderOf = (key: string): SourceProvider | undefined =>
  sourceProviders.find((provider) => provider.key === key)

/** A definition: one way to deliver a trigger. */
export interface Definition {
  readonly key: string
  readonly mode: "instant" | "polling"
  readonly provider: SourceProvider
  readonly trigger: Trigger
}

/** The suffix of the polling definition of a trigger that has both ways. */
const polling = "_polling"

/** The definitions of a provider: for a trigger with both ways the instant one and then the polling one. */
export const definitionsOf = (provider: SourceProvider): ReadonlyArray<Definition> =>
  provider.triggers.flatMap((trigger) =>
    trigger.adapter === null
      ? [{ key: trigger.key, mode: "polling" as const, provider, trigger }]
      : [
          { key: trigger.key, mode: "instant" as const, provider, trigger },
          { key: trigger.key + polling, mode: "polling" as const, provider, trigger }
        ]
  )

export const definitionOf = (providerKey: string, key: string): Definition | undefined => {
  const provider = sourceProviderOf(providerKey)
  return provider === undefined ? undefined : definitionsOf(provider).find((definition) => definition.key === key)
}

/** The origins that calls of these providers lead to, unless an account names another one. */
export const providerOrigins = (providers: ReadonlyArray<SourceProvider>): ReadonlySet<string> =>
  new Set(
    providers.flatMap(({ account }) => {
      if (account === null) return []
      const { oauth2, origin } = account
      const urls = [origin, ...(oauth2 === null ? [] : [oauth2.tokenUrl, oauth2.revocationUrl ?? origin])]
      return urls.map((url) => new URL(url, origin).origin)
    })
  )

/** What the two definitions of a trigger have in common. */
export const pairKeyOf = (provider: SourceProvider, trigger: Trigger): string => `${provider.key}.${trigger.key}`

/** The definition of the same trigger with the other mode; undefined: the trigger has only one way. */
export const pairOf = ({ key, provider, trigger }: Definition): Definition | undefined =>
  definitionsOf(provider).find((other) => other.trigger === trigger && other.key !== key)
