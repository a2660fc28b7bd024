import type { Action } from "@tidegate/workflows/Catalog"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Result } from "effect"
import { account as accountMode, none as noMode } from "./AuthModes.ts"
import type { Call } from "./Call.ts"
import {
  type Credentials,
  type Inputs,
  noCredentials,
  type Provider,
  type ProviderAction,
  type SentTo
} from "./Provider.ts"
import { connectorProviders } from "./providers/Connectors.ts"
import { eventsub } from "./providers/EventSub.ts"
import { gateway } from "./providers/Gateway.ts"
import { gitHost } from "./providers/GitHost.ts"
import { graph } from "./providers/Graph.ts"
import { http } from "./providers/Http.ts"
import { jsonFeed } from "./providers/JsonFeed.ts"
import { storage } from "./providers/Storage.ts"
import { watch } from "./providers/Watch.ts"
import { websub } from "./providers/WebSub.ts"

/** Every provider whose actions make calls: all except the formatter, whose libraries take 25 MB (`Manifest.ts`). */
export const callingProviders: ReadonlyArray<Provider> = [
  http,
  gateway,
  jsonFeed,
  storage,
  gitHost,
  watch,
  graph,
  eventsub,
  websub,
  ...connectorProviders
]

/** Names an action of a provider. */
export interface ActionName {
  readonly provider_key: string
  readonly action_key: string
  readonly version: string
}

const actions: ReadonlyMap<string, readonly [Provider, ProviderAction]> = new Map(
  callingProviders.flatMap((provider) =>
    provider.actions.map((action) => [`${provider.key}\0${action.key}`, [provider, action]])
  )
)

const find = ({ action_key, provider_key, version }: ActionName): readonly [Provider, ProviderAction] | null => {
  const found = actions.get(`${provider_key}\0${action_key}`)
  return found?.[1].version === version ? found : null
}

/** The result for an action without credentials, and for providers that are not in this list. */
export { accountMode, noMode }

/** The provider that `callingProviders` does not have. */
export const formatterKey = "formatter"

/** The provider of a key. */
export const providerOf = (key: string): Provider | undefined => callingProviders.find((one) => one.key === key)

/** The action as a step calls a saved one; null: there is no action of that name and version. */
export const actionOf = (name: ActionName): Action | null => find(name)?.[1].action ?? null

const needsCredentials = ({ auth }: Provider): boolean =>
  !auth.some(({ fields, key }) => key === "none" && fields.every(({ required }) => !required))

const takesAccount = ({ auth }: Provider): boolean => auth.some(({ key }) => key === accountMode.key)

/** An action that a step contains. */
export interface InlineAction extends ActionName {
  readonly provider_account_id: string | null
}

/** Why a step cannot contain the action like this; null: it can. */
const inlineFault = (provider: Provider, account: string | null) => {
  const code = "STEP_CONFIG_INVALID" as const
  const field = "action.provider_account_id"
  if (account !== null) {
    return takesAccount(provider) ? null : { code, field, message: "must be null: the action uses no account" }
  }
  if (!needsCredentials(provider)) return null
  return takesAccount(provider)
    ? { code, field, message: "takes the id of a connected account of the provider" }
    : {
        code,
        field: "action",
        message: "needs credentials, which no step holds: save it as an action, and name that in resource_id"
      }
}

/** The action as a step calls it that contains it inline. */
export const inlineActionOf = ({ provider_account_id, ...name }: InlineAction): Action | null => {
  const found = find(name)
  if (found === null) return null
  const [provider, { action }] = found
  const fault = inlineFault(provider, provider_account_id)
  return fault === null ? action : { ...action, compile: () => Result.fail([fault]) }
}

/** The credentials for the call of a step's own action. The action holds none itself, but may name an account. */
export const inlineCredentials = ({ provider_account_id }: InlineAction): Credentials =>
  provider_account_id === null ? noCredentials : { mode: accountMode.key, values: { provider_account_id } }

const nowhereElse: SentTo = { inputs: [], of: () => "" }

/** Where the credentials of an action are sent, as its inputs say. */
export const sentToOf = (name: ActionName): SentTo => find(name)?.[1].sentTo ?? nowhereElse

/** The call that an action makes from resolved inputs. */
export const callOf = (name: ActionName, inputs: Inputs, credentials: Credentials): Result.Result<Call, StepError> => {
  const call = find(name)?.[1].call ?? null
  return call === null
    ? Result.fail({ code: "ACTION_UNAVAILABLE", message: "no provider has this action" })
    : call(inputs, credentials)
}
