import { Effect, Option, Result, Schema } from "effect"
import { fixedChoices } from "@tidegate/actions/Choices"
import { ActionOptionsInput, type Choice } from "@tidegate/model/ActionCatalog"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { bodyOf } from "@tidegate/resources/Resource"
import type { Actions } from "@tidegate/storage/workflows/Actions"
import { type Behind, named } from "@tidegate/storage/reads/NamedReads"
import { read, type Reader } from "../handlers/Calls.ts"

/** The choices for the inputs of actions. */

const body = bodyOf(ActionOptionsInput)

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
  Object.keys({ ...own(stored, provider), ...own(fixedChoices, provider) })

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
  if ((provider_account_id ?? null) !== null) {
    yield* fail("PROVIDER_ACCOUNT_NOT_CONNECTED", "there are no provider accounts yet")
  }
  if (action_id !== undefined && action_id !== null) yield* read(actions.get(team_id, action_id))
  const behind = yield* Effect.fromResult(behindOf(asked.cursor))
  const limit = asked.limit ?? 50
  const query = (asked.query ?? "").toLowerCase()
  const table = own(own(stored, provider_key) ?? {}, resource)
  const fixed = own(own(fixedChoices, provider_key) ?? {}, resource)
  if (table === undefined && fixed === undefined) {
    const resources = known(provider_key)
    return yield* fail(
      "ACTION_OPTIONS_INVALID",
      resources.length === 0
        ? `${provider_key} has nothing that is chosen from`
        : `${provider_key} has no resource of that name: it has ${resources.join(", ")}`,
      { provider_key, resource, resources: [...resources] }
    )
  }
  const found =
    table === undefined
      ? fixed!()
          .filter(({ id, name }) => name.toLowerCase().includes(query) || id.toLowerCase().includes(query))
          .filter((choice) => isBehind(choice, behind))
      : yield* reading(named(team_id, table, { query, behind, limit: limit + 1 }))
  const models = found.slice(0, limit)
  const last = models.at(-1)
  return { models, next_cursor: found.length > limit && last !== undefined ? cursorOf(last) : null }
})
