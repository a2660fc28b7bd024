import { Context, Semaphore, type Effect } from "effect"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { type ByteShare, SharedBytes } from "@tidegate/runtime/SharedBytes"

/** Calls that one process makes at once for the runs of all workflows. */
const maxEffects = 256
/** Default for the bytes that runs in hand may hold. The process sets a number that fits its heap. */
const defaultBytes = 128 * 1_048_576
/**
 * Workflows that read runs at the same time. The size of runs is known only after they have been read, and thousands of workflows
 * may wake at once.
 */
const readers = 4
/**
 * Bytes of runs that one of these workflows reads at once, and the largest share of all bytes that it may read. These bytes come
 * on top of the limit.
 */
const readOnce = { bytes: 16 * 1_048_576, share: 1 / 8 }

/**
 * The capacity of one team in the process, for all of its workflows together. So its slow targets do not use capacity that other
 * teams need.
 */
export interface TeamRoom {
  /** Runs a call of a step with a permit, and waits for a permit if none is free. */
  readonly within: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly hasRoom: (bytes: number) => boolean
  /** Whether runs with this number of bytes may be read. A team that holds none may always read while any memory is free. */
  readonly mayRead: (bytes: number) => boolean
  readonly hold: (bytes: number) => void
  readonly release: (bytes: number) => void
}

/** The capacity of a process for runs of workflows: calls at once, and bytes in memory. Teams share both fairly. */
export class RunRoom {
  readonly #effects = permitsByKey({ permits: maxEffects })
  readonly #bytes: SharedBytes
  /** Only teams that hold bytes have an entry. */
  readonly #shares = new Map<string, ByteShare>()

  /** Reads runs and counts them as held. Waits while `readers` others are reading. */
  readonly reading = Semaphore.withPermit(Semaphore.makeUnsafe(readers))

  /** Bytes of runs that are read at once. */
  readonly readBytes: number

  /** `bytes`: the number of bytes that runs in hand may hold. */
  constructor(bytes: number = defaultBytes) {
    this.readBytes = Math.floor(Math.min(readOnce.bytes, bytes * readOnce.share))
    this.#bytes = new SharedBytes(bytes)
  }

  /** The number of teams with an entry in memory here. */
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

/** One for each process. */
export const Room = Context.Reference<RunRoom>("@tidegate/entities/Workflow/RunRoom", {
  defaultValue: () => new RunRoom()
})

/** Calls that the runs of one workflow make at once. */
export const CallsAtOnce = Context.Reference<number>("@tidegate/entities/Workflow/CallsAtOnce", {
  defaultValue: () => 10
})
