import { Effect, type Schema } from "effect"
import { catalogFor, type SavedContent } from "@tidegate/actions/ActionCatalog"
import { formatterKey, sentToOf } from "@tidegate/actions/Providers"
import { faultsOfInputs } from "@tidegate/actions/SavedInputs"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { type Looked, placesIn, shownInputs } from "@tidegate/workflows/WrittenCredentials"
import type { ActionConfig } from "../Action.ts"

/** The content of a saved action: its check by its provider's code, and how it is shown. */

/** The part of an action that a run is pinned to. */
export const contentOf = ({
  action_key,
  config: { inputs, schema_version },
  provider_key
}: {
  readonly provider_key: string
  readonly action_key: string
  readonly config: ActionConfig
}): SavedContent => ({
  provider_key,
  action_key,
  version: schema_version,
  inputs
})

/** Both are made by `contentOf`, so their members have the same order. */
export const isSameContent = (one: SavedContent, other: SavedContent): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

const lookedAt = (provider: string): Looked => (provider === formatterKey ? "looks" : "names and looks")

/** The inputs of a saved action, with credentials masked. */
export const shownContent = ({ inputs, provider_key }: SavedContent): Schema.JsonObject =>
  shownInputs(inputs, lookedAt(provider_key))

/** Fails when no provider has the action, or it does not take these inputs. */
const checkInputs = Effect.fnUntraced(function* (content: SavedContent): Effect.fn.Return<void, GatewayError> {
  const catalog = yield* catalogFor([], new Map([["", content]]))
  const found = catalog.saved?.("")?.action
  const faults =
    found === undefined
      ? [{ path: "action_key", message: "no provider has this action: see GET /action-providers" }]
      : (yield* inSlices(faultsOfInputs(found, content.inputs))).map(({ message, path }) => ({
          path: `config.inputs.${path}`,
          message
        }))
  if (faults.length > 0) yield* invalid(faults)
})

/**
 * Inputs must not contain credentials: everyone who may read the action sees them, and each version keeps them. Inputs that were
 * saved before this rule stay until they are changed, and are masked where they are shown.
 */
const refuseCredentials = Effect.fnUntraced(function* (content: SavedContent): Effect.fn.Return<void, GatewayError> {
  const message =
    "must not contain a credential, because everyone who may read the action sees it: put it into credentials, or use a template"
  const places = placesIn(content.inputs, lookedAt(content.provider_key))
  if (places.length > 0) yield* invalid(places.map((place) => ({ path: `config.inputs.${place}`, message })))
})

/**
 * Credentials belong to the target of the saved inputs: the target is written out, and with another target they have to be
 * entered again. Fails closed: a user who may change an action may not read its credentials, and could otherwise have them sent
 * to a server of their own. `kept`: the previous content, when its credentials stay.
 */
const checkTarget = Effect.fnUntraced(function* (
  content: SavedContent,
  kept: SavedContent | null
): Effect.fn.Return<void, GatewayError> {
  const {
    inputs: [input],
    of
  } = sentToOf(content)
  const target = of(content.inputs)
  if (target === null) {
    const message = "must have a host without templates, because the credentials are sent there"
    yield* invalid([{ path: `config.inputs.${input}`, message }])
  }
  if (kept !== null && of(kept.inputs) !== target) {
    const message = "must be sent again, as a whole: what is stored belongs to another address"
    yield* invalid([{ path: "config.credentials", message }])
  }
})

/** Checks content to be saved. `before`: the stored content; null: the action is new. `credentials`: those that it will have. */
export const checkContent = Effect.fnUntraced(function* (
  content: SavedContent,
  before: SavedContent | null,
  credentials: "none" | "stored" | "written"
): Effect.fn.Return<void, GatewayError> {
  yield* checkInputs(content)
  if (before === null || !isSameContent(before, content)) yield* refuseCredentials(content)
  if (credentials !== "none") yield* checkTarget(content, credentials === "stored" ? before : null)
})
