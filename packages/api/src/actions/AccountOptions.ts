import { Effect } from "effect"
import type { AccountChoices } from "@tidegate/actions/AccountChoices"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import { ProviderCalls } from "@tidegate/entities/accounts/ProviderCalls"
import { parseJson } from "@tidegate/json/JsonText"
import type { Choice } from "@tidegate/model/ActionCatalog"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Json } from "@tidegate/model/Rule"
import type { Place } from "./ChoicesCursor.ts"

/** Choices that a provider lists for the owner of an account. */

/** How long a provider may take to list its choices. */
const patience = "10 seconds"
/** Pages of the provider that one call reads. With a query most pages may have nothing that matches. */
const maxPages = 10

const notConnected = (message: string) => fail("PROVIDER_ACCOUNT_NOT_CONNECTED", message)

export interface AskedOfAccount {
  readonly team_id: string
  readonly provider_key: string
  readonly account_id: string | null
  readonly place: Place
  readonly limit: number
  readonly isWanted: (choice: Choice) => boolean
}

interface Found {
  readonly models: ReadonlyArray<Choice>
  /** Null: there are no more. */
  readonly next: Place | null
}

const byName = (a: Choice, b: Choice): number =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : a.id > b.id ? 1 : 0

/**
 * Up to `limit` choices from this place on. The choices of a provider's page are ordered by name, and pages are in the provider's
 * order: all of them cannot be read before the first one is answered. It returns fewer when the pages of one call have no more.
 */
export const accountOptions = Effect.fnUntraced(function* (
  { account_id, isWanted, limit, place, provider_key, team_id }: AskedOfAccount,
  choices: AccountChoices
): Effect.fn.Return<Found, GatewayError, ProviderCalls> {
  if (account_id === null) return yield* notConnected("name a connected account in provider_account_id")
  const provider = (yield* KnownProviders).find(({ key }) => key === provider_key)
  if (provider === undefined) return yield* notConnected("the provider is not known here")
  const { baseUrl, of } = yield* ProviderCalls
  const owner = { team_id, provider, account_id }
  const base = yield* baseUrl(owner)

  const read = Effect.fnUntraced(function* (page: string | null) {
    const { body, headers, status, truncated } = yield* Effect.mapError(
      of(owner)({
        method: "GET",
        url: base + choices.path(page),
        headers: { accept: "application/json" },
        authorized: true
      }),
      ({ code, message }) =>
        code === "ACCOUNT_UNAUTHORIZED" ? notConnected(message) : fail("PROVIDER_FAILED", message)
    )
    if (status === 401) return yield* notConnected("the provider refuses the account's credentials: connect it again")
    const parsed = status === 200 && !truncated ? parseJson(body) : null
    if (parsed?.kind !== "json")
      return yield* fail("PROVIDER_FAILED", `the provider does not list them: HTTP ${status}`)
    const answer = parsed.value as Json
    return { listed: choices.read(answer), next: choices.next(answer, headers["link"] ?? "", page) }
  })

  const walk = Effect.gen(function* () {
    const models: Array<Choice> = []
    let { behind, page } = place
    for (let count = 0; count < maxPages; count++) {
      const { listed, next } = yield* read(page)
      for (const choice of listed.filter(isWanted).toSorted(byName)) {
        if (behind !== null && byName(choice, { ...behind, description: null }) <= 0) continue
        const last = models.at(-1)
        if (last !== undefined && models.length === limit) return { models, next: { page, behind: last } }
        models.push(choice)
        if (models.length === limit) behind = null
      }
      if (next === null) return { models, next: null }
      page = next
      behind = null
      if (models.length === limit) break
    }
    return { models, next: { page, behind: null } }
  })
  return yield* Effect.timeoutOrElse(walk, {
    duration: patience,
    orElse: () => fail("PROVIDER_FAILED", "the provider did not answer in time")
  })
})
