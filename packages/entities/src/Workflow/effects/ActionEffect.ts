import { Clock, Effect, Result } from "effect"
import type * as Calls from "@tidegate/actions/Call"
import type { Credentials, Inputs } from "@tidegate/actions/Provider"
import { type ActionName, callOf, inlineCredentials, sentToOf } from "@tidegate/actions/Providers"
import type { Answer, Verdict } from "@tidegate/connectors/Connector"
import { loadAction } from "@tidegate/storage/workflows/Actions"
import type { Database } from "@tidegate/storage/Database"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Outcome, StepError } from "@tidegate/workflows/StepKind"
import { type ActionTarget, Holds } from "../../holds/ActionHolds.ts"
import { inTime } from "../RunWork.ts"
import { makeAccountCall } from "./AccountCall.ts"
import type { Call, Carry } from "./Call.ts"
import { makeGatewayCall } from "./GatewayCall.ts"
import { makeHttpCall } from "./HttpCall.ts"
import { makePacing } from "./Pacing.ts"
import { makeSendCall } from "./SendCall.ts"
import { makeStoreCall } from "./StoreCall.ts"

interface Named {
  readonly name: ActionName
  readonly credentials: Credentials
  /** The inputs that the credentials were saved with; null: there are no credentials. */
  readonly savedWith: Inputs | null
  /** Whether the action has a rate limit, whose permits its actor gives. */
  readonly isPaced: boolean
}

/** A call that is ready to be made, once it has its permits. */
interface Ready {
  readonly call: Calls.Call
  readonly isPaced: boolean
  /** The target, which may be on hold; null: unknown. */
  readonly target: ActionTarget | null
}

/**
 * Settings that were read longer ago (ms) are read again, because the action may have been disabled, or have other credentials.
 */
const freshMs = 1_000
/** Wait before a missing rate permit is requested again. */
const pause = "500 millis"

const elsewhere: StepError = {
  code: "INPUT_INVALID",
  message: "the credentials of the action are for another address than the inputs of this step name",
  final: true
}

/**
 * Whether the credentials are sent to the address that they are saved for now. A run may be pinned to inputs that have been
 * changed since.
 */
const staysWithin = (name: ActionName, savedWith: Inputs, inputs: Inputs): boolean => {
  const { of } = sentToOf(name)
  const target = of(savedWith)
  return target !== null && target === of(inputs)
}

/**
 * The saved action. For an action that is written into a step, the provider and the address: all such calls of the team to one
 * address share one target.
 */
const targetOf = (team_id: string, id: string | null, name: ActionName, inputs: Inputs): ActionTarget | null => {
  if (id !== null) return { team_id, name: id }
  const where = sentToOf(name).of(inputs)
  return where === null ? null : { team_id, name: `${name.provider_key} ${where}` }
}

