/**
 * Repeats `again`, one call after the other, until `work` has ended, and returns what `work` returns. If either fails, so does this, and
 * no further call begins: a call that went on after its test would fail another one.
 */
export const meanwhile = async <A>(again: () => Promise<unknown>, work: () => Promise<A>): Promise<A> => {
  const over = new AbortController()
  const repeating = async (): Promise<void> => {
    while (!over.signal.aborted) await again()
  }
  const [result] = await Promise.all([work().finally(() => over.abort()), repeating()])
  return result
}
