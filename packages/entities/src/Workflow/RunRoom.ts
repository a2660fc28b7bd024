import { Context, Semaphore, type Effect } from "effect"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { type ByteShare, SharedBytes } from "@tidegate/runtime/SharedBytes"

/** Calls that one process makes at once for runs of all workflows. */
const maxEffects = 256
/** Bytes that runs in hand hold by default; a process is started with a number that fits its heap. */
const defaultBytes = 128 * 1_048_576
/** Workflows whose runs are read at once. What runs weigh is known only when they have been read, and thousands of workflows may be woken together. */
const readers = 4
/** Bytes of runs that one of these workflows reads, and the part of all bytes that it reads at most: what they read comes on top. */
const readOnce = { bytes: 16 * 1_048_576, share: 1 / 8 }

/** What one team has of the process, however many workflows it has: so its slow targets do not take what other teams need. */
export interface TeamRoom {
  /** Runs a call of a step with a permit, and waits for the permit where there is none. */
  readonly within: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly hasRoom: (bytes: number) => boolean
  /** Whether runs of so many bytes may be read. A team that holds none may always read while there is any room. */
  readonly mayRead: (bytes: number) => boolean
  readonly hold: (bytes: number) => void
  readonly release: (bytes: number) => void
}

/** What runs of workflows may have of a process: calls at once, and bytes in memory. Teams share both fairly. */
export class RunRoom {
  readonly #effects = permitsByKey({ permits: maxEffects })
  readonly #bytes: SharedBytes
  /** The bytes of the teams that hold any. */
  readonly #shares = new Map<string, ByteShare>()

  /** Reads runs and holds them; waits while `readers` others do. */
  readonly reading = Semaphore.withPermit(Semaphore.makeUnsafe(readers))

  /** Bytes of runs that are read at once. */
  readonly readBytes: number

  /** `bytes`: that runs in hand may hold. */
  constructor(bytes: number = defaultBytes) {
    this.readBytes = Math.floor(Math.min(readOnce.bytes, bytes * readOnce.share))
    this.#bytes = new SharedBytes(bytes)
  }

  /** How many teams take memory here. */
  get teams(): number {
    return Math.max(this.#shares.size, this.#effects.keys())
  }

  of(teamId: string): TeamRoom {
    const share = (): ByteShare => this.#shares.get(teamId) ?? this.#bytes.share()
    const hold = (bytes: number): void => {
      const held = share()
      held.hold(bytes)
      if (held.isEmpty) this.#shares.delete(teamId)
      else this.#shares.set(teamId, held)
    }
    return {
      within: this.#effects.within(teamId),
      hasRoom: (bytes) => share().hasRoom(bytes),
      mayRead: (bytes) => {
        const held = share()
        return held.hasRoom(held.isEmpty ? 1 : bytes)
      },
      hold,
      release: (bytes) => hold(-bytes)
    }
  }
}

/** One for a process. */
export const Room = Context.Reference<RunRoom>("@tidegate/entities/Workflow/RunRoom", {
  defaultValue: () => new RunRoom()
})

/** Calls that the runs of one workflow make at once. */
export const CallsAtOnce = Context.Reference<number>("@tidegate/entities/Workflow/CallsAtOnce", {
  defaultValue: () => 10
})
