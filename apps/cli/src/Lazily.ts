import { Effect } from "effect"

/** Does the work of a command, whose code is loaded only then: help for one command does not load the code of all. */
export const lazily =
  <Asked, A, E, R>(load: () => Promise<(asked: Asked) => Effect.Effect<A, E, R>>) =>
  (asked: Asked): Effect.Effect<A, E, R> =>
    Effect.flatMap(Effect.promise(load), (run) => run(asked))