/** Makes the call of an action, by the call's kind. */
export const makeActionStep = Effect.gen(function* () {
  const stored = yield* Effect.context<Database | Secrets>()
  const holds = yield* Holds
  const turnOf = yield* makePacing
  const kinds: { readonly [Kind in Calls.Call["kind"]]: Carry<Extract<Calls.Call, { readonly kind: Kind }>> } = {
    http: yield* makeHttpCall,
    account: yield* makeAccountCall,
    send: yield* makeSendCall,
    store: yield* makeStoreCall,
    gateway: yield* makeGatewayCall
  }

  /**
   * Credentials are read at the time of the call, so that they can be changed while a run is under way. The disabled state and
   * the hold are current, too.
   */
  const saved = Effect.fnUntraced(function* (team_id: string, id: string): Effect.fn.Return<Named, StepError> {
    const held = holds.reading({ team_id, name: id })
    const found = yield* Effect.result(loadAction(team_id, id)).pipe(Effect.provideContext(stored))
    // Fails closed: the target is never called without the action's credentials.
    if (Result.isFailure(found))
      return yield* Effect.fail({ code: "INTERNAL_ERROR", message: "the action cannot be read" })
    const action = found.success
    yield* Effect.provideContext(held(action?.heldUntil ?? 0), stored)
    if (action === null) return yield* Effect.fail({ code: "RESOURCE_DELETED", message: "the action was deleted" })
    if (action.disabled) return yield* Effect.fail({ code: "RESOURCE_DISABLED", message: "the action is disabled" })
    const { credentials, rate_limit } = action
    const savedWith = Object.keys(credentials.values).length === 0 ? null : action.inputs
    return { name: action, credentials, savedWith, isPaced: rate_limit !== null }
  })

  const ready = Effect.fnUntraced(function* (effect: StepEffect, run: DueRun): Effect.fn.Return<Ready, StepError> {
    const { action, resource_id } = effect.step.step
    if (resource_id === null && action === null) {
      return yield* Effect.fail({ code: "ACTION_UNAVAILABLE", message: "the step names no action" })
    }
    const { credentials, isPaced, name, savedWith } =
      resource_id === null
        ? { name: action!, credentials: inlineCredentials(action!), savedWith: null, isPaced: false }
        : yield* saved(run.team_id, resource_id)
    const inputs = effect.inputs.values
    if (savedWith !== null && !staysWithin(name, savedWith, inputs)) return yield* Effect.fail(elsewhere)
    const call = yield* Effect.fromResult(callOf(name, inputs, credentials))
    return { call, isPaced, target: targetOf(run.team_id, resource_id, name, inputs) }
  })

  const isHeld = ({ target }: Ready): boolean => target !== null && holds.isHeld(target)

  return Effect.fnUntraced(function* (effect: StepEffect, run: DueRun, key: string): Effect.fn.Return<Outcome> {
    const since = yield* Clock.currentTimeMillis
    const asked = { team_id: run.team_id, group: String(effect.context.workflow["id"]), since }
    const read = ready(effect, run)

    /**
     * Waits for a rate permit, and returns the call made from the current settings. Null: no permit was given, or the target is
     * on hold by now. An unused permit counts.
     */
    const inTurn = Effect.fnUntraced(function* (before: Ready): Effect.fn.Return<Ready | null, StepError> {
      if (isHeld(before)) return null
      if (!before.isPaced) return before
      const readAt = yield* Clock.currentTimeMillis
      if (!(yield* turnOf(effect.step.step.resource_id!, asked))) return yield* Effect.as(Effect.sleep(pause), null)
      const isFresh = (yield* Clock.currentTimeMillis) - readAt < freshMs
      const now = isFresh ? before : yield* read
      return isHeld(now) ? null : now
    })

    const carryOut = Effect.fnUntraced(function* (before: Ready): Effect.fn.Return<Outcome | null, StepError> {
      const made = yield* inTurn(before)
      if (made === null) return null
      const { call, target } = made
      const heard = (answer: Answer, verdict: Verdict): Effect.Effect<void> =>
        target === null ? Effect.void : Effect.provideContext(holds.heard(target, answer, verdict), stored)
      const of: Call = { effect, run, key, now: yield* Clock.currentTimeMillis, heard }
      const carry = kinds[call.kind] as Carry<Calls.Call>
      const outcome = Effect.match(carry(call, of), {
        onFailure: (error): Outcome => ({ kind: "failed", error }),
        onSuccess: (output): Outcome => ({ kind: "succeeded", output, ports: ["out"] })
      })
      return yield* inTime(effect, outcome)
    })

    /**
     * The call is built after the permits were given, from the settings of that moment. The wait does not count against the
     * step's timeout.
     */
    const made = Effect.gen(function* () {
      for (;;) {
        const before = yield* read
        const { target } = before
        const outcome =
          target === null || holds.isOpen(target)
            ? yield* carryOut(before)
            : yield* holds.within(target, asked, Effect.flatMap(read, carryOut))
        if (outcome !== null) return outcome
      }
    })
    return yield* Effect.catch(made, (error) => Effect.succeed<Outcome>({ kind: "failed", error }))
  })
})
