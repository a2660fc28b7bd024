import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { BulkFilter, BulkKind, type BulkOf, BulkOperation, kindsOf } from "@tidegate/model/BulkOperation"
import { GatewayError } from "@tidegate/model/GatewayError"

const which = {
  team_id: Schema.String,
  of: Schema.Literals(Object.keys(kindsOf) as ReadonlyArray<BulkOf>)
}
const answered = { success: BulkOperation, error: GatewayError }

/**
 * One bulk operation. `Plan` creates it. The previous version of the gateway knows neither this message nor all members of its
 * filter. `Run`: the plan is confirmed. `End`: the operation is cancelled. `Wake`: the operation is not finished. `Wake` is a
 * wake-up notification and may be lost: the poller repeats it.
 */
export const BulkOperationEntity = Entity.make("BulkOperation", [
  Rpc.make("Plan", {
    payload: {
      team_id: Schema.String,
      type: BulkKind,
      filter: BulkFilter,
      rate: Schema.NullOr(Schema.Int),
      confirmed: Schema.Boolean,
      requested_by: Schema.NullOr(Schema.String)
    },
    ...answered
  }),
  Rpc.make("Run", { payload: which, ...answered }),
  Rpc.make("End", { payload: which, ...answered }),
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
