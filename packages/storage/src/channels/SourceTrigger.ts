import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { definitionOf } from "@tidegate/channels/SourceProviders"
import type { SourceProvider, Trigger } from "@tidegate/channels/SourceProvider"

/** A description of a source's requests, for reads of workflows and runs. */
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

/** A source's name, and what its requests are; the name is null when the team has no such source. */
export const triggerOfSource = Effect.fnUntraced(function* (
  team_id: string,
  source_id: string
): Effect.fn.Return<
  { readonly source: string | null; readonly trigger: SourceTrigger },
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql<{ name: string; provider_key: string | null; definition_key: string | null }>`
    select s.name, ${sql.literal(triggerKeys)} from sources s where s.id = ${source_id} and s.team_id = ${team_id}`
  return {
    source: found?.name ?? null,
    trigger: sourceTrigger(found?.provider_key ?? null, found?.definition_key ?? null)
  }
})

/** How an item of a provider came. `mode`: the value of the header that the gateway adds to it. */
export const itemMode = (mode: unknown): "instant" | "polling" => (mode === "instant" ? "instant" : "polling")

/** The header of an item that says how it came. */
export const modeHeader = "x-gateway-delivery-mode"
