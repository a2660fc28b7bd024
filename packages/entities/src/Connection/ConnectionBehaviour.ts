import { Effect, Semaphore } from "effect"
import { Entity } from "effect/cluster"
import { connection } from "@tidegate/resources/Connection"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import { Connections } from "@tidegate/storage/Connections"
import { actorOf } from "../Actor.ts"
import { settling } from "../Settle.ts"
import { checkInlineCode } from "../Transformation/CheckCode.ts"
import { ConnectionEntity } from "./ConnectionProtocol.ts"

/**
 * The connection's actor: it works off its pending routes. `work` does all
 * there is for the given connection and returns; it is run again when a `Wake` came meanwhile, and never twice at once.
 * Commands do not wait for it, only for each other.
 */
export const layer = <R>(work: (connectionId: string) => Effect.Effect<void, never, R>) =>
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

      return ConnectionEntity.of({ ...commands, Wake: () => wake })
    }),
    { concurrency: "unbounded" }
  )
