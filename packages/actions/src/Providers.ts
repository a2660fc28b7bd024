import type { Action } from "@tidegate/workflows/Catalog"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Result } from "effect"
import type { Call } from "./Call.ts"
import type { Credentials, Inputs, Provider, ProviderAction } from "./Provider.ts"
import { http } from "./providers/Http.ts"

/** Every provider of actions but the formatter, whose libraries take 25 MB: `providers` of `All.ts` has it, too. */
export const callingProviders: ReadonlyArray<Provider> = [http]

/** Which action of which provider. */
export interface ActionName {
  readonly provider_key: string
  readonly action_key: string
  readonly version: string
}

const actions: ReadonlyMap<string, ProviderAction> = new Map(
  callingProviders.flatMap((provider) => provider.actions.map((action) => [`${provider.key}\0${action.key}`, action]))
)

const find = ({ action_key, provider_key, version }: ActionName): ProviderAction | null => {
  const found = actions.get(`${provider_key}\0${action_key}`)
  return found?.version === version ? found : null
}

/** As a step calls it; null: there is none of that name and version. */
export const actionOf = (name: ActionName): Action | null => find(name)?.action ?? null

/** The call that an action makes of resolved inputs. */
export const callOf = (name: ActionName, inputs: Inputs, credentials: Credentials): Result.Result<Call, StepError> => {
  const call = find(name)?.call ?? null
  return call === null
    ? Result.fail({ code: "ACTION_UNAVAILABLE", message: "no provider has this action" })
    : call(inputs, credentials)
}
