import { Effect, type Schema } from "effect"
import { accountChoices } from "@tidegate/actions/AccountChoices"
import { fixedChoices } from "@tidegate/actions/Choices"
import { ActionOptionsInput, type Choice } from "@tidegate/model/ActionCatalog"
import { fail } from "@tidegate/model/GatewayError"
import { bodyOf } from "@tidegate/resources/Resource"
import type { Actions } from "@tidegate/storage/workflows/Actions"
import { type Behind, named } from "@tidegate/storage/reads/NamedReads"
import { read, type Reader } from "../handlers/Calls.ts"
import { accountOptions } from "./AccountOptions.ts"
import { cursorOf, placeOf } from "./ChoicesCursor.ts"

/** The choices for the inputs of actions. */

const body = bodyOf(ActionOptionsInput)

type Table = "sources" | "destinations"

/** Choices from the team's own resources, by provider and resource. */
const stored: Readonly<Record<string, Readonly<Record<string, Table>>>> = {
  gateway: { sources: "sources", destinations: "destinations" }
}

const isBehind = ({ id, name }: Choice, behind: Behind | null): boolean =>
  behind === null || name > behind.name || (name === behind.name && id > behind.id)

const known = (provider: string): ReadonlyArray<string> =>
  Object.keys({ ...own(stored, provider), ...own(fixedChoices, provider), ...own(accountChoices, provider) })

const own = <A>(of: Readonly<Record<string, A>>, name: string): A | undefined =>
  Object.hasOwn(of, name) ? of[name] : undefined

/** One page. */
export const optionsOf = Effect.fnUntraced(function* (
  team_id: string,
  written: Schema.JsonObject,
  actions: Actions["Service"],
  reading: Reader
) {
  const asked = yield* Effect.fromResult(body.judge(written))
  const { action_id, provider_account_id, provider_key, resource } = asked
  if (action_id !== undefined && action_id !== null) yield* read(actions.get(team_id, action_id))
  const place = yield* Effect.fromResult(placeOf(asked.cursor))
  const limit = asked.limit ?? 50
  const query = (asked.query ?? "").toLowerCase()
  const table = own(own(stored, provider_key) ?? {}, resource)
  const fixed = own(own(fixedChoices, provider_key) ?? {}, resource)
  const ofAccount = own(own(accountChoices, provider_key) ?? {}, resource)
  const account = provider_account_id ?? null
  if (account !== null && ofAccount === undefined) {
    return yield* fail("PROVIDER_ACCOUNT_NOT_CONNECTED", "these choices are of no provider account")
  }
  if (table === undefined && fixed === undefined && ofAccount === undefined) {
    const resources = known(provider_key)
    return yield* fail(
      "ACTION_OPTIONS_INVALID",
      resources.length === 0
        ? `${provider_key} has nothing that is chosen from`
        : `${provider_key} has no resource of that name: it has ${resources.join(", ")}`,
      { provider_key, resource, resources: [...resources] }
    )
  }
  const isWanted = ({ id, name }: Choice): boolean =>
    name.toLowerCase().includes(query) || id.toLowerCase().includes(query)
  if (ofAccount !== undefined) {
    const asked = { team_id, provider_key, account_id: account, place, limit, isWanted }
    const { models, next } = yield* accountOptions(asked, ofAccount)
    return { models, next_cursor: next === null ? null : cursorOf(next) }
  }
  const { behind } = place
  const found =
    table === undefined
      ? fixed!().filter((choice) => isWanted(choice) && isBehind(choice, behind))
      : yield* reading(named(team_id, table, { query, behind, limit: limit + 1 }))
  const models = found.slice(0, limit)
  const last = models.at(-1)
  const isMore = found.length > limit && last !== undefined
  return { models, next_cursor: isMore ? cursorOf({ page: null, behind: last }) : null }
})
