import { Deferred, Effect } from "effect"

/** Keys of one read; a call with more keys is read on its own. */
const maxKeys = 256
/** How long (ms) a read may delay the next one: a read whose connection has died must not block all others. */
const patienceMs = 250

/** Values by key, for at least the requested keys. Keys without a value are absent. */
type Found<A> = ReadonlyMap<string, A>

interface Asked<A, E> {
  readonly keys: ReadonlyArray<string>
  readonly done: Deferred.Deferred<Found<A>, E>
}

/**
 * Batches reads by keys. Keys requested while a read is under way go into the next read: under low load every call has a read of
 * its own, and under load one statement serves many. A read begins after it was requested, so it never returns an older state. It
 * continues for the other callers when one is interrupted. Not for use inside a transaction, because it does not see that
 * transaction's writes.
 */
export const gathered = Effect.fnUntraced(function* <A, E, R>(
  read: (keys: ReadonlyArray<string>) => Effect.Effect<Found<A>, E, R>
): Effect.fn.Return<(keys: ReadonlyArray<string>) => Effect.Effect<Found<A>, E>, never, R> {
  const run = Effect.runForkWith(yield* Effect.context<R>())
  let waiting: Array<Asked<A, E>> = []
  let busy = false

  const take = (): ReadonlyArray<Asked<A, E>> => {
    let keys = 0
    let count = 0
    while (count < waiting.length) {
      keys += waiting[count]!.keys.length
      if (count > 0 && keys > maxKeys) break
      count++
    }
    const batch = waiting.slice(0, count)
    waiting = waiting.slice(count)
    return batch
  }

  const start = (): void => {
    if (busy || waiting.length === 0) return
    busy = true
    let isFirst = true
    const goOn = (): void => {
      if (!isFirst) return
      isFirst = false
      busy = false
      start()
    }
    const late = setTimeout(goOn, patienceMs)
    const batch = take()
    run(
      Effect.onExit(
        Effect.suspend(() => read([...new Set(batch.flatMap(({ keys }) => keys))])),
        (exit) =>
          Effect.sync(() => {
            for (const { done } of batch) Deferred.doneUnsafe(done, exit)
            clearTimeout(late)
            // After everything that this iteration of the event loop brings has been requested too.
            setImmediate(goOn)
          })
      )
    )
  }

  return (keys) =>
    Effect.suspend(() => {
      const done = Deferred.makeUnsafe<Found<A>, E>()
      waiting.push({ keys, done })
      start()
      return Deferred.await(done)
    })
})
