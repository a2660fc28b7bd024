import { type Context, Effect, type Exit } from "effect"

/**
 * Statements that many ask for, one after the other: what is asked for while one is under way goes into the next. So the order of asking is the order
 * of doing, and under load one statement does for many.
 */
export class Gathered<Item, A, E, R> {
  readonly #carryOut: (items: ReadonlyArray<Item>) => Effect.Effect<A, E, R>
  readonly #most: number
  #waiting: Array<{ readonly item: Item; readonly done: (exit: Exit.Exit<A, E>) => void }> = []
  #isAtIt = false

  /** `most`: items of one statement. */
  constructor(most: number, carryOut: (items: ReadonlyArray<Item>) => Effect.Effect<A, E, R>) {
    this.#most = most
    this.#carryOut = carryOut
  }

  /** Answers what came of the statement that the item was in. What was asked for is carried out, also for who waits no longer. */
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
        const taken = this.#waiting.splice(0, this.#most)
        return Effect.map(Effect.exit(this.#carryOut(taken.map(({ item }) => item))), (exit) =>
          taken.forEach(({ done }) => done(exit))
        )
      },
      step: () => {}
    })
  }
}
