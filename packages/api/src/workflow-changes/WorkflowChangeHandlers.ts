import { randomUUID } from "node:crypto"
import { Duration, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { stepPatchBody } from "@tidegate/resources/StepChange"
import { workflow, type WorkflowFields } from "@tidegate/resources/Workflow"
import {
  cloneBody,
  draftBody,
  draftCheckBody,
  maxChecked,
  publishBody,
  restoreBody
} from "@tidegate/resources/WorkflowDraftInput"
import * as VersionReads from "@tidegate/storage/reads/VersionReads"
import { deleteDraft, getDraft, putDraft } from "@tidegate/storage/workflows/Drafts"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import {
  asked,
  askOwner,
  type ById,
  carriedThrough,
  ownersOf,
  reader,
  type Stores,
  type WithBody
} from "../handlers/Calls.ts"
import { readJsonObject, readJsonObjectIfAny } from "../handlers/JsonBody.ts"
import { answeringInParts, listing } from "../handlers/Listing.ts"
import { pageOf } from "../handlers/ListInput.ts"

/** Longer than a check, which may take a minute. */
const deadline = Duration.seconds(75)

const { largestBody, maxValues } = workflow

/** A text that is no number of a version is not found, as an id that nobody has. */
const versionOf = (text: string): Effect.Effect<number, GatewayError> =>
  /^[1-9][0-9]{0,8}$/.test(text) ? Effect.succeed(Number(text)) : Effect.fail(notFound("workflow_version", text))

const numberOf = (version: string | undefined): number | null => (version === undefined ? null : Number(version))

export const layer = HttpApiBuilder.group(
  Api,
  "workflowChanges",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const stores = yield* Effect.context<Stores>()
    const workflows = yield* Workflows
    const { owner } = ownersOf(prefixes.workflow, "workflow", yield* WorkflowEntity.client)
    const team = Effect.map(CurrentTeam, ({ id }) => id)
    const commanded = Effect.map(asked, (by) => ({ ...by, command: randomUUID() }))

    return handlers
      .handle(
        "versions",
        listing(({ params, query }) =>
          Effect.gen(function* () {
            const team_id = yield* team
            const page = yield* pageOf(Lists.workflowVersions, query, { team: team_id, workflow: params.id })
            return yield* reading(VersionReads.list(team_id, params.id, page))
          })
        )
      )
      .handle(
        "version",
        answeringInParts(({ params }) =>
          Effect.gen(function* () {
            const version = yield* versionOf(params.version)
            return yield* reading(VersionReads.get(yield* team, params.id, version))
          })
        )
      )
      .handle(
        "compare",
        answeringInParts(({ params, query }) =>
          Effect.gen(function* () {
            const version = yield* versionOf(params.version)
            return yield* reading(VersionReads.comparison(yield* team, params.id, version, numberOf(query.with)))
          })
        )
      )
      .handleRaw("restore", ({ params, request }) =>
        Effect.gen(function* () {
          const given = yield* Effect.fromResult(restoreBody.judge(yield* readJsonObjectIfAny(request)))
          const team_id = yield* team
          const version = yield* versionOf(params.version)
          const old = yield* reading(VersionReads.definitionOf(team_id, params.id, version))
          const to = yield* owner(params.id)
          return yield* askOwner(to.Update({ ...(yield* commanded), input: { ...old, ...given } }))
        })
      )
      .handleRaw("patchStep", ({ params, request }) =>
        Effect.gen(function* () {
          const written = yield* readJsonObject(request, largestBody, maxValues)
          const patch = yield* Effect.fromResult(stepPatchBody.judge(written))
          const input = { patch, version: patch.version ?? null }
          const to = yield* owner(params.id)
          return yield* askOwner(to.ChangeStep({ ...(yield* commanded), step_id: params.stepId, input }))
        })
      )
      .handle("deleteStep", ({ params, query }) =>
        Effect.gen(function* () {
          const input = { patch: null, version: numberOf(query.version) }
          const to = yield* owner(params.id)
          return yield* askOwner(to.ChangeStep({ ...(yield* commanded), step_id: params.stepId, input }))
        })
      )
      .handleRaw("clone", ({ params, request }) =>
        Effect.gen(function* () {
          const given = yield* Effect.fromResult(cloneBody.judge(yield* readJsonObject(request)))
          const { by, team_id } = yield* asked
          const original = yield* reading(workflows.get(team_id, params.id))
          // As it is stored: what is shown may have masks.
          const definition = yield* reading(VersionReads.definitionOf(team_id, params.id, original.version))
          const { description, source_id, triggers } = original
          const fields = {
            description,
            source_id: given.source_id === undefined ? source_id : given.source_id,
            triggers: triggers ?? null,
            ...definition,
            name: given.name.trim(),
            status: "draft",
            version: 1
          } as unknown as WorkflowFields
          // A new id is known to no other caller, so its row has no other writer.
          const id = yield* idOfCall(prefixes.workflow)
          return yield* carriedThrough(workflows.create(team_id, id, fields, { by }))
        })
      )
      .handle(
        "draft",
        answeringInParts(({ params }) => Effect.flatMap(team, (team_id) => reading(getDraft(team_id, params.id))))
      )
      .handleRaw("putDraft", ({ params, request }: ById & WithBody) =>
        Effect.gen(function* () {
          const written = yield* readJsonObject(request, largestBody, maxValues)
          const input = yield* Effect.fromResult(draftBody.judge(written))
          const { by, team_id } = yield* asked
          return yield* carriedThrough(Effect.provideContext(putDraft(team_id, params.id, input, by), stores))
        })
      )
      .handle("deleteDraft", ({ params }) =>
        Effect.flatMap(team, (team_id) => reading(deleteDraft(team_id, params.id)))
      )
      .handleRaw("publishDraft", ({ params, request }) =>
        Effect.gen(function* () {
          const given = yield* Effect.fromResult(publishBody.judge(yield* readJsonObjectIfAny(request)))
          const to = yield* owner(params.id)
          return yield* askOwner(to.PublishDraft({ ...(yield* commanded), version: given.version ?? null }))
        })
      )
      .handleRaw("checkDraft", ({ params, request }) =>
        Effect.gen(function* () {
          const given = yield* Effect.fromResult(draftCheckBody.judge(yield* readJsonObjectIfAny(request)))
          const run_id = yield* idOfCall(prefixes.workflowRun)
          const to = yield* owner(params.id)
          const checking = to.CheckDraft({ team_id: yield* team, run_id, limit: given.limit ?? maxChecked })
          return yield* askOwner(checking, deadline)
        })
      )
  })
)
