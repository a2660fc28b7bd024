import { describe, expect, it } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { Effect, Exit, Fiber, Option, Scope } from "effect"
import { RpcMessage, RpcSerialization } from "effect/rpc"
import { TestClock } from "effect/testing"
import type { KeyRing } from "@tidegate/storage/secrets/Secrets"
import * as Frames from "../src/Wire/Frames.ts"
import { peerKeys } from "../src/Wire/PeerKeys.ts"
import { client, impostor, newKey, plain, proven, runner, tap, withKey } from "./WireWorld.ts"

const [old, next, others] = [newKey("old"), newKey("next"), newKey("others")]
const few = new Uint8Array(1)

/** Asks often enough to be no luck, and soon enough to be no wait. */
const until = (what: string, holds: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let tries = 0; !holds(); tries++) {
      if (tries === 6_000) yield* Effect.die(new Error(`${what}: not within 60 s`))
      yield* Effect.sleep("10 millis")
    }
  })

describe("Access to a runner", () => {
  const rings: ReadonlyArray<readonly [string, KeyRing, KeyRing, boolean]> = [
    ["the same key", [old], [old], true],
    ["another key", [old], [others], false],
    // A rolling change: the new key is added behind, moved to the front, then the old one goes.
    ["a caller that has the new key already, behind", [old], [old, next], true],
    ["a caller that has not got the new key yet", [old, next], [old], true],
    ["a caller that goes by the new key already", [old, next], [next, old], true],
    ["a caller that goes by the old key still", [next, old], [old, next], true],
    ["a caller that has lost the old key already", [next, old], [next], true],
    ["a caller that has the old key still", [next], [next, old], true],
    ["a new key that went to the front at once", [old], [next, old], true],
    ["a key that has been taken out", [next], [old], false]
  ]
  for (const [name, ofRunner, ofCaller, may] of rings) {
    it.live(`A runner ${may ? "accepts" : "rejects"} ${name}`, () =>
      Effect.gen(function* () {
        const echo = yield* runner(ofRunner)
        const { Say } = yield* client(ofCaller, echo.address)
        const refused = until("it is refused", () => echo.refusals().length > 0)
        const answer = yield* Effect.raceFirst(
          Effect.asSome(Say({ bytes: few, answer: 3 })),
          may ? Effect.never : Effect.as(refused, Option.none())
        )
        expect(answer._tag).toBe(may ? "Some" : "None")
        expect(echo.calls()).toBe(may ? 1 : 0)
        if (!may)
          expect(echo.refusals()[0]).toMatchObject({ address: "127.0.0.1", reason: "ERR_SSL_BINDER_DOES_NOT_VERIFY" })
      })
    )
  }

  it.live("A runner rejects a connection that was redirected to another runner with the same keys", () =>
    Effect.gen(function* () {
      const echo = yield* runner([old])
      const other = yield* runner([old])
      const { address } = yield* tap(other.address)
      const { Say } = yield* client([old], address)
      expect(Exit.isFailure(yield* Effect.exit(Effect.timeout(Say({ bytes: few, answer: 0 }), "1 second")))).toBe(true)
      const led = yield* Effect.exit(Effect.tryPromise(() => proven(old, echo.address, other.address)))
      expect(Exit.isFailure(led)).toBe(true)
      expect(echo.calls() + other.calls()).toBe(0)
    })
  )

  it.live("A runner rejects a message without handshake and a replayed connection", () =>
    Effect.gen(function* () {
      const echo = yield* runner([old])
      const ear = yield* impostor([old])
      const { Say } = yield* client([old], ear.address)
      yield* Effect.forkScoped(Say({ bytes: few, answer: 0 }))
      yield* until("the message comes", () => ear.sent().length > 0)
      const message = ear.sent()

      const bare = plain(echo.address)
      bare.socket.write(message)
      yield* Effect.promise(() => bare.closed)
      expect(echo.calls()).toBe(0)

      // Whoever has the key may send the same bytes: they are a call.
      const line = yield* tap(echo.address)
      const peer = yield* Effect.promise(() => proven(old, echo.address, line.address))
      peer.socket.write(message)
      yield* until("the call is answered", () => peer.received().length > 0)
      expect(echo.calls()).toBe(1)
      peer.socket.destroy()

      const recorded = line.sent()
      expect(recorded.length).toBeGreaterThan(message.length)
      expect(recorded.includes("Echo")).toBe(false)
      expect(message.includes("Echo")).toBe(true)
      const again = plain(echo.address)
      again.socket.write(recorded)
      yield* Effect.promise(() => again.closed)
      expect(echo.calls()).toBe(1)
    })
  )

  it.live("A wrong key and an unknown key name cause the same error", () =>
    Effect.gen(function* () {
      const echo = yield* runner([old])
      const identity = peerKeys([old], echo.address)[0]!.identity
      const codes = []
      for (const name of [identity, "A".repeat(identity.length), "x".repeat(128)]) {
        const failed = yield* Effect.flip(
          Effect.tryPromise(() => withKey({ identity: name, psk: randomBytes(32) }, echo.address))
        )
        codes.push((failed.cause as NodeJS.ErrnoException).code)
      }
      expect(new Set(codes)).toStrictEqual(new Set(["ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR"]))
    })
  )
})

