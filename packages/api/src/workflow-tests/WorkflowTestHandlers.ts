import { Duration, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { maxWorkflowTest, maxWorkflowValues } from "@tidegate/model/BodyLimits"
import { fail } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { judgeWorkflowDryRun } from "@tidegate/resources/WorkflowDryRun"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, type ById, ownersOf, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"

/** Longer than a test, which may take a minute. */
const deadline = Duration.seconds(75)

/**
 * Tests run in the workflow's actor, because it has what runs need. A graph that is not stored is tested in an actor that is
 * never called again.
 */
export const layer = HttpApiBuilder.group(
  Api,
  "workflowTests",
  Effect.fnUntraced(function* (handlers) {
    const { fresh, owner } = ownersOf(prefixes.workflow, "workflow", yield* WorkflowEntity.client)

    const tested = Effect.fnUntraced(function* ({ request }: WithBody, id: string | null) {
      const { id: team_id, role } = yield* CurrentTeam
      const written = yield* readJsonObject(request, maxWorkflowTest, maxWorkflowValues)
      const input = yield* Effect.fromResult(judgeWorkflowDryRun(written))
      if (input.mode === "live" && role !== "owner") {
        yield* fail("ROLE_REQUIRED", "only owners of the team may run a test with real calls", { required: "owner" })
      }
      const run_id = yield* idOfCall(prefixes.workflowRun)
      const actor = id === null ? yield* fresh : yield* owner(id)
      return yield* askOwner(actor.Test({ team_id, run_id, stored: id !== null, input }), deadline)
    })

    return handlers
      .handleRaw("test", (call: ById & WithBody) => tested(call, call.params.id))
      .handleRaw("testUnsaved", (call: WithBody) => tested(call, null))
  })
)
