import { Cause, Effect, Exit, Layer, Result, Scope } from "effect"
import type { Answer, Session } from "@tidegate/connectors/Connector"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import { settingsOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import { Brokers } from "@tidegate/connectors/Brokers"
import type { SqlServers } from "@tidegate/connectors/SqlServers"
import { Egress } from "@tidegate/egress/Egress"
import type { Message } from "@tidegate/model/Message"
import { sqlDatabase } from "../../connectors/src/SqlDatabase.ts"
import { factsOf } from "../../connectors/test/Facts.ts"
import { loopbackOnly } from "../../egress/src/Guard.ts"
import * as PostgresServers from "../src/PostgresServers.ts"
import { authority } from "./OwnPostgres.ts"

/** The way to databases on this machine: by `target.test`, and by `other.example`, whose certificate it has not. */
export const servers = ({
  ca,
  ...options
}: { readonly most?: number; readonly fewerMs?: number; readonly ca?: ReadonlyArray<string> } = {}) =>
  PostgresServers.layer(options).pipe(
    Layer.provide(
      Egress.layer({
        allow: loopbackOnly,
        ca: ca ?? [authority],
        resolve: (host) => Promise.resolve(host === "nowhere.test" ? [] : ["127.0.0.1"])
      })
    )
  )

export const message = (body: string | Uint8Array, change: Partial<Message> = {}): Message => ({
  method: "POST",
  path: "/orders",
  query: "a=b",
  headers: { "content-type": "application/json" },
  body: Buffer.from(body),
  ...change
})

/** A session of a destination with these settings. */
export const sessionOf = (
  config: Config,
  auth: { readonly username: string; readonly password: string }
): Effect.Effect<Session, SessionFailure, Scope.Scope | SqlServers> => {
  const settings = Result.getOrThrow(settingsOf(sqlDatabase, config))
  const sender = sqlDatabase.open(settings, { headers: {}, signing: null, settings: auth }, (origin) => origin)
  if (sender.kind !== "session") throw new Error("it is none")
  return sender.connect.pipe(Effect.provideService(Brokers, { open: () => Effect.die("there is no broker here") }))
}

/** How a send has ended: what was answered, or how it has failed. */
export interface Ended {
  readonly answer: Answer | null
  readonly failure: SessionFailure | null
}

export const sent = (
  session: Session,
  body: string | Uint8Array = "{}",
  id = "evt_1",
  mayStart: () => boolean = () => true
): Effect.Effect<Ended> =>
  Effect.map(
    Effect.exit(session.send(message(body), factsOf(message(body), { eventId: id, webhookId: id }), mayStart)),
    endedOf
  )

export const endedOf = (exit: Exit.Exit<Answer, SessionFailure>): Ended => {
  if (Exit.isSuccess(exit)) return { answer: exit.value, failure: null }
  const failure = Cause.findErrorOption(exit.cause)
  if (failure._tag === "None") throw new Error(Cause.pretty(exit.cause))
  return { answer: null, failure: failure.value }
}

/** What of a failure a retry goes by. */
export const told = ({ answer, failure }: Ended): unknown =>
  failure === null ? answer!.status : { code: failure.code, final: failure.final, broken: failure.broken }
