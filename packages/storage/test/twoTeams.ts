import { Effect, Layer } from "effect"
import { prefixes, sibling } from "@tidegate/model/Ids"
import * as ControlPlane from "./controlPlane.ts"
import { idOf, makeOldDays, type OldDays } from "./OldDays.ts"

/** Two teams with some requests on each of three days, today the last. */
export const mine = "tm_mine"
export const other = "tm_other"

export const old: OldDays = {
  now: Date.now(),
  days: 3,
  teams: { [mine]: { payload: null, record: null }, [other]: { payload: null, record: null } },
  perDay: 10,
  bodyBytes: 64
}

export const world = Layer.effectDiscard(makeOldDays(old)).pipe(Layer.provideMerge(ControlPlane.layer), Layer.orDie)

/** A request of a team, so many days ago. */
export const requestOf = (team: string, day = 0) => sibling(prefixes.request, `req_${idOf(old, team, day, 6)}`)

/** The code that something fails with. */
export const codeOf = <R>(effect: Effect.Effect<unknown, unknown, R>) =>
  Effect.map(Effect.flip(effect), (error) => (error as { readonly code?: string }).code)

/** How many of these succeed when they are done at once, and the codes of the others. */
export const atOnce = Effect.fnUntraced(function* <R>(effects: ReadonlyArray<Effect.Effect<unknown, unknown, R>>) {
  const ends = yield* Effect.all(
    effects.map((one) =>
      Effect.match(one, { onSuccess: () => null, onFailure: (error) => (error as { readonly code?: string }).code })
    ),
    { concurrency: "unbounded" }
  )
  return { made: ends.filter((end) => end === null).length, codes: [...new Set(ends.filter((end) => end !== null))] }
})
