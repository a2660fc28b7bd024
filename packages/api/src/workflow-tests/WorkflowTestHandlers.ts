import { Duration, Effect, Predicate } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { maxWorkflowTest, maxWorkflowValues } from "@tidegate/model/BodyLimits"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import type { WorkflowValidation } from "@tidegate/model/WorkflowValidation"
import { workflow } from "@tidegate/resources/Workflow"
import { validationBody } from "@tidegate/resources/WorkflowDraftInput"
import { judgeWorkflowDryRun } from "@tidegate/resources/WorkflowDryRun"
import { compiledDefinition } from "@tidegate/storage/workflows/Drafts"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, type ById, ownersOf, reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { warningsOf } from "../workflows/DefinitionWarnings.ts"

/** Longer than a test, which may take a minute. */
const deadline = Duration.seconds(75)

/** The issues of a refused definition; null: the failure is of another kind. */
const issuesOf = ({ code, data }: GatewayError): WorkflowValidation["issues"] | null =>
  (code === "WORKFLOW_GRAPH_INVALID" || code === "WORKFLOW_NOT_EXECUTABLE") && Predicate.hasProperty(data, "issues")
    ? (data.issues as WorkflowValidation["issues"])
    : null

const refused = (error: GatewayError): Effect.Effect<WorkflowValidation, GatewayError> => {
  const issues = issuesOf(error)
  return issues === null ? Effect.fail(error) : Effect.succeed({ valid: false, issues, warnings: [] })
}

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

    const workflows = yield* Workflows
    const reading = yield* reader

    /** Within a turn of the team's reads, which limits how many it makes at once, and how long each takes. */
    const validated = Effect.fnUntraced(function* ({ request }: WithBody) {
      const { id: team } = yield* CurrentTeam
      const written = yield* readJsonObject(request, workflow.largestBody, workflow.maxValues)
      const { workflow_id: id = null, ...definition } = yield* Effect.fromResult(validationBody.judge(written))
      const compiled = yield* reading(compiledDefinition(team, id, definition))
      // The body of what begins the runs is known of a stored workflow only.
      const stored = id === null ? null : yield* reading(workflows.get(team, id))
      const warnings = stored === null ? compiled.warnings : yield* reading(warningsOf(workflows, stored, compiled))
      return { valid: true, issues: [], warnings }
    })

    return handlers
      .handleRaw("test", (call: ById & WithBody) => tested(call, call.params.id))
      .handleRaw("testUnsaved", (call: WithBody) => tested(call, null))
      .handleRaw("validate", (call: WithBody) => Effect.catch(validated(call), refused))
  })
)
