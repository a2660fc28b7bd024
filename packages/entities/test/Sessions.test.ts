import { expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { AttemptFacts, SessionSender } from "@tidegate/connectors/Connector"
import type { Message } from "@tidegate/model/Message"
import { HeldSession, type SendExit } from "../src/Destination/sending/Sessions.ts"

/** A session that takes everything, and never says that it was sent. */
const silent = {
  kind: "session",
  method: "SEND",
  shownUrl: "line:a",
  connect: Effect.succeed({ send: () => Effect.never })
} as unknown as SessionSender

it.effect("A send over a session has exactly the time that it is given", () =>
  Effect.gen(function* () {
    const held = yield* HeldSession.make(silent) as Effect.Effect<HeldSession, never, Scope.Scope>
    const ended: Array<SendExit> = []
    const send = (timeoutMs: number) =>
      held.send(
        {} as Message,
        {} as AttemptFacts,
        timeoutMs,
        () => true,
        (exit) => void ended.push(exit)
      )
    send(5_000)
    send(60_000)
    yield* TestClock.adjust("4999 millis")
    expect(ended).toEqual([])
    yield* TestClock.adjust("1 milli")
    expect(ended).toHaveLength(1)
    yield* TestClock.adjust("54 seconds")
    expect(ended).toHaveLength(1)
    yield* TestClock.adjust("1 second")
    const said = ended.map((exit) => (Exit.isFailure(exit) ? Cause.findErrorOption(exit.cause) : exit))
    expect(said).toMatchObject([
      { value: { code: "TIMEOUT", message: "not sent within 5 seconds" } },
      { value: { code: "TIMEOUT", message: "not sent within 60 seconds" } }
    ])
  })
)
