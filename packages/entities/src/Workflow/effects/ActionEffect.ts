import { Clock, Effect, Result } from "effect"
import type * as Calls from "@tidegate/actions/Call"
import { type Credentials, type Inputs, noCredentials } from "@tidegate/actions/Provider"
import { type ActionName, callOf, sentToOf } from "@tidegate/actions/Providers"
import type { Answer, Verdict } from "@tidegate/connectors/Connector"
import type { Json } from "@tidegate/model/Rule"
import { loadAction } from "@tidegate/storage/workflows/Actions"
import type { Database } from "@tidegate/storage/Database"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Outcome, StepError } from "@tidegate/workflows/StepKind"
import { type ActionTarget, Holds } from "../../holds/ActionHolds.ts"
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
  /** To be told what a target has answered, and what that means, before the call ends. */
  readonly heard: (answer: Answer, verdict: Verdict) => Effect.Effect<void>
}

/** Carries calls of one kind out; answers the output. */
export type Carry<C extends Calls.Call> = (call: C, of: Call) => Effect.Effect<Json, StepError>

interface Named {
  readonly name: ActionName
  readonly credentials: Credentials
  /** The inputs that the credentials were saved with; null: there are none. */
  readonly savedWith: Inputs | null
  /** Whether its actor says when it may be called. */
  readonly isPaced: boolean
}

/** A call that is ready to be carried out, as far as it is its turn. */
interface Ready {
  readonly call: Calls.Call
  readonly isPaced: boolean
  /** What is called, which may take nothing for now; null: nobody can tell. */
  readonly target: ActionTarget | null
}

/** What was read longer ago than this is read again (ms): it may have been disabled, or have other credentials. */
const freshMs = 1_000
/** Before a turn is asked for again that nobody has given. */
const pause = "500 millis"

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

/** The saved action, or the provider of one that is written into the step, and where that is called: whoever else the team calls there is the same to it. */
const targetOf = (team_id: string, id: string | null, name: ActionName, inputs: Inputs): ActionTarget | null => {
  if (id !== null) return { team_id, name: id }
  const where = sentToOf(name).of(inputs)
  return where === null ? null : { team_id, name: `${name.provider_key} ${where}` }
}

/** Carries out the call that an action makes of its inputs, by its kind. */
export const makeActionStep = Effect.gen(function* () {
  const stored = yield* Effect.context<Database | Secrets>()
  const holds = yield* Holds
  const turnOf = yield* makePacing
  const kinds: { readonly [Kind in Calls.Call["kind"]]: Carry<Extract<Calls.Call, { readonly kind: Kind }>> } = {
    http: yield* makeHttpCall,
    send: yield* makeSendCall,
    store: yield* makeStoreCall,
    gateway: yield* makeGatewayCall
  }

  /** Credentials are those of now, so that they can be changed under a run; so is whether it is enabled, and until when it is held. */
  const saved = Effect.fnUntraced(function* (team_id: string, id: string): Effect.fn.Return<Named, StepError> {
    const held = holds.reading({ team_id, name: id })
    const found = yield* Effect.result(loadAction(team_id, id)).pipe(Effect.provideContext(stored))
    // Fails closed: what was to be called is not called without its credentials.
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
        ? { name: action!, credentials: noCredentials, savedWith: null, isPaced: false }
        : yield* saved(run.team_id, resource_id)
    const inputs = effect.inputs.values
    if (savedWith !== null && !staysWithin(name, savedWith, inputs)) return yield* Effect.fail(elsewhere)
    const call = yield* Effect.fromResult(callOf(name, inputs, credentials))
    return { call, isPaced, target: targetOf(run.team_id, resource_id, name, inputs) }
  })

  const isHeld = ({ target }: Ready): boolean => target !== null && holds.isHeld(target)

  return Effect.fnUntraced(function* (effect: StepEffect, run: DueRun, key: string): Effect.fn.Return<Outcome> {
    const since = yield* Clock.currentTimeMillis
    const asked = { team_id: run.team_id, line: String(effect.context.workflow["id"]), since }
    const read = ready(effect, run)

    /** What it makes of what holds once its turn has come; null: it has had none, or is held by now. A turn that is not used counts. */
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

    /** Made once its turn has come, of what holds then. What waits does not use its time up. */
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
