import { Effect, Layer, Schema } from "effect"
import { type Answer, connector, type Session } from "@tidegate/connectors/Connector"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import { needed, pacing, text } from "@tidegate/connectors/Settings"
import { Brokers } from "../src/Brokers.ts"
import { SqlServers } from "../src/SqlServers.ts"

/** What a session is opened with where nobody opens one to a server. */
export const noServers = Layer.merge(
  Layer.succeed(SqlServers, { open: () => Effect.die("there is no database here") }),
  Layer.succeed(Brokers, { open: () => Effect.die("there is no broker here") })
)

/** A connection in memory, and what has become of it. */
export interface Line {
  opened: number
  closed: number
  /** Before it is open. */
  connect: Effect.Effect<void, SessionFailure>
  send: Session["send"]
}

export const answered: Answer = { status: 200, headers: {}, body: Buffer.from("kept"), bodyTruncated: false }

export const makeLine = (): Line => ({
  opened: 0,
  closed: 0,
  connect: Effect.void,
  send: () => Effect.succeed(answered)
})

/** A type that sends over a session. */
export const lineConnector = (line: Line) =>
  connector({
    type: "TEST_LINE",
    name: "Line",
    description: "Keeps what it is sent.",
    settings: {
      line: needed(text.check(Schema.isMaxLength(100, { message: "must be at most 100 characters" })), "a line's name"),
      ...pacing
    },
    auths: ["NO_AUTH"],
    credentials: "omit",
    example: { name: "line", type: "TEST_LINE", config: { line: "a" } },
    open: (settings) => ({
      kind: "session",
      method: "SEND",
      shownUrl: `line:${settings.line}`,
      atOnce: 50,
      connect: Effect.acquireRelease(
        Effect.map(line.connect, (): Session => {
          line.opened++
          return { send: (message, facts, mayStart) => line.send(message, facts, mayStart) }
        }),
        () => Effect.sync(() => void line.closed++)
      )
    })
  })
