import { Effect, Layer, Semaphore } from "effect"
import { Entity } from "effect/cluster"
import { connection } from "@tidegate/resources/Connection"
import { makeWakeableWorker } from "@tidegate/runtime/WakeableWorker"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import { Connections } from "@tidegate/storage/control/Connections"
import { actorOf } from "../Actor.ts"
import * as LocalEntities from "../dispatch/LocalEntities.ts"
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
      const local = yield* LocalEntities.Connections
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

      const worker = makeWakeableWorker({
        step: Effect.as(routes.work, "idle"),
        failed: (error) => Effect.logWarning("pending routes could not be worked off", { connection_id: id, error }),
        lingerMs
      })
      const workOff = (add: () => void) => Effect.andThen(Effect.sync(add), worker.work)
      yield* local.add(id, (batch) => {
        // An idle actor has to be woken by a message: a running handler keeps it in memory.
        if (!worker.isWorking()) return undefined
        routes.offer(batch)
        worker.wake()
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
