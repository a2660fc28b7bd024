import { Effect, Latch, Layer, Semaphore } from "effect"
import { Entity } from "effect/cluster"
import { connection } from "@tidegate/resources/Connection"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import { Connections } from "@tidegate/storage/control/Connections"
import { actorOf } from "../Actor.ts"
import * as Residents from "../dispatch/LocalEntities.ts"
import { settling } from "../Settle.ts"
import { checkInlineCode } from "../Transformation/CheckCode.ts"
import { ConnectionEntity } from "./ConnectionProtocol.ts"
import { makeRouteWorker, type RouteWork } from "./RouteWork.ts"

/** An actor without work stays in memory for one or two periods of this length (ms): new requests then need no message. */
const lingerMs = 2_000

/**
 * The connection's actor: its commands, and the work on its routing jobs. Commands wait only for each other, not for that work.
 */
export const layerWith = <R>(open: (connectionId: string) => RouteWork<R>) =>
  ConnectionEntity.toLayer(
    Effect.gen(function* () {
      const { entityId: id } = yield* Entity.CurrentAddress
      const connections = yield* Connections
      const residents = yield* Residents.Connections
      const settle = yield* settling
      const oneAtATime = Semaphore.withPermit(Semaphore.makeUnsafe(1))
      const commands = yield* actorOf<typeof connection, Sandbox>(connection, connections, {
        check: ({ rules = [] }) => checkInlineCode(rules),
        settle,
        around: oneAtATime
      })
      const routes = yield* Effect.acquireRelease(
        Effect.sync(() => open(id)),
        ({ close }) => Effect.sync(close)
      )

      // The flags change in the same synchronous step as the check, so no new request is missed.
      let working = false
      let again = false
      let used = false
      const changed = Latch.makeUnsafe()
      const take = (how: () => void): void => {
        how()
        again = true
        used = true
        changed.openUnsafe()
      }
      const lingering = Effect.acquireRelease(
        Effect.sync(() => setInterval(() => changed.openUnsafe(), lingerMs)),
        (timer) => Effect.sync(() => clearInterval(timer))
      )
      /** Ends when nothing was added during a whole period. Until then the running handler keeps the actor in memory. */
      const workItOff = Effect.scoped(
        Effect.gen(function* () {
          yield* lingering
          while (again || used) {
            changed.closeUnsafe()
            if (again) {
              again = false
              yield* routes.work
            } else {
              used = false
              yield* changed.await
            }
          }
          working = false
        })
      ).pipe(
        Effect.onError(() =>
          Effect.sync(() => {
            working = false
          })
        )
      )
      const workOff = (how: () => void) =>
        Effect.suspend(() => {
          take(how)
          if (working) return Effect.void
          working = true
          return workItOff
        })
      yield* residents.add(id, (batch) => {
        if (!working) return undefined
        take(() => routes.offer(batch))
        return true
      })

      return ConnectionEntity.of({
        ...commands,
        Route: ({ payload }) => workOff(() => routes.offer(payload.batch)),
        Wake: () => workOff(routes.wake)
      })
    }),
    { concurrency: "unbounded" }
  )

/** One worker for all connections of a process: they share its limit of memory. */
export const layer = Layer.unwrap(Effect.map(makeRouteWorker, layerWith))
