import { Deferred, Effect } from "effect"

/** Keys of one read; what asks for more is read by itself. */
const maxKeys = 256
/** How long (ms) a read may keep the next one waiting: one whose connection has died must not keep everybody. */
const patienceMs = 250

/** Values by key, of at least the keys that were asked for. What is not there has none. */
type Found<A> = ReadonlyMap<string, A>

interface Asked<A, E> {
  readonly keys: ReadonlyArray<string>
  readonly done: Deferred.Deferred<Found<A>, E>
}

/**
 * A read by keys that many ask for at the same time. What is asked for while one is under way is gathered and goes into the next: at
 * low load everybody's read is his own, and under load one statement answers many. It begins after it was asked for, so nobody is answered what
 * was stored before; and it is carried through when one of those who asked has gone away, for the others. Not for the inside of a
 * transaction, whose writes it does not see.
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
            // After what this turn of the event loop brings has been asked for too.
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
