import { Effect, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { invalid } from "@tidegate/model/GatewayError"
import { WorkflowStatus } from "@tidegate/model/Workflow"
import { workflow } from "@tidegate/resources/Workflow"
import { Workflows } from "@tidegate/storage/Workflows"
import { Api } from "../contract/Api.ts"
import type * as Parameters from "../contract/Parameters.ts"
import { searchOf, valuesOf } from "./ListInput.ts"
import { handle } from "./Resource.ts"

type Query = Schema.Struct.Type<typeof Parameters.workflows>

const known: ReadonlyArray<string> = WorkflowStatus.literals

/** What a list of workflows is narrowed to and ordered by. */
const listed = Effect.fnUntraced(function* (query: Query) {
  const status = (yield* valuesOf("status", query.status)).map((one) => one.toLowerCase())
  if (!status.every((one) => known.includes(one))) {
    yield* invalid([{ path: "status", message: `must be of ${known.join(", ")}` }])
  }
  const search = searchOf(query)
  return {
    orderBy: query.order_by ?? "updated_at",
    among: { status, source_id: yield* valuesOf("source_id", query.source_id) },
    ...(search === undefined ? {} : { search })
  }
})

export const layer = HttpApiBuilder.group(
  Api,
  "workflows",
  Effect.fnUntraced(function* (handlers) {
    const [store, client] = [yield* Workflows, yield* WorkflowEntity.client]
    return yield* handle(handlers, workflow, store, client, { listed })
  })
)
