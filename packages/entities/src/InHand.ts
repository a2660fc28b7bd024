import { Clock, Context, Effect, Fiber, Latch, Layer, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { randomUUID } from "node:crypto"
import { metrics } from "@tidegate/telemetry/Metrics"
import type { Database } from "@tidegate/storage/Database"
import {
  haveAlone,
  leaveProcesses,
  letGo,
  outOfHand,
  seeProcesses,
  takeInHand,
  type Work,
  type WorkKind
} from "@tidegate/storage/delivery/WorkInHand"
import { Gathered } from "./Gathered.ts"

/**
 * What killed a process does not kill the next one. Work that may kill one is written down while a process has it in hand, so that an unclean end leaves
 * it marked. Whoever finds it so begins it after all else, and alone; what processes have ended with three times, the last two times alone, is not begun
 * any more but fails, with a cause of its own.
 *
 * Which work that is: work of some weight, always; all of its kinds in the minute after another process has died; and what is marked. So
 * small work costs nothing, and one that kills a process is found out with the next end. Work of some weight waits while something is alone; small
 * work does not: whatever a process has died of, ordinary work goes on at once.
 */

/** Bytes from which on work is written down. */
const weighty = 64 * 1024
/** After the death of a process everything is written down for so long (ms). */
const carefulFor = 60_000
/** Ends of processes with which work is set aside. */
const maxEnds = 3
const seenEvery = "2 seconds"
/**
 * What is suspected waits so long for everything else, then so long for what has begun; and so long it is alone (ms). Others wait for it meanwhile: what a route
 * or a delivery does of its own takes milliseconds, and a target that takes long kills nobody.
 */
const patience: { readonly [kind in WorkKind]: number } = { run: 10_000, bulk: 10_000, route: 1_000, event: 1_000 }
/** Of one statement. */
const maxAtOnce = 1_000

export interface Weighed extends Work {
  readonly bytes: number
}

type Named = Pick<Work, "kind" | "id">

/** How work is to be carried out. */
export type Manner = "as ever" | "noted" | "written down" | "alone" | "not again"

export const setAside = {
  code: "PROCESS_ENDED",
  message: `the process ended ${maxEnds} times while it was at this; it is not begun again by itself`
} as const

const keyOf = ({ id, kind }: Named): string => `${kind}:${id}`

const mannerOf = ({ bytes, kind }: Weighed, ends: number): Manner => {
  if (ends === 0) return bytes < weighty ? "noted" : "written down"
  if (ends < maxEnds) return "alone"
  metrics.setAside.at(kind).add()
  return "not again"
}

/** What is asked of the rows: to take work in hand, or to let it be forgotten. */
type Asked =
  | { readonly take: ReadonlyArray<Weighed>; readonly done?: never }
  | { readonly done: Named; readonly take?: never }

/** One for a process. */
export class InHand {
  readonly process: string
  #marked: ReadonlySet<string> = new Set()
  #carefulUntil = Number.NEGATIVE_INFINITY
  /** Work of some weight that is under way beside other, and that waits while something is alone. */
  #beside = 0
  #waiting = 0
  #isAlone = false
  readonly #changed = Latch.makeUnsafe()
  readonly #turn = Semaphore.makeUnsafe(1)
  readonly #rows: Gathered<Asked, ReadonlyMap<string, number>, SqlError.SqlError, Database>

  constructor(process: string = randomUUID()) {
    this.process = process
    this.#rows = new Gathered(maxAtOnce, (asked) => this.#write(asked))
  }

  /** What others have in hand, and whether some of them have died. */
  readonly look: Effect.Effect<void, SqlError.SqlError, Database> = Effect.suspend(() =>
    Effect.gen({ self: this }, function* () {
      const { died, others } = yield* seeProcesses(this.process)
      this.#marked = new Set(others.map(keyOf))
      if (died) this.#carefulUntil = (yield* Clock.currentTimeMillis) + carefulFor
    })
  )

  /** Whether it need not be written down, because nothing of it is suspected: most often. Such work is not taken in hand. */
  isPlain(work: Weighed, now: number): boolean {
    return (
      work.bytes < weighty && now >= this.#carefulUntil && (this.#marked.size === 0 || !this.#marked.has(keyOf(work)))
    )
  }

  /** Writes down what of this work has to be, and tells how each is to be carried out. */
  take(works: ReadonlyArray<Weighed>): Effect.Effect<(work: Named) => Manner, SqlError.SqlError, Database> {
    return Effect.gen({ self: this }, function* () {
      const now = yield* Clock.currentTimeMillis
      const written = works.filter((work) => !this.isPlain(work, now))
      if (written.length === 0) return () => "as ever"
      const ends = yield* this.#rows.add({ take: written })
      const manners = new Map(written.map((work) => [keyOf(work), mannerOf(work, ends.get(keyOf(work)) ?? 0)]))
      return (work) => manners.get(keyOf(work)) ?? "as ever"
    })
  }

  /** First what is done, then what begins, also where both are of the same work. */
  #write(asked: ReadonlyArray<Asked>): Effect.Effect<ReadonlyMap<string, number>, SqlError.SqlError, Database> {
    const over = asked.flatMap(({ done }) => done ?? [])
    const begun = new Map(asked.flatMap(({ take = [] }) => take.map((work) => [keyOf(work), work] as const)))
    const forget =
      over.length === 0
        ? Effect.void
        : Effect.catch(outOfHand(this.process, over), (error) =>
            Effect.logWarning("work that is done stays written down", { works: over.slice(0, 10), error })
          )
    return Effect.andThen(
      forget,
      begun.size === 0
        ? Effect.succeed(new Map())
        : Effect.map(
            takeInHand(this.process, [...begun.values()]),
            (rows) => new Map(rows.map((row) => [keyOf(row), row.ends]))
          )
    )
  }

  /** It has come to something, or is set aside: nothing is kept in mind of it. */
  readonly done = (work: Named): Effect.Effect<void, never, Database> => Effect.ignore(this.#rows.add({ done: work }))

  /** Carries work out in its manner. */
  within<A, E, R>(work: Named, manner: Manner, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Database> {
    if (manner === "as ever") return effect
    const carriedOut =
      manner === "alone" ? this.#alone(work, effect) : manner === "noted" ? effect : this.#besideOthers(effect)
    return Effect.onExit(carriedOut, (exit) =>
      exit._tag === "Success" ? this.done(work) : Effect.ignore(letGo(this.process, [work]))
    )
  }

  #besideOthers<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const enter = Effect.gen({ self: this }, function* () {
      this.#waiting++
      yield* Effect.ensuring(
        this.#until(() => !this.#isAlone),
        Effect.sync(() => this.#waiting--)
      )
      this.#beside++
    })
    const leave = Effect.sync(() => {
      this.#beside--
      this.#changed.openUnsafe()
    })
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(restore(enter), Effect.ensuring(restore(effect), leave))
    )
  }

  #until(holds: () => boolean): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      while (!holds()) {
        this.#changed.closeUnsafe()
        yield* this.#changed.await
      }
    })
  }

  /** While nothing else is under way that is written down: as long as it is patient, and others are. */
  #alone<A, E, R>(work: Named, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Database> {
    const most = patience[work.kind]
    const say = (alone: boolean) =>
      Effect.catch(haveAlone(this.process, work, alone), (error) =>
        Effect.logWarning("what is alone in hand could not be written down", { ...work, error })
      )
    const open = Effect.sync(() => {
      this.#isAlone = false
      this.#changed.openUnsafe()
    })
    const alone = Effect.gen({ self: this }, function* () {
      yield* Effect.timeoutOption(
        this.#until(() => this.#beside + this.#waiting === 0),
        most
      )
      this.#isAlone = true
      yield* Effect.timeoutOption(
        this.#until(() => this.#beside === 0),
        most
      )
      yield* say(true)
      const going = yield* Effect.forkChild(effect)
      // What takes longer has killed nobody: others go on beside it.
      if ((yield* Effect.timeoutOption(Fiber.await(going), most))._tag === "None") yield* say(false)
      return going
    })
    const turn = Effect.ensuring(alone, open)
    return Effect.flatMap(this.#turn.withPermits(1)(turn), Fiber.join)
  }
}

/** Of the process. Without the layer nobody's end is noticed: only work of some weight is written down. */
export const Hand = Context.Reference<InHand>("@tidegate/entities/InHand", { defaultValue: () => new InHand() })

/** Says that the process lives, and looks what others have left behind: once before anything begins, then again and again. */
export const layer: Layer.Layer<never, never, Database> = Layer.effectDiscard(
  Effect.gen(function* () {
    const hand = yield* Hand
    const look = Effect.catch(hand.look, (error) =>
      Effect.logWarning("it could not be read what other processes have in hand", error)
    )
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(leaveProcesses(hand.process), "5 seconds")))
    yield* look
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(seenEvery), look)))
  })
)
