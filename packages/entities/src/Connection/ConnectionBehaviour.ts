import { Clock, Effect, type Schema, Semaphore } from "effect"
import { Entity } from "effect/cluster"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { type ConnectionChanged, Connections } from "@tidegate/storage/Connections"
import { Cancellations } from "../Cancellations.ts"
import { carryThrough } from "../CarryThrough.ts"
import { reloadDestinations } from "../Hints.ts"
import { createConnection, updateConnection } from "./ConnectionInput.ts"
import { ConnectionEntity } from "./ConnectionProtocol.ts"
import { checkInlineCode } from "../Transformation/CheckCode.ts"

interface Command {
  readonly payload: { readonly team_id: string }
}
interface Write {
  readonly payload: { readonly team_id: string; readonly input: Schema.Json }
}

/**
 * The connection's actor: the only writer of its row, and the one that works off its pending routes. `work` does all
 * there is for the given connection and returns; it is run again when a `Wake` came meanwhile, and never twice at once.
 * Commands do not wait for it, only for each other.
 */
export const layer = <R>(work: (connectionId: string) => Effect.Effect<void, never, R>) =>
  ConnectionEntity.toLayer(
    Effect.gen(function* () {
      const { entityId: id } = yield* Entity.CurrentAddress
      const connections = yield* Connections
      const cancellations = yield* Cancellations
      const oneAtATime = Semaphore.withPermit(Semaphore.makeUnsafe(1))

      const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms))

      const spread = Effect.fnUntraced(function* ({ cancelled, destinations }: Omit<ConnectionChanged, "connection">) {
        if (cancelled) yield* cancellations.request({ connection_id: id })
        yield* reloadDestinations(destinations)
      })

      /** Answers once everyone whom the committed change concerns goes by it. */
      const change = <E extends GatewayError, R>(changed: Effect.Effect<ConnectionChanged, E, R>) =>
        oneAtATime(
          carryThrough(
            changed.pipe(
              Effect.tap(spread),
              Effect.map(({ connection }) => connection)
            )
          )
        )

      // The flags change together with what they decide, with no suspension in between: no wake is lost.
      let working = false
      let again = false
      const workItOff = Effect.gen(function* () {
        while (again) {
          again = false
          yield* work(id)
        }
        working = false
      }).pipe(
        Effect.onError(() =>
          Effect.sync(() => {
            working = false
          })
        )
      )
      const wake = Effect.suspend(() => {
        again = true
        if (working) return Effect.void
        working = true
        return workItOff
      })

      return ConnectionEntity.of({
        Create: ({ payload }: Write) =>
          oneAtATime(
            carryThrough(
              now.pipe(
                Effect.flatMap((now) => Effect.fromResult(createConnection(payload.input, now))),
                Effect.tap(({ rules }) => checkInlineCode(rules)),
                Effect.flatMap((fields) => connections.create(payload.team_id, id, fields)),
                // Its destination asks about a connection that it does not know: a create that is stored must not fail
                // for it, because it could not be repeated.
                Effect.tap(({ destinations }) => Effect.ignore(reloadDestinations(destinations))),
                Effect.map(({ connection }) => connection)
              )
            )
          ),
        Update: ({ payload }: Write) =>
          change(
            Effect.gen(function* () {
              const update = yield* Effect.fromResult(updateConnection(payload.input, yield* now))
              yield* checkInlineCode(update.rules ?? [])
              return yield* connections.update(payload.team_id, id, update.apply)
            })
          ),
        Disable: ({ payload }: Command) => change(connections.disable(payload.team_id, id)),
        Enable: ({ payload }: Command) => change(connections.enable(payload.team_id, id)),
        Pause: ({ payload }: Command) => change(connections.pause(payload.team_id, id)),
        Unpause: ({ payload }: Command) => change(connections.unpause(payload.team_id, id)),
        Delete: ({ payload }: Command) =>
          oneAtATime(carryThrough(Effect.as(Effect.flatMap(connections.delete(payload.team_id, id), spread), { id }))),
        Wake: () => wake
      })
    }),
    { concurrency: "unbounded" }
  )
