import { Clock, Effect, type Schema } from "effect"
import { Entity } from "effect/cluster"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { Ingress } from "@tidegate/model/Ingress"
import type { AnyResource, RecordOf, Situation, SwitchOf } from "@tidegate/resources/Resource"
import type { Command, Concerned, Store } from "@tidegate/storage/control/Store"
import { carryThrough } from "./CarryThrough.ts"

interface Asked {
  readonly payload: { readonly team_id: string; readonly command?: string; readonly by?: string | null }
}
interface Written<Body> {
  readonly payload: Asked["payload"] & { readonly input: Body }
}

type Answer<A, X> = Effect.Effect<A, GatewayError, X>

/** The store command of a message. */
export const commandOf = ({ by, command }: Asked["payload"]): Command => ({ id: command, by })

/** The handlers of `Commands`. */
export type CommandHandlers<R extends AnyResource, X> = {
  readonly [Name in "Create" | "Upsert" | "Replace"]: (
    message: Written<R["write"]["message"]["Type"]>
  ) => Answer<RecordOf<R>, X>
} & {
  readonly Update: (message: Written<R["patch"]["message"]["Type"]>) => Answer<RecordOf<R>, X>
  readonly Delete: (message: Asked) => Answer<{ readonly id: string; readonly more?: Schema.JsonObject }, X>
} & { readonly [Name in SwitchOf<R> as Capitalize<Name>]: (message: Asked) => Answer<RecordOf<R>, X> }

/** What the actor of a resource does beside the ordinary commands. */
export interface Special<R extends AnyResource, X> {
  /** Checks what only the actor can check, before anything is stored. */
  readonly check?: (input: R["patch"]["message"]["Type"]) => Answer<void, X>
  /** Notifies everyone whom a committed change concerns, and returns when they use it. */
  readonly settle?: (concerned: Concerned) => Effect.Effect<void, GatewayError>
  /** Wraps every command. */
  readonly around?: <A>(command: Answer<A, X>) => Answer<A, X>
}

/**
 * The commands of a resource's actor. The actor has no state; everything is in SQL. Each command is one transaction. A command
 * that has begun runs to its end, and is answered only after everyone concerned uses the committed change.
 */
export const actorOf = Effect.fnUntraced(function* <R extends AnyResource, X = never>(
  resource: R,
  store: Store<R>,
  { around = (command) => command, check = () => Effect.void, settle }: Special<R, X> = {}
): Effect.fn.Return<CommandHandlers<R, X>, never, Entity.CurrentAddress | Ingress> {
  const { entityId: id } = yield* Entity.CurrentAddress
  const ingress = yield* Ingress

  const situation = Effect.map(Clock.currentTimeMillis, (ms): Situation => ({ id, now: new Date(ms), ingress }))
  const settled = (asked: Asked["payload"]): Command => ({
    ...commandOf(asked),
    ...(settle === undefined ? {} : { afterCommit: settle })
  })
  const run = <A>(command: Answer<A, X>) => around(carryThrough(command))

  const changing =
    (change: R["change"]) =>
    ({ payload }: Written<Schema.Json>) =>
      run(
        Effect.gen(function* () {
          yield* check(payload.input)
          const next = change(payload.input, yield* situation)
          return yield* store.update(payload.team_id, id, next, settled(payload))
        })
      )

  const switches = resource.switches.map((to: SwitchOf<R> & string) => [
    to.charAt(0).toUpperCase() + to.slice(1),
    ({ payload }: Asked) => run(store.switch(payload.team_id, id, to, settled(payload)))
  ])

  return {
    Create: ({ payload }: Written<Schema.Json>) =>
      run(
        Effect.gen(function* () {
          const fields = yield* Effect.fromResult(resource.create(payload.input, yield* situation))
          yield* check(payload.input)
          return yield* store.create(payload.team_id, id, fields, settled(payload))
        })
      ),
    Update: changing(resource.change),
    Upsert: changing(resource.upsert ?? resource.change),
    Replace: changing(resource.replace ?? resource.change),
    ...Object.fromEntries(switches),
    Delete: ({ payload }: Asked) =>
      run(
        Effect.map(store.delete(payload.team_id, id, settled(payload)), (more) => ({
          id,
          ...(more === undefined ? {} : { more })
        }))
      )
  }
})
