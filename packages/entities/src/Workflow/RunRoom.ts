import { Context, Effect, Semaphore } from "effect"
import { Slots } from "../Destination/Slots.ts"

/** What one process carries out at once for runs of all workflows, and the memory that runs in hand hold. */
const most = { effects: 256, bytes: 128 * 1_048_576 }
/** Workflows whose runs are read at once: what they weigh is known when they are there, and there may be thousands that were woken together. */
const readers = 4

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

/** The room of a process, shared by teams as destinations share what is on the wire. */
export class RunRoom {
  readonly #slots = new Slots(most.effects, most.bytes)
  readonly #teams = new Map<string, TeamRoom>()

  /** Reads runs and holds them: waits until few others do. */
  readonly reading = Semaphore.withPermit(Semaphore.makeUnsafe(readers))

  of(teamId: string): TeamRoom {
    let room = this.#teams.get(teamId)
    if (room === undefined) {
      room = this.#open()
      this.#teams.set(teamId, room)
    }
    return room
  }

  #open(): TeamRoom {
    const waiting = new Set<() => void>()
    const share = this.#slots.share(() => {
      for (const go of waiting) {
        if (!share.take()) return
        waiting.delete(go)
        go()
      }
    })
    const release = Effect.sync(() => share.release())
    const take = Effect.callback<void>((resume) => {
      if (waiting.size === 0 && share.take()) return resume(Effect.void)
      const go = () => resume(Effect.void)
      waiting.add(go)
      return Effect.sync(() => {
        // Given a place at the moment it was interrupted: it goes on to the next.
        if (!waiting.delete(go)) share.release()
      })
    })
    return {
      within: (effect) =>
        Effect.uninterruptibleMask((restore) => {
          const inPlace = Effect.ensuring(restore(effect), release)
          // Most find one, and need not wait.
          return waiting.size === 0 && share.take() ? inPlace : Effect.andThen(restore(take), inPlace)
        }),
      hasRoom: (bytes) => share.hasRoom(bytes),
      mayRead: (bytes) => share.hasRoom(share.isEmpty ? 1 : bytes),
      hold: (bytes) => share.hold(bytes),
      letGo: (bytes) => share.letGo(bytes)
    }
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
