import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { notFound } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { listed } from "@tidegate/model/Lists"
import { detailedTemplate, instantiated, shownTemplates, templateOf } from "@tidegate/resources/TemplateUse"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { asked, carriedThrough } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"

interface ByKey {
  readonly params: { readonly key: string }
}

const found = ({ params: { key } }: ByKey) => {
  const template = templateOf(key)
  return template === undefined ? Effect.fail(notFound("workflow_template", key)) : Effect.succeed(template)
}

export const layer = HttpApiBuilder.group(
  Api,
  "workflowTemplates",
  Effect.fnUntraced(function* (handlers) {
    const workflows = yield* Workflows
    return handlers
      .handle("list", () => Effect.sync(() => listed(shownTemplates(), null)))
      .handle("retrieve", (call: ByKey) => Effect.map(found(call), detailedTemplate))
      .handleRaw("instantiate", (call: ByKey & { readonly request: HttpServerRequest.HttpServerRequest }) =>
        Effect.gen(function* () {
          const { by, team_id } = yield* asked
          const template = yield* found(call)
          const fields = yield* Effect.fromResult(instantiated(template, yield* readJsonObject(call.request)))
          // A new id is known to no other caller, so its row has no other writer.
          const id = yield* idOfCall(prefixes.workflow)
          const made = yield* carriedThrough(workflows.create(team_id, id, fields, { by }))
          return { ...made, template: { key: template.key, version: template.version } }
        })
      )
  })
)
