import { Effect, Layer, Semaphore } from "effect"
import { Entity } from "effect/cluster"
import { connection } from "@tidegate/resources/Connection"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import { Connections } from "@tidegate/storage/Connections"
import { actorOf } from "../Actor.ts"
import { settling } from "../Settle.ts"
import { checkInlineCode } from "../Transformation/CheckCode.ts"
import { ConnectionEntity } from "./ConnectionProtocol.ts"
import { makeRouteWorker, type RouteWork } from "./RouteWork.ts"

/** The connection's actor: its commands, and the work on its pending routes. Commands do not wait for that, only for each other. */
export const layerWith = <R>(open: (connectionId: string) => RouteWork<R>) =>
  ConnectionEntity.toLayer(
    Effect.gen(function* () {
      const { entityId: id } = yield* Entity.CurrentAddress
      const connections = yield* Connections
      const settle = yield* settling
      const oneAtATime = Semaphore.withPermit(Semaphore.makeUnsafe(1))
      const commands = yield* actorOf<typeof connection, Sandbox>(connection, connections, {
        check: ({ rules = [] }) => checkInlineCode(rules),
        // Its destination asks about a connection that it does not know: a create that is stored must not fail for it, because
        // it could not be repeated.
        settle: (concerned, isNew) => (isNew ? Effect.ignore(settle(concerned)) : settle(concerned)),
        around: oneAtATime
      })
      const routes = yield* Effect.acquireRelease(
        Effect.sync(() => open(id)),
        ({ close }) => Effect.sync(close)
      )

      // The flags change together with what they decide, with no suspension in between: nothing that came is missed.
      let working = false
      let again = false
      const workItOff = Effect.gen(function* () {
        while (again) {
          again = false
          yield* routes.work
        }
        working = false
      }).pipe(
        Effect.onError(() =>
          Effect.sync(() => {
            working = false
          })
        )
      )
      const workOff = (take: () => void) =>
        Effect.suspend(() => {
          take()
          again = true
          if (working) return Effect.void
          working = true
          return workItOff
        })

      return ConnectionEntity.of({
        ...commands,
        Route: ({ payload }) => workOff(() => routes.offer(payload.batch)),
        Wake: () => workOff(routes.wake)
      })
    }),
    { concurrency: "unbounded" }
  )

/** One worker for the connections of a process: they share what it may hold. */
export const layer = Layer.unwrap(Effect.map(makeRouteWorker, layerWith))
