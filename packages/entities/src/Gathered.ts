import { type Context, Effect, type Exit } from "effect"

/**
 * Batches items into statements that run one after the other: items that are added while a statement runs go into the next one.
 * So items are carried out in the order in which they were added, and under load one statement serves many callers.
 */
export class Gathered<Item, A, E, R> {
  readonly #carryOut: (items: ReadonlyArray<Item>) => Effect.Effect<A, E, R>
  readonly #max: number
  #waiting: Array<{ readonly item: Item; readonly done: (exit: Exit.Exit<A, E>) => void }> = []
  #isAtIt = false

  /** `max`: the largest number of items of one statement. */
  constructor(max: number, carryOut: (items: ReadonlyArray<Item>) => Effect.Effect<A, E, R>) {
    this.#max = max
    this.#carryOut = carryOut
  }

  /** Returns the result of the item's statement. An item is carried out even when its caller has stopped waiting. */
  add(item: Item): Effect.Effect<A, E, R> {
    return Effect.contextWith((context: Context.Context<R>) =>
      Effect.callback<A, E>((resume) => {
        this.#waiting.push({ item, done: resume })
        if (this.#isAtIt) return
        this.#isAtIt = true
        Effect.runForkWith(context)(this.#work)
      })
    )
  }

  get #work(): Effect.Effect<void, never, R> {
    return Effect.whileLoop({
      while: () => (this.#isAtIt = this.#waiting.length > 0),
      body: () => {
        const taken = this.#waiting.splice(0, this.#max)
        return Effect.map(Effect.exit(this.#carryOut(taken.map(({ item }) => item))), (exit) =>
          taken.forEach(({ done }) => done(exit))
        )
      },
      step: () => {}
    })
  }
}
