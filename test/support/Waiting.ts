/** Milliseconds since the epoch, with fractions, and never going back. */
export const now = (): number => performance.timeOrigin + performance.now()

export const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })

/**
 * How long a test waits for what has to happen, in ms. Only a test that fails waits so long: it is no promise of the gateway's,
 * and a machine that is busy with other work has to stay below it.
 */
export const patience = 60_000

/** Something that had to become true did not. */
export class NotReached extends Error {
  override readonly name = "NotReached"
}

/**
 * Asks `probe` again and again until it is true, and returns when that was. A probe that fails is one that says no: while
 * processes and databases are killed, asking fails too.
 */
export const waitUntil = async (
  what: string,
  probe: () => boolean | Promise<boolean>,
  options: {
    readonly patienceMs?: number
    readonly everyMs?: number
    /** Goes into the failure: what there was instead. */
    readonly seen?: () => unknown
  } = {}
): Promise<number> => {
  const { everyMs = 25, patienceMs = patience, seen } = options
  const deadline = now() + patienceMs
  let trouble: unknown = null
  for (;;) {
    try {
      if (await probe()) return now()
      trouble = null
    } catch (error) {
      trouble = error
    }
    if (now() > deadline) {
      const why = trouble === null ? "" : ` (${trouble instanceof Error ? trouble.message : JSON.stringify(trouble)})`
      const instead = seen === undefined ? "" : `; seen: ${JSON.stringify(seen())}`
      throw new NotReached(`${what}: not within ${patienceMs / 1000} s${why}${instead}`)
    }
    await sleep(everyMs)
  }
}

/** What `read` gives once it gives something, or once that is `good`. */
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
