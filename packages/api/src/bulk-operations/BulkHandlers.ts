import { Clock, Effect, type Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { BulkOperationEntity } from "@tidegate/entities/BulkOperation/BulkOperationProtocol"
import type { BulkOf } from "@tidegate/model/BulkOperation"
import { prefixes } from "@tidegate/model/Ids"
import {
  eventBulkBody,
  ignoredEventBulkBody,
  requestBulkBody,
  workflowRunBulkBody
} from "@tidegate/resources/BulkOperation"
import { getOperation, listOperations } from "@tidegate/storage/bulk/BulkOperations"
import { idOfCall } from "../CallIds.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { askOwner, type ById, ownersOf, reader } from "../handlers/Calls.ts"
import { readJsonObjectIfAny } from "../handlers/JsonBody.ts"
import { pageOf, underOneName } from "../handlers/ListInput.ts"

const bodies = {
  requests: requestBulkBody,
  events: eventBulkBody,
  ignored_events: ignoredEventBulkBody,
  workflow_runs: workflowRunBulkBody
}

type Query = Schema.Struct.Type<typeof Lists.bulkOperations.query>

/** The calls on bulk operations of one kind of records: changes go to their actors, reads to the table. */
export const bulkCalls = Effect.fnUntraced(function* (of: BulkOf) {
  const client = yield* BulkOperationEntity.client
  const reading = yield* reader
  const { owner } = ownersOf(prefixes.bulkOperation, "bulk operation", client)

  return {
    list: Effect.fnUntraced(function* ({ query }: { readonly query: Query }) {
      const { id: team_id } = yield* CurrentTeam
      const bucket = (yield* underOneName(query, "bucket", "view")) ?? "all"
      const page = yield* pageOf(Lists.bulkOperations, query, { team: team_id, of, bucket })
      return yield* reading(listOperations({ team_id, of }, bucket, page))
    }),
    create: Effect.fnUntraced(function* ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) {
      const { caller, id: team_id } = yield* CurrentTeam
      const written = yield* readJsonObjectIfAny(request)
      const now = yield* Clock.currentTimeMillis
      const asked = yield* Effect.fromResult(bodies[of].judge(written, now))
      const operation = client(yield* idOfCall(prefixes.bulkOperation))
      const requested_by = caller.kind === "session" ? caller.signedIn.user.id : null
      return yield* askOwner(operation.Plan({ ...asked, team_id, requested_by }))
    }),
    retrieve: ({ params }: ById) =>
      Effect.flatMap(CurrentTeam, ({ id: team_id }) => reading(getOperation({ team_id, of, id: params.id }))),
    run: Effect.fnUntraced(function* ({ params }: ById) {
      const { id: team_id } = yield* CurrentTeam
      return yield* askOwner((yield* owner(params.id)).Run({ team_id, of }))
    }),
    cancel: Effect.fnUntraced(function* ({ params }: ById) {
      const { id: team_id } = yield* CurrentTeam
      return yield* askOwner((yield* owner(params.id)).End({ team_id, of }))
    })
  }
})
