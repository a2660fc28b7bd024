import { definitionOf } from "@tidegate/channels/SourceProviders"
import type { SourceProvider, Trigger } from "@tidegate/channels/SourceProvider"

/** What a source's requests are, for those who read about workflows and runs. */
export interface SourceTrigger {
  readonly provider_key: string | null
  readonly definition_key: string | null
  readonly name: string
  /** Null: no provider describes the requests. */
  readonly described: { readonly provider: SourceProvider; readonly trigger: Trigger } | null
}

/** The trigger of a source with these keys, which are null for a source that is no provider source. */
export const sourceTrigger = (provider_key: string | null, definition_key: string | null): SourceTrigger => {
  if (provider_key === null || definition_key === null) {
    return { provider_key: null, definition_key: null, name: "Webhook", described: null }
  }
  const described = definitionOf(provider_key, definition_key) ?? null
  return { provider_key, definition_key, name: described?.trigger.name ?? definition_key, described }
}

/** The columns with both keys, of rows of sources with the alias `s`. */
export const triggerKeys =
  "s.config -> 'provider' ->> 'provider_key' as provider_key, s.config -> 'provider' ->> 'definition_key' as definition_key"
