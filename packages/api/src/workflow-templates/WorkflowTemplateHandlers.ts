import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { notFound } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { listed } from "@tidegate/model/Lists"
import {
  asTemplate,
  detailedTeamTemplate,
  isTeamTemplate,
  shownTeamTemplate,
  templateSaveBody
} from "@tidegate/resources/TeamTemplate"
import { detailedTemplate, instantiated, shownTemplates, templateOf } from "@tidegate/resources/TemplateUse"
import {
  deleteTeamTemplate,
  getTeamTemplate,
  listTeamTemplates,
  saveTeamTemplate
} from "@tidegate/storage/workflows/TeamTemplates"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { asked, carriedThrough, reader, type Stores, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { answeringInParts } from "../handlers/Listing.ts"

interface ByKey {
  readonly params: { readonly key: string }
}

const ofGateway = (key: string) => {
  const template = templateOf(key)
  return template === undefined ? Effect.fail(notFound("workflow_template", key)) : Effect.succeed(template)
}

export const layer = HttpApiBuilder.group(
  Api,
  "workflowTemplates",
  Effect.fnUntraced(function* (handlers) {
    const workflows = yield* Workflows
    const reading = yield* reader
    const stores = yield* Effect.context<Stores>()
    const team = Effect.map(CurrentTeam, ({ id }) => id)
    const ofTeam = (key: string) => Effect.flatMap(team, (team_id) => reading(getTeamTemplate(team_id, key)))

    /** The template, and what a workflow has of it beside its graph. */
    const usable = (key: string) =>
      isTeamTemplate(key)
        ? Effect.map(ofTeam(key), (own) => ({
            template: asTemplate(own),
            settings: { run_label: own.run_label, triggers: own.triggers }
          }))
        : Effect.map(ofGateway(key), (template) => ({ template, settings: {} }))

    return handlers
      .handle("list", () =>
        Effect.map(
          Effect.flatMap(team, (team_id) => reading(listTeamTemplates(team_id))),
          (own) => listed([...shownTemplates(), ...own.map(shownTeamTemplate)], null)
        )
      )
      .handleRaw("save", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const input = yield* Effect.fromResult(templateSaveBody.judge(yield* readJsonObject(request)))
          const { by, team_id } = yield* asked
          const id = yield* idOfCall(prefixes.workflowTemplate)
          const saving = Effect.provideContext(saveTeamTemplate(team_id, id, input, by), stores)
          return shownTeamTemplate(yield* carriedThrough(saving))
        })
      )
      .handle(
        "retrieve",
        answeringInParts(({ params: { key } }) =>
          isTeamTemplate(key)
            ? Effect.map(ofTeam(key), detailedTeamTemplate)
            : Effect.map(ofGateway(key), detailedTemplate)
        )
      )
      .handle("delete", ({ params: { key } }: ByKey) =>
        Effect.flatMap(team, (team_id) => reading(deleteTeamTemplate(team_id, key)))
      )
      .handleRaw("instantiate", (call: ByKey & { readonly request: HttpServerRequest.HttpServerRequest }) =>
        Effect.gen(function* () {
          const { by, team_id } = yield* asked
          const { settings, template } = yield* usable(call.params.key)
          const made = yield* Effect.fromResult(instantiated(template, yield* readJsonObject(call.request)))
          // A new id is known to no other caller, so its row has no other writer.
          const id = yield* idOfCall(prefixes.workflow)
          const saved = yield* carriedThrough(workflows.create(team_id, id, { ...made, ...settings }, { by }))
          return { ...saved, template: { key: template.key, version: template.version } }
        })
      )
  })
)
