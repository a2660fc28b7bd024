import { randomUUID } from "node:crypto"
import { Clock, Effect, Result, type Schema } from "effect"
import type { HttpApiBuilder, HttpApiEndpoint } from "effect/http-api"
import { type FieldError, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { Ingress } from "@tidegate/model/Ingress"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Role } from "@tidegate/model/Permission"
import type { Warning } from "@tidegate/model/Warning"
import {
  type AnyResource,
  type Body,
  type RecordOf,
  type Switch,
  type SwitchOf,
  typeName
} from "@tidegate/resources/Resource"
import { ReadSemaphores } from "@tidegate/storage/Database"
import type { Store } from "@tidegate/storage/control/Store"
import { idOfCall } from "../CallIds.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import type { ResourceList } from "../contract/Lists.ts"
import {
  asked,
  askOwner,
  type ById,
  carriedThrough,
  type NoOwner,
  ownersOf,
  read,
  upsert,
  type WithBody
} from "./Calls.ts"
import { readWritten, textOf, type Written } from "./JsonBody.ts"
import { listing } from "./Listing.ts"
import { type ListQuery, type Narrowed, resourceQueryOf } from "./ListInput.ts"

/** What is special about the calls on a resource. */
interface Special<R extends AnyResource> {
  /** The record in the form that the caller may see. */
  readonly shownTo?: (role: Role, record: RecordOf<R>) => RecordOf<R>
  /** The id of the resource that a body upserts, if its name alone does not identify it. */
  readonly find?: (team_id: string, body: Schema.JsonObject) => Effect.Effect<string | null, GatewayError>
  /** The filter of its list, beyond that of every list. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the query of its own group
  readonly narrowed?: (query: any) => Effect.Effect<Narrowed, GatewayError>
  /** Fails when this caller may not write that. `id`: of what is changed; null for a new one. */
  readonly allowed?: (written: Schema.JsonObject, id: string | null) => Effect.Effect<void, GatewayError, CurrentTeam>
  /** The warnings of a write, if they need more than the record. */
  readonly warningsOf?: (record: RecordOf<R>) => Effect.Effect<ReadonlyArray<Warning>, GatewayError>
  /** Whether a create needs something that only an actor has. */
  readonly needsActor?: (input: R["write"]["message"]["Type"]) => boolean
}

/** Sends a message with the client of an actor. */
type Send = (payload: {
  readonly team_id: string
  readonly by: string | null
  readonly command: string
  readonly input?: unknown
}) => Effect.Effect<never, GatewayError | NoOwner>

type Owner = { readonly [message: string]: Send }

/** The faults of single members in the result of a check. */
const fieldsOf = (result: Result.Result<unknown, GatewayError>): ReadonlyArray<FieldError> => {
  if (Result.isSuccess(result)) return []
  const { data } = result.failure
  const isOfFields = typeof data === "object" && data !== null && "fields" in data && Array.isArray(data.fields)
  return isOfFields ? (data.fields as unknown as ReadonlyArray<FieldError>) : []
}

/** Combines faults; for each member only its first one. */
const together = (first: ReadonlyArray<FieldError>, further: ReadonlyArray<FieldError>): ReadonlyArray<FieldError> => {
  const reported = new Set(first.map(({ path }) => path))
  return [...first, ...further.filter(({ path }) => !reported.has(path))]
}

interface Endpoints {
  readonly [identifier: string]: HttpApiEndpoint.Constraint
}

type Handled<R extends AnyResource> =
  | "list"
  | "create"
  | "upsert"
  | "retrieve"
  | "update"
  | "updateByPut"
  | "replace"
  | "delete"
  | SwitchOf<R>
  | `${SwitchOf<R>}ByPost`

/**
 * Handles the calls that every resource has. Commands go to its actor as typed messages, validated as far as the body alone
 * allows. Each has an id, so it takes effect once, however often it arrives. A create is carried out here, unless it needs the
 * actor. Reads go to the table.
 */
