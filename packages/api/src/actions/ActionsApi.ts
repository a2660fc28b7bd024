import { HttpApiEndpoint } from "effect/http-api"
import { ActionChoices, ActionOptionsInput, ActionProviders } from "@tidegate/model/ActionCatalog"
import { notByProjectKeys, reading } from "@tidegate/model/Permission"
import { action } from "@tidegate/resources/Action"
import { groupOf } from "../contract/Group.ts"
import { operation } from "../contract/Operation.ts"
import * as Lists from "../contract/Lists.ts"
import * as Parameters from "../contract/Parameters.ts"

const provider = {
  key: "storage",
  name: "Storage",
  description: "Keeps values for the team, by key.",
  icon_key: "database",
  manifest_version: "1.0.0",
  config_version: 1,
  capabilities: ["actions"],
  auth: { type: "none", provider_key: "storage", connection_type: "none", credential_fields: [], modes: ["none"] },
  actions: [
    {
      key: "get",
      provider_key: "storage",
      name: "Get a value",
      description: "Gives the value of a key.",
      category: "core",
      required_permissions: [],
      required_oauth_scopes: [],
      version: "1.0.0",
      transport: "api",
      auth_modes: ["none"],
      default_auth_mode: "none",
      input_schema: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
      output_schema: { type: "object" },
      primary_output: "value",
      input_sample: { key: "last_order" },
      output_sample: { found: true, value: "o_1" },
      rate_limit: null
    }
  ]
}

/** Saved actions, what there is to be saved, and what its inputs may be. */
export class ActionsApi extends groupOf(action, { list: Lists.actions }, [
  HttpApiEndpoint.get("providers", "/action-providers", {
    query: Parameters.onlyTeam,
    success: ActionProviders
  }).annotateMerge(
    operation({
      id: "getActionProviders",
      permission: notByProjectKeys(reading),
      summary: "List the providers of actions",
      description:
        "Returns the credentials, inputs and outputs of each action. If `If-None-Match` has the current `ETag`, the answer is 304.",
      answer: Lists.wholeList.example(provider)
    })
  ),
  HttpApiEndpoint.post("options", "/action-options", {
    query: Parameters.onlyTeam,
    payload: ActionOptionsInput,
    success: ActionChoices
  }).annotateMerge(
    operation({
      id: "listActionOptions",
      permission: notByProjectKeys(reading),
      summary: "List the choices for an input",
      description: "Returns one page, ordered by name. Nothing is stored, and no credential is returned.",
      body: { provider_key: "gateway", resource: "sources", query: "shop" },
      answer: {
        models: [{ id: "src_01kak1v8m0c3x9f2e7d5b4a6gh", name: "shop", description: "WEBHOOK" }],
        next_cursor: null
      },
      errors: [
        "ACTION_OPTIONS_INVALID",
        "PROVIDER_ACCOUNT_NOT_CONNECTED",
        "PROVIDER_FAILED",
        "INVALID_CURSOR",
        "NOT_FOUND"
      ]
    })
  )
]) {}
