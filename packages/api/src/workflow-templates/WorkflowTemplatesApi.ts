import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { administering, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { InstantiatedWorkflow, WorkflowTemplate, WorkflowTemplateDetail } from "@tidegate/model/WorkflowTemplate"
import { teamTemplateExample, templateSaveBody, templateSaveExample } from "@tidegate/resources/TeamTemplate"
import {
  templateDetailExample,
  templateExample,
  TemplateUse,
  templateUseExample
} from "@tidegate/resources/TemplateUse"
import { workflow } from "@tidegate/resources/Workflow"
import { Authorization } from "../contract/Authorization.ts"
import { Deleted } from "../contract/Group.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const read = notByProjectKeys(reading)

const params = {
  key: Schema.String.check(Characters.upTo(96)).annotate({
    description: "The template's key",
    examples: [templateExample.key]
  })
}

const ownParams = {
  key: params.key.annotate({
    description: "The key of a template that the team has saved",
    examples: [teamTemplateExample.key]
  })
}

const { key, version } = templateExample

/** Templates for new workflows. */
export class WorkflowTemplatesApi extends HttpApiGroup.make("workflowTemplates")
  .add(
    HttpApiEndpoint.get("list", "/workflow-templates", {
      query: Parameters.onlyTeam,
      success: Lists.wholeList.answer(WorkflowTemplate).annotate({ identifier: "WorkflowTemplateList" })
    }).annotateMerge(
      operation({
        id: "listWorkflowTemplates",
        permission: read,
        summary: "List the templates of workflows",
        description:
          "First the templates of the gateway, which need no other service, then those that the team has saved. `origin` tells them apart.",
        answer: Lists.wholeList.example(templateExample)
      })
    ),
    HttpApiEndpoint.post("save", "/workflow-templates", {
      query: Parameters.onlyTeam,
      payload: templateSaveBody.described,
      success: WorkflowTemplate
    }).annotateMerge(
      operation({
        id: "saveWorkflowTemplate",
        permission: administering,
        summary: "Save a workflow as a template of the team",
        description:
          "The template is a copy of the current version, or of the draft: later changes of the workflow do not change it. Its steps name the same resources. A team can have 100 templates of 16 MiB together.",
        body: templateSaveExample,
        answer: teamTemplateExample,
        errors: ["NOT_FOUND", "RESOURCE_ALREADY_EXISTS", "LIMIT_EXCEEDED"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/workflow-templates/:key", {
      params,
      query: Parameters.onlyTeam,
      success: WorkflowTemplateDetail
    }).annotateMerge(
      operation({
        id: "getWorkflowTemplate",
        permission: read,
        summary: "Retrieve a template of workflows",
        description: "Returns the template's description, its bindings, and the steps and edges that it creates.",
        answer: templateDetailExample,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.delete("delete", "/workflow-templates/:key", {
      params: ownParams,
      query: Parameters.onlyTeam,
      success: Deleted
    }).annotateMerge(
      operation({
        id: "deleteWorkflowTemplate",
        permission: administering,
        summary: "Delete a template of the team",
        description:
          "Workflows that were made of it stay. The templates of the gateway cannot be deleted: they are not found here.",
        answer: { id: teamTemplateExample.key, deleted: true },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("instantiate", "/workflow-templates/:key/instantiate", {
      params,
      query: Parameters.onlyTeam,
      payload: TemplateUse,
      success: InstantiatedWorkflow
    }).annotateMerge(
      operation({
        id: "instantiateWorkflowTemplate",
        permission: administering,
        summary: "Create a workflow from a template",
        description:
          "The workflow is a draft: it has no runs until its status is `active`. Later changes of the template do not change it.",
        body: templateUseExample,
        answer: Object.assign({}, workflow.example.record, { status: "draft", template: { key, version } }),
        errors: [
          "NOT_FOUND",
          "RESOURCE_ALREADY_EXISTS",
          "LIMIT_EXCEEDED",
          "TEMPLATE_BINDING_INVALID",
          "WORKFLOW_GRAPH_INVALID"
        ]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Workflow templates", description: "Workflows to start from." })) {}
