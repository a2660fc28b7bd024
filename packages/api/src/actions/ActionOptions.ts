import { Effect, Option, Result, Schema } from "effect"
import { type AccountChoices, accountChoices } from "@tidegate/actions/AccountChoices"
import { fixedChoices } from "@tidegate/actions/Choices"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import { ProviderCalls } from "@tidegate/entities/accounts/ProviderCalls"
import { parseJson } from "@tidegate/json/JsonText"
import { ActionOptionsInput, type Choice } from "@tidegate/model/ActionCatalog"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Json } from "@tidegate/model/Rule"
import { bodyOf } from "@tidegate/resources/Resource"
import type { Actions } from "@tidegate/storage/workflows/Actions"
import { type Behind, named } from "@tidegate/storage/reads/NamedReads"
import { read, type Reader } from "../handlers/Calls.ts"

/** The choices for the inputs of actions. */

const body = bodyOf(ActionOptionsInput)

/** How long a provider may take to list its choices. */
const patience = "10 seconds"

type Table = "sources" | "destinations"

/** Choices from the team's own resources, by provider and resource. */
const stored: Readonly<Record<string, Readonly<Record<string, Table>>>> = {
  gateway: { sources: "sources", destinations: "destinations" }
}

const Cursor = Schema.fromJsonString(Schema.Tuple([Schema.String, Schema.String]))
const decode = Schema.decodeUnknownOption(Cursor)

const cursorOf = ({ id, name }: Behind): string => Buffer.from(JSON.stringify([name, id])).toString("base64url")

const behindOf = (cursor: string | null | undefined): Result.Result<Behind | null, GatewayError> => {
  if (cursor === undefined || cursor === null) return Result.succeed(null)
  const read = decode(Buffer.from(cursor, "base64url").toString("utf8"))
  return Option.isNone(read)
    ? Result.fail(fail("INVALID_CURSOR", "the cursor was not returned by this list"))
    : Result.succeed({ name: read.value[0], id: read.value[1] })
}

const isBehind = ({ id, name }: Choice, behind: Behind | null): boolean =>
  behind === null || name > behind.name || (name === behind.name && id > behind.id)

const known = (provider: string): ReadonlyArray<string> =>
  Object.keys({ ...own(stored, provider), ...own(fixedChoices, provider), ...own(accountChoices, provider) })

const own = <A>(of: Readonly<Record<string, A>>, name: string): A | undefined =>
  Object.hasOwn(of, name) ? of[name] : undefined

const notConnected = (message: string) => fail("PROVIDER_ACCOUNT_NOT_CONNECTED", message)

/** Asks the provider for the choices of an account's owner, ordered by name. */
const ofAccountNamed = Effect.fnUntraced(function* (
  team_id: string,
  provider_key: string,
  account_id: string | null,
  { path, read }: AccountChoices
): Effect.fn.Return<ReadonlyArray<Choice>, GatewayError, ProviderCalls> {
  if (account_id === null) return yield* notConnected("name a connected account in provider_account_id")
  const provider = (yield* KnownProviders).find(({ key }) => key === provider_key)
  if (provider === undefined) return yield* notConnected("the provider is not known here")
  const { baseUrl, of } = yield* ProviderCalls
  const owner = { team_id, provider, account_id }
  const { body, status, truncated } = yield* of(owner)({
    method: "GET",
    url: (yield* baseUrl(owner)) + path,
    headers: { accept: "application/json" },
    authorized: true
  }).pipe(
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => fail("PROVIDER_FAILED", "the provider did not answer in time")
    }),
    Effect.mapError((error) => {
      if (error._tag === "GatewayError") return error
      return error.code === "ACCOUNT_UNAUTHORIZED"
        ? notConnected(error.message)
        : fail("PROVIDER_FAILED", error.message)
    })
  )
  if (status === 401) return yield* notConnected("the provider refuses the account's credentials: connect it again")
  const parsed = status === 200 && !truncated ? parseJson(body) : null
  if (parsed?.kind !== "json") return yield* fail("PROVIDER_FAILED", `the provider does not list them: HTTP ${status}`)
  return read(parsed.value as Json).toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
})

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
  const behind = yield* Effect.fromResult(behindOf(asked.cursor))
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
  const matching = (choices: ReadonlyArray<Choice>) =>
    choices
      .filter(({ id, name }) => name.toLowerCase().includes(query) || id.toLowerCase().includes(query))
      .filter((choice) => isBehind(choice, behind))
  const found =
    table !== undefined
      ? yield* reading(named(team_id, table, { query, behind, limit: limit + 1 }))
      : matching(ofAccount === undefined ? fixed!() : yield* ofAccountNamed(team_id, provider_key, account, ofAccount))
  const models = found.slice(0, limit)
  const last = models.at(-1)
  return { models, next_cursor: found.length > limit && last !== undefined ? cursorOf(last) : null }
})
