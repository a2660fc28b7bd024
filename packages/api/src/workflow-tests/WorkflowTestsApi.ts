import type { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { executing, notByProjectKeys } from "@tidegate/model/Permission"
import { WorkflowTest } from "@tidegate/model/WorkflowTest"
import { WorkflowValidation } from "@tidegate/model/WorkflowValidation"
import { at, ids } from "@tidegate/resources/ExampleIds"
import { workflow } from "@tidegate/resources/Workflow"
import { validationBody } from "@tidegate/resources/WorkflowDraftInput"
import {
  unsavedDryRunExample,
  UnsavedDryRunInput,
  workflowDryRunExample,
  WorkflowDryRunInput
} from "@tidegate/resources/WorkflowDryRun"
import { Authorization } from "../contract/Authorization.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/**
 * Members of the team may call it; the handler restricts live tests, which really send, to owners. Project keys have no access to
 * workflows.
 */
const permission = notByProjectKeys(executing)

const { edges, steps } = workflow.example.body

const step = {
  id: "wse_01kak203r4g7b3k6j1h9f8e0mn",
  step_id: "to_crm",
  name: "CRM",
  kind: "destination",
  status: "failed",
  execution_index: 0,
  input: { source_type: "trigger", source_step_id: null, source_port: "out" },
  compensates: null,
  output_port: null,
  output_ports: [],
  skip_reason: null,
  response_status: null,
  error_code: "BAD_RESPONSE",
  error_message: "simulated",
  error: { code: "BAD_RESPONSE", message: "simulated", status: null, response: null },
  handled: false,
  attempt_count: 1,
  max_attempts: 1,
  attempts: [],
  wait: null,
  warnings: [],
  iterations: null,
  resource: { type: "destination", id: ids.destination },
  queued_at: at,
  started_at: at,
  finished_at: at,
  duration_ms: 0,
  input_preview: null,
  output_preview: null,
  simulated: true
}

const answer: Schema.Json = {
  id: "wfr_01kak203r4g7b3k6j1h9f8e0mn",
  test: true,
  mode: "dry_run",
  workflow_id: ids.workflow,
  request_id: null,
  run_type: "workflow",
  trigger_type: "request",
  label: null,
  status: "failed",
  outcome: "failed",
  hold_reason: null,
  workflow_version: 1,
  attempt_count: 1,
  error_code: "BAD_RESPONSE",
  error_message: "simulated",
  error_step_id: "to_crm",
  steps_count: 1,
  succeeded_steps: 0,
  failed_steps: 1,
  skipped_steps: 0,
  pending_steps: 0,
  running_steps: 0,
  started_at: at,
  finished_at: at,
  duration_ms: 0,
  created_at: at,
  updated_at: at,
  rerun_of: null,
  on_failure: null,
  version: {
    number: 1,
    definition_hash: `sha256:${"6f".repeat(32)}`,
    created_at: at,
    created_by_user_id: null,
    current_version: 1,
    is_current: true,
    workflow_name: workflow.example.body.name,
    steps,
    edges,
    formatter_engine_version: null,
    resources: []
  },
  trigger: {
    type: "request",
    request_id: null,
    source: { id: ids.source, name: "shop", provider_key: null, definition_key: null, trigger_name: "Webhook" },
    delivery_mode: "manual",
    method: "POST",
    path: "/",
    content_type: "application/json",
    size_bytes: 29,
    received_at: at,
    is_retry: false,
    preview: null
  },
  retry: { count: 0, last_requested_at: null, last_step_id: null, retryable_step_ids: [] },
  steps: [step]
} as never

const errors = [
  "WORKFLOW_GRAPH_INVALID",
  "WORKFLOW_NOT_EXECUTABLE",
  "SAMPLE_UNAVAILABLE",
  "NOT_FOUND",
  "ROLE_REQUIRED"
] as const

const description =
  "The test uses the engine of real runs. Nothing is stored or listed. By default actions and destinations are not called: a mock or a sample replaces their output. With mode `live` they are called. Delays take no time. A test takes at most 60 seconds."

/** Tests of workflows: what a run would do. */
export class WorkflowTestsApi extends HttpApiGroup.make("workflowTests")
  .add(
    HttpApiEndpoint.post("test", "/workflows/:id/test", {
      params: Parameters.pathOf("workflow"),
      query: Parameters.onlyTeam,
      payload: WorkflowDryRunInput,
      success: WorkflowTest
    }).annotateMerge(
      operation({
        id: "testWorkflow",
        permission,
        summary: "Test a workflow with a request",
        description,
        body: workflowDryRunExample,
        answer,
        errors
      })
    ),
    HttpApiEndpoint.post("testUnsaved", "/workflows/test", {
      query: Parameters.onlyTeam,
      payload: UnsavedDryRunInput,
      success: WorkflowTest
    }).annotateMerge(
      operation({
        id: "testUnsavedWorkflow",
        permission,
        summary: "Test an unsaved graph with a request",
        description,
        body: unsavedDryRunExample as never,
        answer: Object.assign({}, answer, { workflow_id: null, workflow_version: 0 }),
        errors
      })
    )
  )
  .add(
    HttpApiEndpoint.post("validate", "/workflows/validate", {
      query: Parameters.onlyTeam,
      payload: validationBody.described,
      success: WorkflowValidation
    }).annotateMerge(
      operation({
        id: "validateWorkflow",
        permission,
        summary: "Check the definition of a workflow without saving it",
        description:
          "Returns all issues for which a save would be refused, and its warnings. The answer is 200 also when there are issues. Nothing is stored or run. The source and the triggers of the workflow are not checked.",
        body: { workflow_id: ids.workflow, steps, edges } as never,
        answer: {
          valid: false,
          issues: [
            {
              code: "RESOURCE_NOT_FOUND",
              step_id: "to_crm",
              edge_id: null,
              field: "resource_id",
              message: `${ids.destination} was not found`
            }
          ],
          warnings: []
        },
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Workflow tests",
      description: "Dry runs of workflows, and checks of definitions. Nothing is stored."
    })
  ) {}
