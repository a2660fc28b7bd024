import { Deferred, Effect, Layer, Result, Scope } from "effect"
import type { Socket } from "node:net"
import type { Connector, Session } from "@tidegate/connectors/Connector"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import { settingsOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import type { Brokers } from "@tidegate/connectors/Brokers"
import { SqlServers } from "@tidegate/connectors/SqlServers"
import { Egress } from "@tidegate/egress/Egress"
import { loopbackOnly } from "../../egress/src/Guard.ts"
import { type Target, tcpTarget } from "../../egress/test/targets.ts"
import * as BrokerServers from "../src/BrokerServers.ts"
import { sent } from "./Delivering.ts"
import { authority } from "./OwnPostgres.ts"

const waysOut = new Map<string, Layer.Layer<Egress>>()

/** Made once for all tests of a worker, because making one parses every certificate that this machine trusts. */
const wayOut = (allow: ReadonlyArray<string>): Layer.Layer<Egress> => {
  const key = allow.join()
  const made = waysOut.get(key)
  if (made !== undefined) return made
  const making = Layer.buildWithScope(
    Egress.layer({ allow, ca: [authority], resolve: () => Promise.resolve(["127.0.0.1"]) }),
    Scope.makeUnsafe()
  )
  const layer = Layer.effectContext(Effect.runSync(Effect.cached(Effect.orDie(making))))
  waysOut.set(key, layer)
  return layer
}

/** The way to brokers on this machine: by `target.test`, and by `other.example`, whose certificate it has not. */
export const brokers = (allow: ReadonlyArray<string> = loopbackOnly) =>
  BrokerServers.layer().pipe(Layer.provide(wayOut(allow)))

export const auth = { username: "writer", password: "wr1ter-p4ssword" }

/** A session of a destination of this type. */
export const brokerSession = (
  row: Connector,
  config: Config,
  as: Readonly<Record<string, string>> = auth
): Effect.Effect<Session, SessionFailure, Scope.Scope | Brokers> => {
  const settings = Result.getOrThrow(settingsOf(row, config))
  const sender = row.open(settings, { headers: {}, signing: null, settings: as }, (origin) => origin)
  if (sender.kind !== "session") throw new Error("it is none")
  return sender.connect.pipe(Effect.provideService(SqlServers, { open: () => Effect.die("there is no database here") }))
}

/** Fifty senders send one message after the other, until the broker is killed after 500 confirmations and each has failed once. */
export const sentUntilKilled = Effect.fnUntraced(function* (session: Session, kill: Effect.Effect<void>, body = "{}") {
  const confirmed: Array<string> = []
  const enough = yield* Deferred.make<void>()
  const sender = Effect.fnUntraced(function* (name: number) {
    for (let i = 0; ; i++) {
      const id = `evt_${name}_${i}`
      const { answer, failure } = yield* sent(session, body, id)
      if (answer === null) return failure!.final
      confirmed.push(id)
      if (confirmed.length === 500) Deferred.doneUnsafe(enough, Effect.void)
    }
  })
  const killing = Effect.andThen(Deferred.await(enough), kill)
  const senders = Effect.all(
    Array.from({ length: 50 }, (_, i) => sender(i)),
    { concurrency: "unbounded" }
  )
  const [finals] = yield* Effect.all([senders, killing], { concurrency: "unbounded" })
  return { confirmed, finals: [...new Set(finals)] }
})

/** A server until the scope closes. */
export const listening = (connection: (socket: Socket) => void): Effect.Effect<Target, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => tcpTarget(connection)),
    (target) => Effect.promise(() => target[Symbol.asyncDispose]())
  )

/** Says the same for ever, as fast as it is read. */
export const forEver = (socket: Socket, bytes: Buffer): void => {
  const block = Buffer.concat(Array.from({ length: Math.max(1, Math.floor(65_536 / bytes.length)) }, () => bytes))
  const go = (): void => {
    while (socket.writable && socket.write(block));
  }
  socket.on("drain", go)
  go()
}
