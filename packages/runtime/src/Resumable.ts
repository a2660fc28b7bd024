/** A computation that yields every few milliseconds, so that other work can run in between (`inSlices`). */
export type Resumable<A> = Generator<void, A, void>

/** Runs a computation to its end without pauses. Use it where nothing else waits for the event loop, or if the work is known to be short. */
export const runToEnd = <A>(work: Iterator<void, A, void>): A => {
  for (;;) {
    const part = work.next()
    if (part.done === true) return part.value
  }
}

/** `map` of an array, which may pause behind each item. */
export function* mapped<A, B>(items: ReadonlyArray<A>, of: (item: A, index: number) => B): Resumable<ReadonlyArray<B>> {
  const found: Array<B> = []
  for (const [index, item] of items.entries()) {
    found.push(of(item, index))
    yield
  }
  return found
}
