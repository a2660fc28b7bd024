import { Cause, Data, Duration, Effect, Fiber, Option, Schedule } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { ClusterError } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { fail, GatewayError, notFound } from "@tidegate/model/GatewayError"
import { isId, type Prefix } from "@tidegate/model/Ids"
import type { Ingress } from "@tidegate/model/Ingress"
import { userOf } from "@tidegate/model/Session"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Stores as ResourceStores } from "@tidegate/storage/control/Stores"
import { asReport, inTurn } from "@tidegate/storage/ReadTurns"
import { query } from "@tidegate/storage/Transaction"
import { idOfCall } from "../CallIds.ts"
import { CurrentTeam } from "../contract/Authorization.ts"

/** Longer than a take-over of a shard by another runner lasts, shorter than callers wait. */
const deadline = Duration.seconds(15)

const late = (message: string, duration = deadline) => ({
  duration,
  orElse: () => Effect.fail(fail("QUEUE_UNAVAILABLE", message))
})

/** A call on one resource. */
export interface ById {
  readonly params: { readonly id: string }
}

/** A call whose body its handler reads itself. */
export interface WithBody {
  readonly request: HttpServerRequest.HttpServerRequest
}

/** A read: bounded in time, and given up (the query cancelled) when its caller has gone. */
export const read = <A, R>(
  effect: Effect.Effect<A, GatewayError | SqlError.SqlError, R>
): Effect.Effect<A, GatewayError, R> =>
  Effect.timeoutOrElse(query(effect), late("the database did not answer in time; repeat the request"))

/**
 * The owners of one kind of resource: those there are, and a new one. What is no id of that kind has no owner: it is not
 * found without one being started for it.
 */
export const ownersOf = <Client>(prefix: Prefix, resource: string, client: (id: string) => Client) => ({
  owner: (id: string): Effect.Effect<Client, GatewayError> =>
    isId(prefix, id) ? Effect.succeed(client(id)) : Effect.fail(notFound(resource, id)),
  fresh: Effect.map(idOfCall(prefix), client)
})

/** What every command says of whoever asks for it. */
export const asked = Effect.map(CurrentTeam, ({ caller, id }) => ({ team_id: id, by: userOf(caller) }))

/** Nobody could be asked. */
export type NoOwner =
  | ClusterError.MailboxFull
  | ClusterError.AlreadyProcessingMessage
  | ClusterError.PersistenceError
  | ClusterError.EntityNotAssignedToRunner

/** Another process has taken the resource, or this one has lost it, while its owner worked. */
class OwnerChanged extends Data.TaggedError("OwnerChanged") {}

/** While a shard changes hands, whoever has it next is asked as soon as he has it. */
const askingAgain = { times: 20, schedule: Schedule.spaced("250 millis") }

/** Also when its caller hangs up. */
const unhindered = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkDetach(effect), Fiber.join)

/** A change that is made where it is asked for. */
export const carriedThrough = <A, R>(change: Effect.Effect<A, GatewayError, R>): Effect.Effect<A, GatewayError, R> =>
  unhindered(Effect.timeoutOrElse(change, late("the database did not answer in time; repeat the request")))

/**
 * A message to the resource's owner. It is carried through even when its caller hangs up: a change that is stored has
 * to reach everyone it concerns. Every command is idempotent: one whose owner changes meanwhile is sent to the next, and what cannot be
 * reached for the whole deadline is a 503, because the call may be repeated.
 */
export const askOwner = <A, R>(
  effect: Effect.Effect<A, GatewayError | NoOwner, R>,
  within = deadline
): Effect.Effect<A, GatewayError, R> =>
  effect.pipe(
    Effect.mapError((error) =>
      error instanceof GatewayError
        ? error
        : fail("QUEUE_UNAVAILABLE", "the resource's owner cannot be reached; repeat the request")
    ),
    // An owner that loses its shard is interrupted, and so reads its answer. Nobody interrupts this fiber.
    Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.fail(new OwnerChanged())),
    Effect.retry({ while: ({ _tag }) => _tag === "OwnerChanged", ...askingAgain }),
    Effect.catchTag("OwnerChanged", () =>
      Effect.fail(fail("QUEUE_UNAVAILABLE", "the resource has just changed its owner; repeat the request"))
    ),
    Effect.timeoutOrElse(late("the resource's owner did not answer in time; repeat the request", within)),
    unhindered
  )

/** What reads are made on. */
export type Stores = Database | Ingress | Secrets | ResourceStores

/** The team that a call acts on. Calls of strangers have none, and share the turns of nobody in particular. */
const teamOfCall = Effect.map(Effect.serviceOption(CurrentTeam), (team) => (Option.isSome(team) ? team.value.id : ""))

const readerIn = (
  turn: (
    team: string
  ) => <A>(
    read: Effect.Effect<A, GatewayError | SqlError.SqlError, Stores>
  ) => Effect.Effect<A, GatewayError | SqlError.SqlError, Stores>
) =>
  Effect.map(
    Effect.context<Stores>(),
    (stores) =>
      <A>(effect: Effect.Effect<A, GatewayError | SqlError.SqlError, Stores>): Effect.Effect<A, GatewayError> =>
        Effect.flatMap(teamOfCall, (team) => read(Effect.provideContext(turn(team)(effect), stores)))
  )

/** `read`, with the stores it needs already given, in a turn of the team that calls. */
export const reader = readerIn(inTurn)

/** The same for what may have to read many rows: counts, series, summaries and searches have a pool and turns of their own. */
export const reporter = readerIn(asReport)

export type Reader = Effect.Success<typeof reader>

/**
 * Updates what is found, creates what is not. When another caller creates it in between, what that one made is updated,
 * so that repeated and concurrent upserts all succeed.
 */
export const upsert = <A, R>(steps: {
  readonly find: Effect.Effect<string | null, GatewayError, R>
  readonly update: (id: string) => Effect.Effect<A, GatewayError, R>
  readonly create: Effect.Effect<A, GatewayError, R>
}): Effect.Effect<A, GatewayError, R> =>
  Effect.flatMap(steps.find, (found) =>
    found === null
      ? Effect.catchIf(
          steps.create,
          ({ code }) => code === "RESOURCE_ALREADY_EXISTS",
          (error) => Effect.flatMap(steps.find, (id) => (id === null ? Effect.fail(error) : steps.update(id)))
        )
      : steps.update(found)
  )
