/** Milliseconds since the epoch, with fractions, and never going back. */
export const now = (): number => performance.timeOrigin + performance.now()

export const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })

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
  options: { readonly patienceMs: number; readonly everyMs?: number }
): Promise<number> => {
  const deadline = now() + options.patienceMs
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
      throw new NotReached(`${what}: not within ${options.patienceMs / 1000} s${why}`)
    }
    await sleep(options.everyMs ?? 25)
  }
}
