import { Context, Effect, Semaphore } from "effect"
import { Slots } from "../Destination/queue/Slots.ts"

/** What one process carries out at once for runs of all workflows. */
const maxEffects = 256
/** Bytes that runs in hand hold, unless whoever starts the process says how many by its heap. */
const someBytes = 128 * 1_048_576
/** Workflows whose runs are read at once: what they weigh is known when they are there, and there may be thousands that were woken together. */
const readers = 4
/** Bytes of runs that one of them reads, and the part of the room that it reads at the most: what all of them read comes on top. */
const readOnce = { bytes: 16 * 1_048_576, share: 1 / 8 }

/** The share of one team, however many workflows it has: so that slow targets of one do not take what others need. */
export interface TeamRoom {
  /** Waits for a place to carry something out in; it is given back at the end. */
  readonly within: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly hasRoom: (bytes: number) => boolean
  /** Whether runs of so many bytes may be read: also fewer, for who holds none. */
  readonly mayRead: (bytes: number) => boolean
  readonly hold: (bytes: number) => void
  readonly letGo: (bytes: number) => void
}

/** What a team has of it, and who of its waits for a place. */
interface Share {
  readonly slots: ReturnType<Slots["share"]>
  readonly waiting: Set<() => void>
}

/** The room of a process, shared by teams as destinations share what is on the wire. */
export class RunRoom {
  readonly #slots: Slots
  /** Those that have something of it, or wait for it. */
  readonly #shares = new Map<string, Share>()

  /** Reads runs and holds them: waits until few others do. */
  readonly reading = Semaphore.withPermit(Semaphore.makeUnsafe(readers))

  /** Bytes of runs that are read at once. */
  readonly readBytes: number

  /** `bytes`: that runs in hand may hold. */
  constructor(bytes: number = someBytes) {
    this.readBytes = Math.floor(Math.min(readOnce.bytes, bytes * readOnce.share))
    this.#slots = new Slots(maxEffects, bytes)
  }

  /** How many teams it keeps in mind. */
  get teams(): number {
    return this.#shares.size
  }

  of(teamId: string): TeamRoom {
    /** Looks at the team's share, or changes it; one that is left without anything is forgotten. */
    const use = <A>(look: (share: Share) => A): A => {
      const share = this.#shares.get(teamId) ?? this.#open(teamId)
      const seen = look(share)
      if (share.slots.isIdle && share.waiting.size === 0) {
        share.slots.withdraw()
        // Whoever was given a place runs at once, and may have forgotten this one, and opened another.
        if (this.#shares.get(teamId) === share) this.#shares.delete(teamId)
      }
      return seen
    }
    const takes = ({ slots, waiting }: Share): boolean => waiting.size === 0 && slots.take()
    const release = Effect.sync(() => use(({ slots }) => slots.release()))
    const take = Effect.callback<void>((resume) => {
      const go = () => resume(Effect.void)
      const isTaken = use((share) => {
        if (takes(share)) return true
        share.waiting.add(go)
        return false
      })
      if (isTaken) return resume(Effect.void)
      return Effect.sync(() =>
        use(({ slots, waiting }) => {
          // Given a place at the moment it was interrupted: it goes on to the next.
          if (!waiting.delete(go)) slots.release()
        })
      )
    })
    return {
      within: (effect) =>
        Effect.uninterruptibleMask((restore) => {
          const inPlace = Effect.ensuring(restore(effect), release)
          // Most find one, and need not wait.
          return use(takes) ? inPlace : Effect.andThen(restore(take), inPlace)
        }),
      hasRoom: (bytes) => use(({ slots }) => slots.hasRoom(bytes)),
      mayRead: (bytes) => use(({ slots }) => slots.hasRoom(slots.isEmpty ? 1 : bytes)),
      hold: (bytes) => use(({ slots }) => slots.hold(bytes)),
      letGo: (bytes) => use(({ slots }) => slots.letGo(bytes))
    }
  }

  #open(teamId: string): Share {
    const waiting = new Set<() => void>()
    const slots = this.#slots.share(() => {
      for (const go of waiting) {
        if (!slots.take()) return
        waiting.delete(go)
        go()
      }
    })
    const share = { slots, waiting }
    this.#shares.set(teamId, share)
    return share
  }
}

/** One for a process. */
export const Room = Context.Reference<RunRoom>("@tidegate/entities/Workflow/RunRoom", {
  defaultValue: () => new RunRoom()
})

/** What the runs of one workflow have outside of the process at once. */
export const CallsAtOnce = Context.Reference<number>("@tidegate/entities/Workflow/CallsAtOnce", {
  defaultValue: () => 10
})