export const handle = Effect.fnUntraced(function* <
  R extends AnyResource,
  R0,
  All extends Endpoints,
  Before extends keyof All
>(
  handlers: HttpApiBuilder.Handlers<R0, All, Before>,
  resource: R,
  list: ResourceList,
  store: Store<R>,
  client: (id: string) => unknown,
  {
    allowed = () => Effect.void,
    find,
    narrowed = () => Effect.succeed({}),
    needsActor = () => false,
    shownTo = (_, record) => record,
    warningsOf = (record) => Effect.succeed(typeof resource.warnings === "function" ? resource.warnings(record) : [])
  }: Special<R> = {}
): Effect.fn.Return<
  HttpApiBuilder.Handlers<R0, All, Before | (Handled<R> & keyof All)>,
  never,
  Ingress | ReadSemaphores
> {
  const ingress = yield* Ingress
  const { lists } = yield* ReadSemaphores
  const { fresh, owner } = ownersOf(resource.prefix, resource.name, client as (id: string) => Owner)

  const judged = Effect.fnUntraced(function* (
    body: Body<Schema.Codec<unknown>>,
    { faults, known, sent }: Written,
    id: string | null
  ) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const situation = { id, now, ingress }
    // The resource's own check knows better what a name was meant for.
    const written = faults.length === 0 ? known : sent
    const judging = body.judging?.(written, situation)
    const result = judging === undefined ? body.judge(written, situation) : yield* inSlices(judging)
    if (faults.length === 0) return yield* Effect.fromResult(result)
    return yield* invalid(together([...(body.misplaced?.(sent) ?? []), ...fieldsOf(result)], faults))
  })
  const shown = <X>(effect: Effect.Effect<RecordOf<R>, GatewayError, X>) =>
    Effect.flatMap(CurrentTeam, ({ role }) => Effect.map(effect, (record) => shownTo(role, record)))
  /** A written record with its warnings. */
  const warned = <X>(effect: Effect.Effect<RecordOf<R>, GatewayError, X>) =>
    Effect.gen(function* () {
      const record = yield* effect
      const warnings = yield* warningsOf(record)
      return warnings.length === 0 ? record : { ...record, warnings }
    })
  const send = Effect.fnUntraced(function* (to: Owner, message: string, input?: unknown) {
    const payload = { ...(yield* asked), command: randomUUID(), ...(input === undefined ? {} : { input }) }
    return yield* askOwner(to[message]!(payload))
  })

  /** A new id is known to no other caller. Until this returns its row has no other writer, so no actor has to be started. */
  const createHere = Effect.fnUntraced(function* (input: unknown) {
    const { by, team_id } = yield* asked
    const id = yield* idOfCall(resource.prefix)
    const now = new Date(yield* Clock.currentTimeMillis)
    const fields = yield* Effect.fromResult(resource.create(input, { id, now, ingress }))
    return yield* carriedThrough(store.create(team_id, id, fields, { by }))
  })
  const create = Effect.fnUntraced(function* (written: Written) {
    yield* allowed(written.known, null)
    const input = yield* judged(resource.write, written, null)
    return yield* warned(shown(needsActor(input) ? send(yield* fresh, "Create", input) : createHere(input)))
  })
  const writeOne = (message: string, body: Body<Schema.Codec<unknown>>) =>
    Effect.fnUntraced(function* (id: string, written: Written) {
      const to = yield* owner(id)
      yield* allowed(written.known, id)
      return yield* warned(shown(send(to, message, yield* judged(body, written, id))))
    })
  const update = writeOne("Update", resource.patch)
  const upsertFound = resource.upsert === undefined ? update : writeOne("Upsert", resource.write)
  const put = resource.replace === undefined ? update : writeOne("Replace", resource.write)

  const bodyOf = ({ request }: WithBody) => readWritten(request, resource.largestBody, resource.maxValues)
  const withBody =
    <A, X>(write: (id: string, written: Written) => Effect.Effect<A, GatewayError, X>) =>
    (call: ById & WithBody) =>
      Effect.flatMap(bodyOf(call), (written) => write(call.params.id, written))
  const byName = (team_id: string, written: Schema.JsonObject): Effect.Effect<string | null, GatewayError> => {
    const name = textOf(written, "name")
    return name === null ? Effect.succeed(null) : store.findByName(team_id, name)
  }

  const calls = {
    list: listing(({ query }: { readonly query: ListQuery; readonly endpoint: HttpApiEndpoint.Constraint }) =>
      Effect.gen(function* () {
        const { id: team_id, role } = yield* CurrentTeam
        const wanted = yield* resourceQueryOf(list, team_id, query, yield* narrowed(query))
        const page = yield* read(lists.during(team_id)(store.list(team_id, wanted)))
        return { ...page, models: page.models.map((record) => shownTo(role, record)) }
      })
    ),
    retrieve: ({ params }: ById) =>
      Effect.flatMap(CurrentTeam, ({ id: team_id }) => shown(read(store.get(team_id, params.id)))),
    delete: ({ params }: ById) =>
      Effect.gen(function* () {
        const { id, more } = yield* send(yield* owner(params.id), "Delete")
        return Object.assign({ id, deleted: true as const }, more)
      })
  }
  const writes = {
    create: (call: WithBody) => Effect.flatMap(bodyOf(call), create),
    upsert: (call: WithBody) =>
      Effect.gen(function* () {
        const { id: team_id } = yield* CurrentTeam
        const written = yield* bodyOf(call)
        return yield* upsert({
          find: read((find ?? byName)(team_id, written.known)),
          update: (id) => upsertFound(id, written),
          create: create(written)
        })
      }),
    update: withBody(update),
    [resource.replace === undefined ? "updateByPut" : "replace"]: withBody(put)
  }
  const switchHandlers = resource.switches.flatMap((to: Switch) => {
    const switchOne = ({ params }: ById) =>
      Effect.flatMap(owner(params.id), (found) => shown(send(found, typeName(to))))
    return [[to, switchOne] as const, [`${to}ByPost`, switchOne] as const]
  })

  const untyped = handlers as unknown as {
    readonly handle: (identifier: string, handler: unknown) => void
    readonly handleRaw: (identifier: string, handler: unknown) => void
  }
  for (const [name, handler] of [...Object.entries(calls), ...switchHandlers]) untyped.handle(name, handler)
  for (const [name, handler] of Object.entries(writes)) untyped.handleRaw(name, handler)
  return handlers
})