describe("Frames", () => {
  it.live("The largest frame is accepted, and a larger one ends only its own call", () =>
    Effect.gen(function* () {
      const echo = yield* runner([old])
      const { Say, Wait } = yield* client([old], echo.address)
      const waiting = yield* Effect.forkScoped(Wait())
      yield* until("the call has come", () => echo.waiting() === 1)

      const large = Frames.largestFrame - 4096
      expect((yield* Say({ bytes: new Uint8Array(large), answer: large })).length).toBe(large)
      for (const call of [
        { bytes: new Uint8Array(Frames.largestFrame), answer: 0 },
        { bytes: few, answer: Frames.largestFrame }
      ]) {
        const exit = yield* Effect.exit(Say(call))
        expect(String(Exit.isFailure(exit) && exit.cause)).toMatch(/too large for the cluster/)
      }
      expect((yield* Say({ bytes: few, answer: 1 })).length).toBe(1)
      yield* echo.release
      expect(yield* Fiber.join(waiting)).toBe("at last")
    })
  )

  it.live("A frame that is announced too large or is invalid ends the connection at once", () =>
    Effect.gen(function* () {
      const echo = yield* runner([old])
      const length = (bytes: number): Buffer => {
        const out: Array<number> = []
        for (let rest = bytes; ; rest = Math.floor(rest / 128)) {
          if (rest < 128) return Buffer.from([...out, rest])
          out.push((rest % 128) | 128)
        }
      }
      for (const bytes of [
        length(Frames.largestFrame + 1),
        length(2 ** 50),
        Buffer.alloc(1),
        Buffer.alloc(100, 0xff)
      ]) {
        const peer = yield* Effect.promise(() => proven(old, echo.address))
        peer.socket.write(bytes)
        yield* Effect.promise(() => peer.closed)
      }
      const { Say } = yield* client([old], echo.address)
      expect((yield* Say({ bytes: few, answer: 1 })).length).toBe(1)
    })
  )

  it.live("A caller drops a runner with an unreadable answer and connects again", () =>
    Effect.gen(function* () {
      const fake = yield* impostor([old], Buffer.alloc(100, 0xff))
      const { Say } = yield* client([old], fake.address)
      yield* Effect.forkScoped(Effect.exit(Say({ bytes: few, answer: 0 })))
      yield* until("it comes again", () => fake.connections() > 1)
    })
  )
})

describe("Port under attack", () => {
  it.live("Silent connections replace each other, never a peer with a key, and are logged rarely", () =>
    Effect.gen(function* () {
      const echo = yield* runner([old])
      let open = 0
      const silent = Array.from({ length: 400 }, () => plain(echo.address))
      yield* Effect.addFinalizer(() => Effect.sync(() => silent.forEach(({ socket }) => socket.destroy())))
      for (const { closed, socket } of silent) {
        socket.once("connect", () => open++)
        void closed.then(() => open--)
      }
      const { Say } = yield* client([old], echo.address)
      expect((yield* Say({ bytes: few, answer: 1 })).length).toBe(1)
      yield* until("only as many as may are left", () => open <= 64)
      const began = performance.now()
      yield* until("all have been closed", () => open === 0)
      expect(performance.now() - began).toBeLessThan(30_000)
      expect(echo.refusals().length).toBe(1)
      expect((yield* Say({ bytes: few, answer: 1 })).length).toBe(1)
    })
  )
})

describe("Connection with a slow message", () => {
  it.effect("A runner sends signs of life during a slow message until its caller is silent for long", () =>
    Effect.gen(function* () {
      const echo = yield* runner([old])
      const peer = yield* Effect.promise(() => proven(old, echo.address))
      let closed = false
      void peer.closed.then(() => (closed = true))
      // Its first beat counts from when it has taken the connection up.
      while (peer.received().length === 0) {
        yield* TestClock.adjust("100 millis")
        yield* TestClock.withLive(Effect.sleep("1 millis"))
      }
      const beat = (came: () => boolean) =>
        Effect.andThen(TestClock.adjust("2 seconds"), TestClock.withLive(until("the runner tells that it lives", came)))
      for (let silent = 1; silent < 10; silent++) {
        const told = peer.received().length
        yield* beat(() => peer.received().length > told)
      }
      expect(closed).toBe(false)
      yield* beat(() => closed)
    })
  )

  it.effect("Each part of a message counts as a sign of life", () =>
    Effect.gen(function* () {
      const serialization = Frames.watched(yield* RpcSerialization.RpcSerialization, () => {})
      const bytes = serialization.makeUnsafe().encode(RpcMessage.constEof) as Uint8Array
      const { decode } = serialization.makeUnsafe()
      expect(decode(bytes.subarray(0, 1))).toStrictEqual([RpcMessage.constPong])
      expect(decode(bytes.subarray(1))).toStrictEqual([RpcMessage.constEof])
    }).pipe(Effect.provide(Frames.layer))
  )
})

describe("End of a runner", () => {
  it.live("A runner that ends does not wait for a peer that does not read", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const echo = yield* runner([old]).pipe(Scope.provide(scope))
      const ear = yield* impostor([old])
      const { Say } = yield* client([old], ear.address)
      yield* Effect.forkScoped(Say({ bytes: few, answer: 8 * 1024 * 1024 }))
      yield* until("the message comes", () => ear.sent().length > 0)
      const peer = yield* Effect.promise(() => proven(old, echo.address))
      peer.socket.pause()
      peer.socket.write(ear.sent())
      yield* until("the call has come", () => echo.calls() === 1)
      const began = performance.now()
      yield* Scope.close(scope, Exit.void)
      expect(performance.now() - began).toBeLessThan(30_000)
      peer.socket.destroy()
    })
  )
})
