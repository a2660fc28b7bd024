import { Deferred, Effect } from "effect"

/** How many items a batch may have. A call with more items is a separate batch. */
const maxItems = 256
/** How long (ms) a batch may delay the next one: a batch whose connection has died must not block all others. */
const patienceMs = 250

/** Values by key, for at least the requested keys. Keys without a value are absent. */
type Found<A> = ReadonlyMap<string, A>

interface Asked<Item, A, E> {
  readonly items: ReadonlyArray<Item>
  readonly done: Deferred.Deferred<A, E>
}

/** `restMs`: how long to wait after a batch. It bounds the batches of a second, except those that are full. Default: 0. */
interface Pace {
  readonly restMs?: number
}

/**
 * Batches work on items. Items that are added while a batch is under way go into the next one. So under low load every call has its own batch, and
 * under high load one statement serves many calls. A batch begins after its items were given, so what it reads is never older. It continues for the
 * other callers when one is interrupted. Not for use inside a transaction, because it does not see that transaction's writes.
 */
export const inBatches = Effect.fnUntraced(function* <Item, A, E, R>(
  work: (items: ReadonlyArray<Item>) => Effect.Effect<A, E, R>,
  { restMs = 0 }: Pace = {}
): Effect.fn.Return<(items: ReadonlyArray<Item>) => Effect.Effect<A, E>, never, R> {
  const run = Effect.runForkWith(yield* Effect.context<R>())
  let waiting: Array<Asked<Item, A, E>> = []
  let waitingItems = 0
  let busy = false
  let resting = false

  const take = (): ReadonlyArray<Asked<Item, A, E>> => {
    let items = 0
    let count = 0
    while (count < waiting.length) {
      const more = waiting[count]!.items.length
      if (count > 0 && items + more > maxItems) break
      items += more
      count++
    }
    const batch = waiting.slice(0, count)
    waiting = waiting.slice(count)
    waitingItems -= items
    return batch
  }

  const start = (): void => {
    if (busy || waiting.length === 0 || (resting && waitingItems < maxItems)) return
    busy = true
    let isFirst = true
    const goOn = (): void => {
      if (!isFirst) return
      isFirst = false
      busy = false
      if (restMs > 0) rest()
      start()
    }
    const late = setTimeout(goOn, patienceMs)
    const batch = take()
    run(
      Effect.onExit(
        Effect.suspend(() => work(batch.flatMap(({ items }) => items))),
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

  const rest = (): void => {
    resting = true
    run(
      Effect.andThen(
        Effect.sleep(restMs),
        Effect.sync(() => {
          resting = false
          start()
        })
      )
    )
  }

  return (items) =>
    Effect.suspend(() => {
      const done = Deferred.makeUnsafe<A, E>()
      waiting.push({ items, done })
      waitingItems += items.length
      start()
      return Deferred.await(done)
    })
})

/** Batches reads by keys, as `inBatches` does. */
export const gathered = <A, E, R>(
  read: (keys: ReadonlyArray<string>) => Effect.Effect<Found<A>, E, R>,
  pace?: Pace
): Effect.Effect<(keys: ReadonlyArray<string>) => Effect.Effect<Found<A>, E>, never, R> =>
  inBatches((keys: ReadonlyArray<string>) => read([...new Set(keys)]), pace)
