import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { BulkFilter, BulkKind, BulkOperation } from "@tidegate/model/BulkOperation"
import { GatewayError } from "@tidegate/model/GatewayError"

const which = { team_id: Schema.String, type: BulkKind }
const answered = { success: BulkOperation, error: GatewayError }

/** One bulk operation. `Wake`: it is not at its end. A hint that may be lost: the sweep says it again. */
export const BulkOperationEntity = Entity.make("BulkOperation", [
  Rpc.make("Create", {
    payload: { ...which, filter: BulkFilter, requested_by: Schema.NullOr(Schema.String) },
    ...answered
  }),
  Rpc.make("Cancel", { payload: which, ...answered }),
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
