import { workflow } from "@tidegate/resources/Workflow"
import { at, ids } from "@tidegate/resources/ExampleIds"

const finished = "2026-01-01T00:00:00.900Z"
const { edges, name, steps } = workflow.example.record as {
  readonly name: string
  readonly steps: ReadonlyArray<never>
  readonly edges: ReadonlyArray<never>
}

export const run = {
  id: ids.workflowRun,
  workflow_id: ids.workflow,
  request_id: ids.request,
  run_type: "workflow",
  label: "order 7",
  trigger_type: "request",
  status: "failed",
  outcome: "failed",
  workflow_version: 1,
  attempt_count: 1,
  error_code: "BAD_RESPONSE",
  error_message: "HTTP 500",
  error_step_id: "to_crm",
  hold_reason: null,
  steps_count: 2,
  succeeded_steps: 1,
  failed_steps: 1,
  skipped_steps: 0,
  pending_steps: 0,
  running_steps: 0,
  started_at: at,
  finished_at: finished,
  duration_ms: 900,
  created_at: at,
  updated_at: finished,
  rerun_of: null,
  on_failure: null
} as const

const toCrm = {
  id: ids.stepExecution,
  step_id: "to_crm",
  name: "CRM",
  kind: "destination",
  status: "failed",
  execution_index: 1,
  input: { source_type: "step", source_step_id: "only_paid", source_port: "matched" },
  compensates: null,
  output_port: null,
  response_status: 500,
  error_code: "BAD_RESPONSE",
  error_message: "HTTP 500",
  started_at: at,
  finished_at: finished
} as const

const source = { id: ids.source, name: "shop", provider_key: null, trigger_name: "Webhook" } as const

export const runDetail = {
  ...run,
  version: {
    number: 1,
    definition_hash: "sha256:6f0c",
    created_at: at,
    created_by_user_id: null,
    current_version: 1,
    is_current: true,
    workflow_name: name,
    steps,
    edges,
    formatter_engine_version: null,
    resources: [
      {
        step_id: "to_crm",
        type: "destination",
        id: ids.destination,
        name: "CRM",
        content_hash: "sha256:a1",
        updated_at: at,
        exists: true
      }
    ]
  },
  trigger: {
    type: "request",
    request_id: ids.request,
    source: { ...source, definition_key: null },
    delivery_mode: "webhook",
    method: "POST",
    path: "/orders",
    content_type: "application/json",
    size_bytes: 31,
    received_at: at,
    is_retry: false,
    preview: null
  },
  retry: { count: 0, last_requested_at: null, last_step_id: null, retryable_step_ids: ["to_crm"] },
  steps: [
    {
      ...toCrm,
      output_ports: [],
      skip_reason: null,
      handled: false,
      attempt_count: 1,
      max_attempts: 1,
      attempts: [
        {
          number: 1,
          status: "failed",
          response_status: 500,
          error_code: "BAD_RESPONSE",
          error_message: "HTTP 500",
          response: null,
          started_at: at,
          finished_at: finished,
          duration_ms: 900
        }
      ],
      wait: null,
      warnings: [],
      iterations: null,
      resource: { type: "destination", id: ids.destination },
      queued_at: at,
      duration_ms: 900,
      error: { code: "BAD_RESPONSE", message: "HTTP 500", status: 500, response: null },
      input_preview: null,
      output_preview: null
    }
  ]
} as const

export const retried = {
  id: ids.workflowRun,
  workflow_id: ids.workflow,
  workflow_version: 1,
  status: "queued",
  retry_outbox_id: ids.stepRetry,
  retry_step: { step_id: "to_crm", name: "CRM" }
} as const

export const cleared = { workflow_id: ids.workflow, deleted: 12, retained_active: 1, has_more: false } as const

export const activity = {
  id: run.id,
  request_id: run.request_id,
  workflow_id: run.workflow_id,
  workflow_name: name,
  workflow_version: 1,
  label: run.label,
  source,
  status: run.status,
  outcome: run.outcome,
  attempt_count: 1,
  steps_count: 2,
  succeeded_steps: 1,
  failed_steps: 1,
  skipped_steps: 0,
  error_code: run.error_code,
  error_message: run.error_message,
  error_step_id: run.error_step_id,
  steps: [toCrm],
  started_at: at,
  finished_at: finished,
  created_at: at,
  updated_at: finished
} as const
