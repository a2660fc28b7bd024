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
 * Keeps work that kills a process from killing the next one too. Work that may do so is recorded in SQL while a process runs it,
 * so that an unclean end leaves it marked. Marked work starts last, and alone. Work that was in hand at three unclean ends, at
 * the last two of them alone, is not started again: it fails with a cause of its own.
 *
 * Recorded are: heavy work, always; all work in the minute after another process has died; and marked work. So small work
 * normally costs nothing, and small work that kills a process is found at the second crash. Heavy work waits while something runs
 * alone. Small work does not wait: ordinary work continues at once, whatever a process has died of.
 */

/** Work of this many bytes is heavy and always recorded. */
const weighty = 64 * 1024
/** How long all work is recorded after the death of a process (ms). */
const carefulFor = 60_000
/** Unclean ends after which work is not started again. */
const maxEnds = 3
const seenEvery = "2 seconds"
/**
 * How long marked work waits for everything else to finish, then for what has begun, and then how long it runs alone (ms). Others
 * wait meanwhile: a route or a delivery takes milliseconds of the gateway's own time, and a slow target kills no process.
 */
const patience: { readonly [kind in WorkKind]: number } = { run: 10_000, bulk: 10_000, route: 1_000, event: 1_000 }
/** Items of one statement. */
const maxAtOnce = 1_000

export interface Weighed extends Work {
  readonly bytes: number
}

type Named = Pick<Work, "kind" | "id">

/**
 * How work is to be run: "unrecorded": small; "recorded": small, but all work is recorded now; "heavy": recorded; "alone": marked;
 * "set aside": it fails.
 */
export type Manner = "unrecorded" | "recorded" | "heavy" | "alone" | "set aside"

export const setAside = {
  code: "PROCESS_ENDED",
  message: `the process ended ${maxEnds} times while it was at this; it is not begun again by itself`
} as const

const keyOf = ({ id, kind }: Named): string => `${kind}:${id}`

const mannerOf = ({ bytes, kind }: Weighed, ends: number): Manner => {
  if (ends === 0) return bytes < weighty ? "recorded" : "heavy"
  if (ends < maxEnds) return "alone"
  metrics.setAside.at(kind).add()
  return "set aside"
}

/** A change of the rows: record work, or remove its record. */
type Asked =
  | { readonly take: ReadonlyArray<Weighed>; readonly done?: never }
  | { readonly done: Named; readonly take?: never }

/** One instance per process. */
export class InHand {
  readonly process: string
  #marked: ReadonlySet<string> = new Set()
  #carefulUntil = Number.NEGATIVE_INFINITY
  /** Heavy work that is running beside other work. New heavy work waits while something runs alone. */
  #beside = 0
  #waiting = 0
  #isAlone = false
  readonly #changed = Latch.makeUnsafe()
  readonly #oneAtATime = Semaphore.makeUnsafe(1)
  readonly #rows: Gathered<Asked, ReadonlyMap<string, number>, SqlError.SqlError, Database>

  constructor(process: string = randomUUID()) {
    this.process = process
    this.#rows = new Gathered(maxAtOnce, (asked) => this.#write(asked))
  }

  /** Reads which work other processes have recorded, and whether some of those processes have died. */
  readonly look: Effect.Effect<void, SqlError.SqlError, Database> = Effect.suspend(() =>
    Effect.gen({ self: this }, function* () {
      const { died, others } = yield* seeProcesses(this.process)
      this.#marked = new Set(others.map(keyOf))
      if (died) this.#carefulUntil = (yield* Clock.currentTimeMillis) + carefulFor
    })
  )

  /**
   * Whether the work need not be recorded, because it is small and not marked: the usual case. Such work is run without `take`.
   */
  isPlain(work: Weighed, now: number): boolean {
    return (
      work.bytes < weighty && now >= this.#carefulUntil && (this.#marked.size === 0 || !this.#marked.has(keyOf(work)))
    )
  }

  /** Records the work that has to be recorded, and returns how each is to be run. */
  take(works: ReadonlyArray<Weighed>): Effect.Effect<(work: Named) => Manner, SqlError.SqlError, Database> {
    return Effect.gen({ self: this }, function* () {
      const now = yield* Clock.currentTimeMillis
      const written = works.filter((work) => !this.isPlain(work, now))
      if (written.length === 0) return () => "unrecorded"
      const ends = yield* this.#rows.add({ take: written })
      const manners = new Map(written.map((work) => [keyOf(work), mannerOf(work, ends.get(keyOf(work)) ?? 0)]))
      return (work) => manners.get(keyOf(work)) ?? "unrecorded"
    })
  }

  /** Removes records first, then adds new ones: one batch may do both for the same work. */
  #write(asked: ReadonlyArray<Asked>): Effect.Effect<ReadonlyMap<string, number>, SqlError.SqlError, Database> {
    const over = asked.flatMap(({ done }) => done ?? [])
    const begun = new Map(asked.flatMap(({ take = [] }) => take.map((work) => [keyOf(work), work] as const)))
    const forget =
      over.length === 0
        ? Effect.void
        : Effect.catch(outOfHand(this.process, over), (error) =>
            Effect.logWarning("work that is done stays recorded", { works: over.slice(0, 10), error })
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

  /** The work has finished or has failed for good: its record is removed. */
  readonly done = (work: Named): Effect.Effect<void, never, Database> => Effect.ignore(this.#rows.add({ done: work }))

  /** Runs work in its manner. */
  within<A, E, R>(work: Named, manner: Manner, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Database> {
    if (manner === "unrecorded") return effect
    const carriedOut =
      manner === "alone" ? this.#alone(work, effect) : manner === "recorded" ? effect : this.#besideOthers(effect)
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

  /** Runs work while no heavy recorded work runs. It waits for the others, and they wait for it, each for a limited time. */
  #alone<A, E, R>(work: Named, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Database> {
    const max = patience[work.kind]
    const say = (alone: boolean) =>
      Effect.catch(haveAlone(this.process, work, alone), (error) =>
        Effect.logWarning("it could not be recorded that work runs alone", { ...work, error })
      )
    const open = Effect.sync(() => {
      this.#isAlone = false
      this.#changed.openUnsafe()
    })
    const runAlone = Effect.gen({ self: this }, function* () {
      yield* Effect.timeoutOption(
        this.#until(() => this.#beside + this.#waiting === 0),
        max
      )
      this.#isAlone = true
      yield* Effect.timeoutOption(
        this.#until(() => this.#beside === 0),
        max
      )
      yield* say(true)
      const going = yield* Effect.forkChild(effect)
      // Work that takes longer than this has not killed the process: others continue beside it.
      if ((yield* Effect.timeoutOption(Fiber.await(going), max))._tag === "None") yield* say(false)
      return going
    })
    const opened = Effect.ensuring(runAlone, open)
    return Effect.flatMap(this.#oneAtATime.withPermits(1)(opened), Fiber.join)
  }
}

/** The process's instance. Without the layer the deaths of other processes are not noticed, and only heavy work is recorded. */
export const Hand = Context.Reference<InHand>("@tidegate/entities/InHand", { defaultValue: () => new InHand() })

/** Reports that this process lives, and reads the work of the others: once before anything starts, then periodically. */
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
