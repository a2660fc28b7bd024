/** Something that is come by in parts of a few milliseconds: others may have their turn between them (`inSlices`). */
export type Resumable<A> = Generator<void, A, void>

/** What comes of it, where nobody waits or it is known to be short. */
export const runToEnd = <A>(work: Iterator<void, A, void>): A => {
  for (;;) {
    const part = work.next()
    if (part.done === true) return part.value
  }
}
