import { Clock, Effect, Result } from "effect"
import type * as Calls from "@tidegate/actions/Call"
import { type Credentials, type Inputs, noCredentials } from "@tidegate/actions/Provider"
import { type ActionName, callOf, sentToOf } from "@tidegate/actions/Providers"
import type { RatePeriod } from "@tidegate/model/Destination"
import type { Json } from "@tidegate/model/Rule"
import { loadAction } from "@tidegate/storage/Actions"
import type { Database } from "@tidegate/storage/Database"
import type { DueRun } from "@tidegate/storage/Runs"
import type { Secrets } from "@tidegate/storage/Secrets"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Outcome, StepError } from "@tidegate/workflows/StepKind"
import { inTime } from "../RunWork.ts"
import { makeGatewayCall } from "./GatewayCall.ts"
import { makeHttpCall } from "./HttpCall.ts"
import { makePacing } from "./Pacing.ts"
import { makeSendCall } from "./SendCall.ts"
import { makeStoreCall } from "./StoreCall.ts"

/** The step whose call is carried out. */
export interface Call {
  readonly effect: StepEffect
  readonly run: DueRun
  /** The same for every attempt of it, also after a crash. */
  readonly key: string
  /** Unix milliseconds. */
  readonly now: number
}

/** Carries calls of one kind out; answers the output. */
export type Carry<C extends Calls.Call> = (call: C, of: Call) => Effect.Effect<Json, StepError>

interface Named {
  readonly name: ActionName
  readonly credentials: Credentials
  /** The inputs that the credentials were saved with; null: there are none. */
  readonly savedWith: Inputs | null
  readonly pace: { readonly id: string; readonly limit: number; readonly period: RatePeriod } | null
}

const elsewhere: StepError = {
  code: "INPUT_INVALID",
  message: "the credentials of the action are for another address than the inputs of this step name",
  final: true
}

/** Whether credentials go where they are kept for now. A run may be pinned to inputs that have been changed since. */
const staysWithin = (name: ActionName, savedWith: Inputs, inputs: Inputs): boolean => {
  const { of } = sentToOf(name)
  const target = of(savedWith)
  return target !== null && target === of(inputs)
}

/** Carries out the call that an action makes of its inputs, by its kind. */
export const makeActionStep = Effect.gen(function* () {
  const stored = yield* Effect.context<Database | Secrets>()
  const paced = makePacing()
  const kinds: { readonly [Kind in Calls.Call["kind"]]: Carry<Extract<Calls.Call, { readonly kind: Kind }>> } = {
    http: yield* makeHttpCall,
    send: yield* makeSendCall,
    store: yield* makeStoreCall,
    gateway: yield* makeGatewayCall
  }

  /** Credentials are those of now, so that they can be changed under a run; so is whether it is enabled. */
  const saved = Effect.fnUntraced(function* (team_id: string, id: string): Effect.fn.Return<Named, StepError> {
    const found = yield* Effect.result(loadAction(team_id, id)).pipe(Effect.provideContext(stored))
    // Fails closed: what was to be called is not called without its credentials.
    if (Result.isFailure(found))
      return yield* Effect.fail({ code: "INTERNAL_ERROR", message: "the action cannot be read" })
    const action = found.success
    if (action === null) return yield* Effect.fail({ code: "RESOURCE_DELETED", message: "the action was deleted" })
    if (action.disabled) return yield* Effect.fail({ code: "RESOURCE_DISABLED", message: "the action is disabled" })
    const { credentials, rate_limit, rate_limit_period } = action
    const pace = rate_limit === null ? null : { id, limit: rate_limit, period: rate_limit_period ?? "second" }
    const savedWith = Object.keys(credentials.values).length === 0 ? null : action.inputs
    return { name: action, credentials, savedWith, pace }
  })

  return Effect.fnUntraced(function* (effect: StepEffect, run: DueRun, key: string): Effect.fn.Return<Outcome> {
    const { action, resource_id } = effect.step.step
    const named = yield* Effect.result<Named, StepError, never>(
      resource_id !== null
        ? saved(run.team_id, resource_id)
        : action === null
          ? Effect.fail({ code: "ACTION_UNAVAILABLE", message: "the step names no action" })
          : Effect.succeed({ name: action, credentials: noCredentials, savedWith: null, pace: null })
    )
    if (Result.isFailure(named)) return { kind: "failed", error: named.failure }
    const { credentials, name, pace, savedWith } = named.success
    if (savedWith !== null && !staysWithin(name, savedWith, effect.inputs.values))
      return { kind: "failed", error: elsewhere }
    const made = callOf(name, effect.inputs.values, credentials)
    if (Result.isFailure(made)) return { kind: "failed", error: made.failure }
    // What waits for its turn does not use its time up.
    if (pace !== null) yield* paced(pace)
    const of: Call = { effect, run, key, now: yield* Clock.currentTimeMillis }
    const carry = kinds[made.success.kind] as Carry<Calls.Call>
    const outcome = Effect.match(carry(made.success, of), {
      onFailure: (error): Outcome => ({ kind: "failed", error }),
      onSuccess: (output): Outcome => ({ kind: "succeeded", output, ports: ["out"] })
    })
    return yield* inTime(effect, outcome)
  })
})
