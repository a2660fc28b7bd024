/** Milliseconds since the epoch, with fractions; never goes back. */
export const now = (): number => performance.timeOrigin + performance.now()

export const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })

/**
 * How long (ms) a test waits for something that has to happen. Only a failing test waits this long. It is not a promise of the
 * gateway, and a busy machine has to stay below it. A channel whose step was interrupted goes on after 30 s.
 */
export const patience = 120_000

/**
 * The most (ms) that one wait between two probes counts. The clock of a virtual machine that was suspended jumps ahead, and a process that was
 * blocked was not waiting for others: neither says that the gateway is late.
 */
const countedMs = 1_000

/** Milliseconds between two probes: a twentieth of the time that was waited so far. To probe costs the gateway that is waited for as well. */
const [minPauseMs, maxPauseMs] = [25, 100]

/** A condition did not become true in time. */
export class NotReached extends Error {
  override readonly name = "NotReached"
}

/**
 * Calls `probe` until it returns true, and returns the time of that. A failure of `probe` counts as false, because calls also
 * fail while processes and databases are killed.
 */
export const waitUntil = async (
  what: string,
  probe: () => boolean | Promise<boolean>,
  options: {
    readonly patienceMs?: number
    /** The time between two probes, for a state that does not last. */
    readonly everyMs?: number
    /** The observed value, which is added to the failure's message. */
    readonly seen?: () => unknown
  } = {}
): Promise<number> => {
  const { everyMs, patienceMs = patience, seen } = options
  let trouble: unknown = null
  let waited = 0
  for (;;) {
    const began = now()
    try {
      if (await probe()) return now()
      trouble = null
    } catch (error) {
      trouble = error
    }
    if (waited > patienceMs) {
      const why = trouble === null ? "" : ` (${trouble instanceof Error ? trouble.message : JSON.stringify(trouble)})`
      const instead = seen === undefined ? "" : `; seen: ${(JSON.stringify(seen()) ?? "").slice(0, 2_000)}`
      throw new NotReached(`${what}: not within ${patienceMs / 1000} s${why}${instead}`)
    }
    const pauseMs = everyMs ?? Math.min(Math.max(minPauseMs, waited / 20), maxPauseMs)
    await sleep(pauseMs)
    waited += Math.min(now() - began, Math.max(countedMs, pauseMs))
  }
}

/** Waits until `read` returns a value, or until that value is `good`, and returns it. */
export const eventually = async <A>(
  what: string,
  read: () => Promise<A | null | undefined> | A | null | undefined,
  good: (value: A) => boolean = () => true
): Promise<A> => {
  let found: A | null | undefined
  const probe = async (): Promise<boolean> => {
    found = await read()
    return found !== null && found !== undefined && good(found)
  }
  await waitUntil(what, probe, { seen: () => found ?? null })
  return found as A
}
