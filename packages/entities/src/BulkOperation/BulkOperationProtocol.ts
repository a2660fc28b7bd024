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
 * One bulk operation. `Plan` creates it; the version before, which does not know all that its filter may say, does not know the message either. `Run`:
 * the plan is confirmed. `End`: it is cancelled. `Wake`: it is not at its end. A hint that may be lost: the sweep says it again.
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
