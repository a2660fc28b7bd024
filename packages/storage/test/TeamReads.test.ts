import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { makeTeamReads, type ReadLimits } from "../src/TeamReads.ts"

/** Turns whose holders are let go by their number, and the teams in the order in which they got theirs. */
const world = (bounds: ReadLimits) => {
  const { during } = makeTeamReads("reports", bounds)
  const began: Array<string> = []
  const ends: Array<Deferred.Deferred<void>> = []
  const ask = (team: string) =>
    Effect.forkChild(
      during(team)(
        Effect.gen(function* () {
          const end = yield* Deferred.make<void>()
          began.push(team)
          ends.push(end)
          yield* Deferred.await(end)
        })
      ),
      { startImmediately: true }
    )
  const end = (n: number) => Effect.andThen(Deferred.succeed(ends[n]!, undefined), settle)
  return { ask, began, end, ends }
}

/** Lets everybody go on who can. */
const settle = Effect.forEach(Array.from({ length: 10 }), () => Effect.yieldNow, { discard: true })

it.effect("Twelve reads of one team leave another team's share free, and waiting teams take turns", () =>
  Effect.gen(function* () {
    const { ask, began, end } = world({ atOnce: 3, perTeam: 2, waiting: 20 })
    for (let n = 0; n < 12; n++) yield* ask("a")
    expect(began).toEqual(["a", "a"])
    yield* ask("b")
    expect(began).toEqual(["a", "a", "b"])
    yield* ask("b")
    yield* ask("c")
    // Whoever asked first of all is not first: the team that has had no turn is.
    yield* end(0)
    yield* end(1)
    yield* end(2)
    expect(began.slice(3).sort()).toEqual(["a", "b", "c"])
  })
)

it.effect("The number of waiting reads is limited, and a finished read lets another one wait", () =>
  Effect.gen(function* () {
    const { ask, began, end } = world({ atOnce: 1, perTeam: 1, waiting: 2 })
    for (let n = 0; n < 3; n++) yield* ask("a")
    const refused = yield* Fiber.await(yield* ask("a"))
    expect(Exit.findErrorOption(refused)).toMatchObject({ value: { code: "RATE_LIMITED", data: { scope: "reports" } } })
    yield* end(0)
    yield* ask("a")
    yield* end(1)
    yield* end(2)
    yield* end(3)
    expect(began).toHaveLength(4)
  })
)

it.effect("An interrupted read gives back its permit or its position in the queue", () =>
  Effect.gen(function* () {
    const { ask, began, end } = world({ atOnce: 1, perTeam: 1, waiting: 2 })
    const holds = yield* ask("a")
    const waits = yield* ask("a")
    yield* ask("b")
    yield* Fiber.interrupt(waits)
    yield* Fiber.interrupt(holds)
    yield* settle
    expect(began).toEqual(["a", "b"])
    yield* end(1)
    yield* ask("a")
    expect(began).toEqual(["a", "b", "a"])
    yield* end(2)
  })
)

it.effect("A failed read gives back its permit", () =>
  Effect.gen(function* () {
    const { during } = makeTeamReads("reports", { atOnce: 1, perTeam: 1, waiting: 1 })
    for (let n = 0; n < 3; n++) expect(yield* Effect.flip(during("a")(Effect.fail(n)))).toBe(n)
  })
)
