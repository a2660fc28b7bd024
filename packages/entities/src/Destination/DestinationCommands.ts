import { Effect, type Schema } from "effect"
import { Destinations } from "@tidegate/storage/Destinations"
import { Cancellations } from "../Cancellations.ts"
import { carryThrough } from "../CarryThrough.ts"
import { createDestination, replaceDestination, updateDestination, upsertDestination } from "./DestinationInput.ts"

/*
 * The commands of one destination: each checks its input and is one transaction. That deliveries go by what they have
 * written from then on is up to the actor that carries them out.
 */

export const create = Effect.fnUntraced(function* (team_id: string, id: string, input: Schema.Json) {
  const fields = yield* Effect.fromResult(createDestination(input))
  return yield* (yield* Destinations).create(team_id, id, fields)
}, carryThrough)

/** A change in part. */
export const update = Effect.fnUntraced(function* (team_id: string, id: string, input: Schema.Json) {
  return yield* (yield* Destinations).update(team_id, id, updateDestination(input))
}, carryThrough)

/** An upsert that found it: what the input leaves out stays. */
export const upsert = Effect.fnUntraced(function* (team_id: string, id: string, input: Schema.Json) {
  return yield* (yield* Destinations).update(team_id, id, upsertDestination(input))
}, carryThrough)

/** A change of the whole: what the input leaves out has its default. */
export const replace = Effect.fnUntraced(function* (team_id: string, id: string, input: Schema.Json) {
  return yield* (yield* Destinations).update(team_id, id, replaceDestination(input))
}, carryThrough)

export const disable = Effect.fnUntraced(function* (team_id: string, id: string) {
  const destination = yield* (yield* Destinations).setDisabled(team_id, id, true)
  yield* (yield* Cancellations).request({ destination_id: id })
  return destination
}, carryThrough)

export const enable = Effect.fnUntraced(function* (team_id: string, id: string) {
  return yield* (yield* Destinations).setDisabled(team_id, id, false)
}, carryThrough)

/** Deletes its connections with it. */
export const remove = Effect.fnUntraced(function* (team_id: string, id: string) {
  yield* (yield* Destinations).delete(team_id, id)
  yield* (yield* Cancellations).request({ destination_id: id })
  return { id }
}, carryThrough)
