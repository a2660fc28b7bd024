import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { ClusterError } from "effect/cluster"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { fail } from "@tidegate/model/GatewayError"
import { askOwner, read, upsert } from "../src/handlers/Calls.ts"

const unavailable = { _tag: "GatewayError", code: "QUEUE_UNAVAILABLE" }

it.effect("Call to an actor that does not answer fails with 503 after exactly fifteen seconds", () =>
  Effect.gen(function* () {
    const call = yield* Effect.forkChild(Effect.flip(askOwner(Effect.never)))
    yield* TestClock.adjust("14 seconds")
    expect(call.pollUnsafe()).toBeUndefined()
    yield* TestClock.adjust("1 second")
    expect(yield* Fiber.join(call)).toMatchObject(unavailable)
  })
)

it.effect("Database read that never returns fails with 503", () =>
  Effect.gen(function* () {
    const call = yield* Effect.forkChild(Effect.flip(read(Effect.never)))
    yield* TestClock.adjust("15 seconds")
    expect(yield* Fiber.join(call)).toMatchObject(unavailable)
  })
)

it.effect("Database that cannot be reached fails a read with 503", () =>
  Effect.gen(function* () {
    const reason = new SqlError.ConnectionError({ message: "refused", cause: undefined })
    const call = yield* Effect.forkChild(Effect.flip(read(Effect.fail(new SqlError.SqlError({ reason })))))
    yield* TestClock.adjust("15 seconds")
    expect(yield* Fiber.join(call)).toMatchObject(unavailable)
  })
)

it.effect("Unavailable actor fails a call with 503, and an actor's own error is passed on", () =>
  Effect.gen(function* () {
    const full = new ClusterError.PersistenceError({ cause: new Error("storage is gone") })
    expect(yield* Effect.flip(askOwner(Effect.fail(full)))).toMatchObject(unavailable)
    const conflict = fail("SOURCE_DISABLED", "the source is disabled")
    expect(yield* Effect.flip(askOwner(Effect.fail(conflict)))).toBe(conflict)
  })
)

it.effect("Call to an actor whose shard has moved is sent again to the new owner", () =>
  Effect.gen(function* () {
    let asked = 0
    const owner = Effect.suspend(() => (++asked < 3 ? Effect.interrupt : Effect.succeed("stored")))
    const call = yield* Effect.forkChild(askOwner(owner))
    yield* TestClock.adjust("1 second")
    expect(yield* Fiber.join(call)).toBe("stored")
    expect(asked).toBe(3)
  })
)

it.effect("Call to an actor that is interrupted again and again fails with 503 before the deadline", () =>
  Effect.gen(function* () {
    const call = yield* Effect.forkChild(Effect.flip(askOwner(Effect.interrupt)))
    yield* TestClock.adjust("5 seconds")
    expect(yield* Fiber.join(call)).toMatchObject(unavailable)
  })
)

it.effect("Command continues when its caller disconnects", () =>
  Effect.gen(function* () {
    const started = yield* Deferred.make<void>()
    const proceed = yield* Deferred.make<void>()
    const done = yield* Deferred.make<string>()
    const caller = yield* Effect.forkChild(
      askOwner(
        Effect.gen(function* () {
          yield* Deferred.succeed(started, undefined)
          yield* Deferred.await(proceed)
          yield* Deferred.succeed(done, "stored")
        })
      )
    )
    yield* Deferred.await(started)
    yield* Fiber.interrupt(caller)
    expect(Exit.isFailure(yield* Fiber.await(caller))).toBe(true)
    yield* Deferred.succeed(proceed, undefined)
    expect(yield* Deferred.await(done)).toBe("stored")
  })
)

it.effect("Upsert that loses the race to create updates the resource that the winner created", () =>
  Effect.gen(function* () {
    const finds = [null, "src_1"]
    const answer = yield* upsert({
      find: Effect.sync(() => finds.shift() ?? null),
      create: Effect.fail(fail("RESOURCE_ALREADY_EXISTS", "taken")),
      update: (id) => Effect.succeed(`updated ${id}`)
    })
    expect(answer).toBe("updated src_1")
    const lost = yield* Effect.flip(
      upsert({
        find: Effect.succeed(null),
        create: Effect.fail(fail("RESOURCE_ALREADY_EXISTS", "taken by another kind")),
        update: () => Effect.die("not to be called")
      })
    )
    expect(lost.code).toBe("RESOURCE_ALREADY_EXISTS")
  })
)
