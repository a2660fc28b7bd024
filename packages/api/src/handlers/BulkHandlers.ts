import { Clock, Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { BulkOperationEntity } from "@tidegate/entities/BulkOperation/BulkOperationProtocol"
import type { BulkBucket, BulkKind } from "@tidegate/model/BulkOperation"
import { newId, prefixes } from "@tidegate/model/Ids"
import { eventBulkBody, requestBulkBody } from "@tidegate/resources/BulkOperation"
import { getOperation, listOperations } from "@tidegate/storage/BulkOperations"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, type ById, ownersOf, reader } from "./Calls.ts"
import { readJsonObjectIfAny } from "./JsonBody.ts"
import { limitOf, refuseCursors, underOneName } from "./ListInput.ts"

const bodies = { request_bulk_retry: requestBulkBody, event_bulk_retry: eventBulkBody }

interface Query {
  readonly bucket?: BulkBucket
  readonly view?: BulkBucket
  readonly limit?: number
}

/** The calls on bulk operations of one kind: changes go to their entities, reads to the table. */
export const bulkCalls = Effect.fnUntraced(function* (type: BulkKind) {
  const client = yield* BulkOperationEntity.client
  const reading = yield* reader
  const { owner } = ownersOf(prefixes.bulkOperation, "bulk operation", client)

  return {
    list: Effect.fnUntraced(function* ({ query }: { readonly query: Query }) {
      const { id: team_id } = yield* CurrentTeam
      yield* refuseCursors
      const bucket = (yield* underOneName(query, "bucket", "view")) ?? "all"
      const models = yield* reading(listOperations({ team_id, type }, bucket, limitOf(query.limit, 255)))
      return { count: models.length, models }
    }),
    create: Effect.fnUntraced(function* ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) {
      const { caller, id: team_id } = yield* CurrentTeam
      const written = yield* readJsonObjectIfAny(request)
      const now = yield* Clock.currentTimeMillis
      const filter = yield* Effect.fromResult(bodies[type].judge(written, now))
      const asked = client(newId(prefixes.bulkOperation, now))
      const requested_by = caller.kind === "session" ? caller.signedIn.user.id : null
      return yield* askOwner(asked.Create({ team_id, type, filter, requested_by }))
    }),
    retrieve: ({ params }: ById) =>
      Effect.flatMap(CurrentTeam, ({ id: team_id }) => reading(getOperation({ team_id, type, id: params.id }))),
    cancel: Effect.fnUntraced(function* ({ params }: ById) {
      const { id: team_id } = yield* CurrentTeam
      return yield* askOwner((yield* owner(params.id)).Cancel({ team_id, type }))
    })
  }
})
