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
import { asList, asReport } from "@tidegate/storage/FairReads"
import { query } from "@tidegate/storage/Transaction"
import { idOfCall } from "../CallIds.ts"
import { CurrentTeam } from "../contract/Authorization.ts"

/** Longer than a fail-over of a shard to another runner takes, shorter than callers wait. */
const deadline = Duration.seconds(15)

const late = (message: string, duration: Duration.Input = deadline) => ({
  duration,
  orElse: () => Effect.fail(fail("QUEUE_UNAVAILABLE", message))
})

/** A call on one resource. */
export interface ById {
  readonly params: { readonly id: string }
}

/** A call whose handler reads the body itself. */
export interface WithBody {
  readonly request: HttpServerRequest.HttpServerRequest
}

/** A read: limited in time, and cancelled (with its query) when its caller has gone. */
export const read = <A, R>(
  effect: Effect.Effect<A, GatewayError | SqlError.SqlError, R>
): Effect.Effect<A, GatewayError, R> =>
  Effect.timeoutOrElse(query(effect), late("the database did not answer in time; repeat the request"))

/**
 * The actors of one kind of resource: of existing ones, and of a new one. A text that is no id of that kind is not found, without
 * starting an actor for it.
 */
export const ownersOf = <Client>(prefix: Prefix, resource: string, client: (id: string) => Client) => ({
  owner: (id: string): Effect.Effect<Client, GatewayError> =>
    isId(prefix, id) ? Effect.succeed(client(id)) : Effect.fail(notFound(resource, id)),
  fresh: Effect.map(idOfCall(prefix), client)
})

/** What every command says about its caller. */
export const asked = Effect.map(CurrentTeam, ({ caller, id }) => ({ team_id: id, by: userOf(caller) }))

/** The actor could not be reached. */
export type NoOwner =
  | ClusterError.MailboxFull
  | ClusterError.AlreadyProcessingMessage
  | ClusterError.PersistenceError
  | ClusterError.EntityNotAssignedToRunner

/** The resource has moved to another process while its actor worked. */
class OwnerChanged extends Data.TaggedError("OwnerChanged") {}

/** While a shard moves, the next owner is called as soon as it has the shard. */
const askingAgain = { times: 20, schedule: Schedule.spaced("250 millis") }

/** Runs an effect to its end, even if its caller hangs up. */
const unhindered = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkDetach(effect), Fiber.join)

/** Runs a change in this process to its end. */
export const carriedThrough = <A, R>(change: Effect.Effect<A, GatewayError, R>): Effect.Effect<A, GatewayError, R> =>
  unhindered(Effect.timeoutOrElse(change, late("the database did not answer in time; repeat the request")))

/**
 * Sends a message to the resource's actor. It continues when its caller hangs up: a stored change has to reach everyone it
 * concerns. Every command is idempotent: when the actor moves meanwhile, the command is sent to the next owner. An actor that
 * cannot be reached before the deadline is a 503, because the call may be repeated.
 */
export const askOwner = <A, R>(
  effect: Effect.Effect<A, GatewayError | NoOwner, R>,
  within = deadline
): Effect.Effect<A, GatewayError, R> => unhindered(askWhileWaited(effect, within))

/** The same for a message that is of no use without its caller: it ends when its caller hangs up. */
export const askWhileWaited = <A, R>(
  effect: Effect.Effect<A, GatewayError | NoOwner, R>,
  within: Duration.Input = deadline
): Effect.Effect<A, GatewayError, R> =>
  effect.pipe(
    Effect.mapError((error) =>
      error instanceof GatewayError
        ? error
        : fail("QUEUE_UNAVAILABLE", "the resource's owner cannot be reached; repeat the request")
    ),
    // An actor that loses its shard is interrupted, and so is its answer. A caller that hangs up ends this fiber without it.
    Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.fail(new OwnerChanged())),
    Effect.retry({ while: ({ _tag }) => _tag === "OwnerChanged", ...askingAgain }),
    Effect.catchTag("OwnerChanged", () =>
      Effect.fail(fail("QUEUE_UNAVAILABLE", "the resource has just changed its owner; repeat the request"))
    ),
    Effect.timeoutOrElse(late("the resource's owner did not answer in time; repeat the request", within))
  )

/** The services that reads need. */
export type Stores = Database | Ingress | Secrets | ResourceStores

/** The team of a call. Calls without a credential have none, and share one key of the fair semaphore. */
const teamOfCall = Effect.map(Effect.serviceOption(CurrentTeam), (team) => (Option.isSome(team) ? team.value.id : ""))

const readerIn = (
  withPermit: (
    team: string
  ) => <A>(
    read: Effect.Effect<A, GatewayError | SqlError.SqlError, Stores>
  ) => Effect.Effect<A, GatewayError | SqlError.SqlError, Stores>
) =>
  Effect.map(
    Effect.context<Stores>(),
    (stores) =>
      <A>(effect: Effect.Effect<A, GatewayError | SqlError.SqlError, Stores>): Effect.Effect<A, GatewayError> =>
        Effect.flatMap(teamOfCall, (team) => read(Effect.provideContext(withPermit(team)(effect), stores)))
  )

/** `read` with its services provided, under the calling team's fair semaphore. */
export const reader = readerIn(asList)

/** The same for reads of many rows: counts, series, summaries and searches have a pool and a semaphore of their own. */
export const reporter = readerIn(asReport)

export type Reader = Effect.Success<typeof reader>

/**
 * Updates a resource if it exists, and creates it otherwise. If another caller creates it in between, that resource is updated,
 * so repeated and concurrent upserts all succeed.
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
