import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { administering, executing, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { WorkflowDraft, WorkflowDraftCheck } from "@tidegate/model/WorkflowDraft"
import { WorkflowComparison, WorkflowVersion, WorkflowVersionDetail } from "@tidegate/model/WorkflowVersion"
import { at, ids } from "@tidegate/resources/ExampleIds"
import { stepPatchBody, stepPatchExample } from "@tidegate/resources/StepChange"
import { workflow } from "@tidegate/resources/Workflow"
import {
  cloneBody,
  draftBody,
  draftCheckBody,
  draftExample,
  publishBody,
  restoreBody
} from "@tidegate/resources/WorkflowDraftInput"
import { Authorization } from "../contract/Authorization.ts"
import { Deleted } from "../contract/Group.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Changes of workflows beyond those that every resource has: versions, single steps, drafts. */

const read = notByProjectKeys(reading)

const workflowPath = Parameters.pathOf("workflow")

const Version = Schema.String.check(
  Schema.isPattern(/^[1-9][0-9]{0,8}$/, { message: "must be the number of a version" })
)

const versionPath = {
  ...workflowPath,
  version: Parameters.Id.annotate({ description: "The number of the version", examples: ["1"] })
}

const stepPath = {
  ...workflowPath,
  stepId: Parameters.Id.annotate({ description: "The id of the step", examples: ["to_crm"] })
}

const { record } = workflow.example
const changed = [
  "NOT_FOUND",
  "RESOURCE_ALREADY_EXISTS",
  "WORKFLOW_GRAPH_INVALID",
  "WORKFLOW_NOT_EXECUTABLE",
  "workflow_conflict",
  "LIMIT_EXCEEDED"
] as const

const version = {
  workflow_id: ids.workflow,
  version: 1,
  is_current: true,
  name: record["name"],
  status: "active",
  description: null,
  source_id: ids.source,
  run_label: null,
  triggers: null,
  definition_hash: `sha256:${"6f".repeat(32)}`,
  created_by_user_id: null,
  created_at: at
} as const

const graph = { steps: workflow.example.body.steps, edges: workflow.example.body.edges }
const none = { added: [], removed: [], changed: [] }
const noChanges = { steps: none, edges: none, settings: [] }

const draft = {
  workflow_id: ids.workflow,
  based_on_version: 1,
  current_version: 1,
  ...graph,
  run_label: null,
  changes: noChanges,
  updated_by_user_id: null,
  created_at: at,
  updated_at: at
} as never

const outcome = { status: "succeeded", outcome: "completed", error_code: null, error_step_id: null } as const

export class WorkflowChangesApi extends HttpApiGroup.make("workflowChanges")
  .add(
    HttpApiEndpoint.get("versions", "/workflows/:id/versions", {
      params: workflowPath,
      query: Lists.workflowVersions.query,
      success: Lists.workflowVersions.answer(WorkflowVersion).annotate({ identifier: "WorkflowVersionList" })
    }).annotateMerge(
      operation({
        id: "listWorkflowVersions",
        permission: read,
        summary: "List the versions of a workflow, newest first",
        description:
          "Returns the last 50 versions and older ones that runs use, without steps and edges, in pages by cursor.",
        answer: Lists.workflowVersions.example(version),
        errors: ["NOT_FOUND", "INVALID_CURSOR"]
      })
    ),
    HttpApiEndpoint.get("version", "/workflows/:id/versions/:version", {
      params: versionPath,
      query: Parameters.onlyTeam,
      success: WorkflowVersionDetail
    }).annotateMerge(
      operation({
        id: "getWorkflowVersion",
        permission: read,
        summary: "Retrieve a version of a workflow",
        description: "Returns the version with its steps and edges.",
        answer: { ...version, ...graph } as never,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("compare", "/workflows/:id/versions/:version/compare", {
      params: versionPath,
      query: {
        ...Parameters.onlyTeam,
        with: Schema.optionalKey(
          Version.annotate({ description: "The number of the other version (default: the current one)" })
        )
      },
      success: WorkflowComparison
    }).annotateMerge(
      operation({
        id: "compareWorkflowVersions",
        permission: read,
        summary: "Compare two versions of a workflow",
        description:
          "Returns which steps and edges were added, removed or changed from this version to the other one, by id, and which settings differ.",
        answer: { workflow_id: ids.workflow, from_version: 1, to_version: 1, ...noChanges },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("restore", "/workflows/:id/versions/:version/restore", {
      params: versionPath,
      query: Parameters.onlyTeam,
      payload: restoreBody.described,
      success: workflow.record
    }).annotateMerge(
      operation({
        id: "restoreWorkflowVersion",
        permission: administering,
        summary: "Roll a workflow back to a version",
        description:
          "Makes a new version with the steps, edges and run label of this one. Name, status, source and triggers stay.",
        body: { version: 1 },
        bodyOptional: true,
        answer: record,
        errors: changed
      })
    ),
    HttpApiEndpoint.patch("patchStep", "/workflows/:id/steps/:stepId", {
      params: stepPath,
      query: Parameters.onlyTeam,
      payload: stepPatchBody.described,
      success: workflow.record
    }).annotateMerge(
      operation({
        id: "updateWorkflowStep",
        permission: administering,
        summary: "Update one step of a workflow",
        description: "Members in the body replace those of the step, each as a whole. Makes a new version.",
        body: stepPatchExample,
        answer: record,
        errors: changed
      })
    ),
    HttpApiEndpoint.delete("deleteStep", "/workflows/:id/steps/:stepId", {
      params: stepPath,
      query: {
        ...Parameters.onlyTeam,
        version: Schema.optionalKey(
          Version.annotate({
            description: "The version that the change is based on: refused when there is a later one"
          })
        )
      },
      success: workflow.record
    }).annotateMerge(
      operation({
        id: "deleteWorkflowStep",
        permission: administering,
        summary: "Remove one step of a workflow",
        description: "Its edges are removed with it; a chain closes again. What is left must be a valid graph.",
        answer: record,
        errors: changed
      })
    ),
    HttpApiEndpoint.post("clone", "/workflows/:id/clone", {
      params: workflowPath,
      query: Parameters.onlyTeam,
      payload: cloneBody.described,
      success: workflow.record
    }).annotateMerge(
      operation({
        id: "cloneWorkflow",
        permission: administering,
        summary: "Copy a workflow",
        description:
          "Creates a workflow with the definition, description, run label and triggers of this one. Its status is `draft`, so it begins no runs until you change that.",
        body: { name: "Copy of paid orders" },
        answer: Object.assign({}, record, { name: "Copy of paid orders", status: "draft" }),
        errors: ["NOT_FOUND", "RESOURCE_ALREADY_EXISTS", "LIMIT_EXCEEDED", "WORKFLOW_GRAPH_INVALID"]
      })
    ),
    HttpApiEndpoint.get("draft", "/workflows/:id/draft", {
      params: workflowPath,
      query: Parameters.onlyTeam,
      success: WorkflowDraft
    }).annotateMerge(
      operation({
        id: "getWorkflowDraft",
        permission: read,
        summary: "Retrieve the draft of a workflow",
        description: "Returns the draft, and what it changes compared with the live version.",
        answer: draft,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.put("putDraft", "/workflows/:id/draft", {
      params: workflowPath,
      query: Parameters.onlyTeam,
      payload: draftBody.described,
      success: WorkflowDraft
    }).annotateMerge(
      operation({
        id: "putWorkflowDraft",
        permission: administering,
        summary: "Write the draft of a workflow",
        description:
          "No run uses it until it is published. It is checked like a workflow. Without edges it is a chain. A workflow has at most one draft.",
        body: draftExample as never,
        answer: draft,
        errors: ["NOT_FOUND", "WORKFLOW_GRAPH_INVALID", "workflow_conflict"]
      })
    ),
    HttpApiEndpoint.delete("deleteDraft", "/workflows/:id/draft", {
      params: workflowPath,
      query: Parameters.onlyTeam,
      success: Deleted
    }).annotateMerge(
      operation({
        id: "deleteWorkflowDraft",
        permission: administering,
        summary: "Delete the draft of a workflow",
        description: "The workflow stays as it is.",
        answer: { id: ids.workflow, deleted: true },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("publishDraft", "/workflows/:id/draft/publish", {
      params: workflowPath,
      query: Parameters.onlyTeam,
      payload: publishBody.described,
      success: workflow.record
    }).annotateMerge(
      operation({
        id: "publishWorkflowDraft",
        permission: administering,
        summary: "Publish the draft of a workflow",
        description:
          "The draft becomes the next version and is removed. It is refused when the workflow has changed since the draft was made.",
        body: { version: 1 },
        bodyOptional: true,
        answer: record,
        errors: changed
      })
    ),
    HttpApiEndpoint.post("checkDraft", "/workflows/:id/draft/check", {
      params: workflowPath,
      query: Parameters.onlyTeam,
      payload: draftCheckBody.described,
      success: WorkflowDraftCheck
    }).annotateMerge(
      operation({
        id: "checkWorkflowDraft",
        permission: notByProjectKeys(executing),
        summary: "Try stored requests with the draft and the live version",
        description:
          "Runs the last requests of the source by both as dry runs, without calls, and tells which of them end differently. It takes at most 60 seconds.",
        body: { limit: 10 },
        bodyOptional: true,
        answer: {
          workflow_id: ids.workflow,
          version: 1,
          checked: 1,
          same: 1,
          different: 0,
          skipped: 0,
          complete: true,
          requests: [
            { request_id: ids.request, received_at: at, same: true, live: outcome, draft: outcome, different_steps: [] }
          ]
        },
        errors: ["NOT_FOUND", "WORKFLOW_GRAPH_INVALID", "WORKFLOW_NOT_EXECUTABLE", "SAMPLE_UNAVAILABLE"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Workflow versions",
      description: "Versions, single steps and drafts of workflows."
    })
  ) {}
