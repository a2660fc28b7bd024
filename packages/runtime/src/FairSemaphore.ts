import { Effect } from "effect"

/**
 * Permits that many keys (teams, destinations) share fairly. Keys that found no permit are served in the order in which they asked; a key that has been
 * served goes to the end, so that a key with a thousand waiters gets as many permits as a key with one.
 *
 * How many permits one key may have: `perKey`, or by default as many as are left over after it. Then one key alone gets half of all, and `n` keys that want more
 * get one part in `n + 1` each. So one part is always free for a key that comes later, and slow work cannot hold the permits that quick work needs.
 */
export interface Permits {
  /** All of them; by default unlimited, so that `perKey` alone counts. */
  readonly permits?: number
  readonly perKey?: number
}

export class FairSemaphore {
  readonly #permits: number
  readonly #perKey: number | null
  /** Keys that found no permit, in the order in which they asked. */
  readonly #waiting = new Set<KeyPermits>()
  #taken = 0
  readonly #owner: Owner = {
    take: (key) => {
      if (!this.#mayTake(key)) {
        this.#waiting.add(key)
        return false
      }
      this.#taken++
      return true
    },
    withdraw: (key) => this.#waiting.delete(key),
    release: () => this.#release()
  }

  constructor({ perKey, permits = Number.POSITIVE_INFINITY }: Permits) {
    this.#permits = permits
    this.#perKey = perKey ?? null
  }

  /** Permits that are in use. */
  get taken(): number {
    return this.#taken
  }

  /** The permits of one key. After the key found none, `retry` is called once when it may have one. */
  key(retry: () => void): KeyPermits {
    return new KeyPermits(this.#owner, retry)
  }

  /** A key may always have its first permit while one is free. */
  #mayTake({ taken }: KeyPermits): boolean {
    const free = this.#permits - this.#taken
    return free > 0 && taken < (this.#perKey ?? Math.max(1, free))
  }

  #release(): void {
    const before = this.#taken
    this.#taken--
    // Keys that wait could take none of the permits that were free already: one permit is enough to stop.
    for (const key of this.#waiting) {
      if (this.#taken >= before) return
      if (!this.#mayTake(key)) continue
      this.#waiting.delete(key)
      key.retry()
    }
  }
}

interface Owner {
  readonly take: (key: KeyPermits) => boolean
  readonly withdraw: (key: KeyPermits) => void
  readonly release: () => void
}

/** What one key has of a semaphore. */
export class KeyPermits {
  readonly #owner: Owner
  readonly retry: () => void
  taken = 0

  constructor(owner: Owner, retry: () => void) {
    this.#owner = owner
    this.retry = retry
  }

  /** Takes a permit. False: there is none now. */
  take(): boolean {
    const isTaken = this.#owner.take(this)
    if (isTaken) this.taken++
    return isTaken
  }

  /** Does not wait for a permit any more. */
  withdraw(): void {
    this.#owner.withdraw(this)
  }

  release(): void {
    this.taken--
    this.#owner.release()
  }
}

/** Runs effects with a permit each. */
export interface PermitsByKey {
  /**
   * Runs an effect with a permit of the key, and gives it back at the end. While the key has `maxWaiting` waiters already, `full` runs instead
   * (by default there is no such bound).
   */
  readonly within: (
    key: string
  ) => <A, E, R, B = never, F = never, S = never>(
    effect: Effect.Effect<A, E, R>,
    full?: Effect.Effect<B, F, S>
  ) => Effect.Effect<A | B, E | F, R | S>
  /** How many keys have permits or wait for one: others take no memory. */
  readonly keys: () => number
}

/** How permits of keys are given. */
export interface PermitsByKeyOptions extends Permits {
  /** How many may wait for a permit of one key. Default: any number. */
  readonly maxWaiting?: number
  /** Called when an effect gets its permit. What it returns gives the permit back when the effect has ended, at once or later. Default: at once. */
  readonly resting?: () => (giveBack: () => void) => void
}

interface Key {
  readonly permits: KeyPermits
  /** Resumes those that wait, in the order in which they came. */
  readonly waiting: Set<() => void>
}

export const permitsByKey = ({
  maxWaiting = Number.POSITIVE_INFINITY,
  resting = () => (giveBack) => giveBack(),
  ...of
}: PermitsByKeyOptions): PermitsByKey => {
  const semaphore = new FairSemaphore(of)
  const keys = new Map<string, Key>()

  const open = (name: string): Key => {
    const waiting = new Set<() => void>()
    const permits = semaphore.key(() => {
      for (const go of waiting) {
        if (!permits.take()) return
        waiting.delete(go)
        go()
      }
    })
    const key = { permits, waiting }
    keys.set(name, key)
    return key
  }

  /** Reads or changes the key's state, and forgets a key that has nothing left. */
  const use = <A>(name: string, change: (key: Key) => A): A => {
    const key = keys.get(name) ?? open(name)
    const answer = change(key)
    if (key.permits.taken === 0 && key.waiting.size === 0) {
      key.permits.withdraw()
      // A waiter that was resumed runs at once: it may have forgotten this key already, and opened another one of that name.
      if (keys.get(name) === key) keys.delete(name)
    }
    return answer
  }

  return {
    keys: () => keys.size,
    within:
      (name) =>
      <A, E, R, B = never, F = never, S = never>(effect: Effect.Effect<A, E, R>, full?: Effect.Effect<B, F, S>) => {
        const release = () => use(name, ({ permits }) => permits.release())
        const wait = Effect.callback<void>((resume) => {
          const go = () => resume(Effect.void)
          const isTaken = use(name, ({ permits, waiting }) => {
            if (waiting.size === 0 && permits.take()) return true
            waiting.add(go)
            return false
          })
          if (isTaken) return resume(Effect.void)
          return Effect.sync(() =>
            use(name, ({ permits, waiting }) => {
              // It got a permit at the moment in which it was interrupted: the permit goes to the next one.
              if (!waiting.delete(go)) permits.release()
            })
          )
        })
        return Effect.uninterruptibleMask((restore): Effect.Effect<A | B, E | F, R | S> => {
          const withPermit = Effect.suspend(() => {
            const end = resting()
            return Effect.ensuring(
              restore(effect),
              Effect.sync(() => end(release))
            )
          })
          // Most find a permit and need not wait.
          const found = use(name, ({ permits, waiting }) =>
            waiting.size === 0 && permits.take() ? "permit" : waiting.size >= maxWaiting ? "full" : "wait"
          )
          if (found === "permit") return withPermit
          return found === "full" && full !== undefined ? restore(full) : Effect.andThen(restore(wait), withPermit)
        })
      }
  }
}
