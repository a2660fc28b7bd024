import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { administering, bySessions } from "@tidegate/model/Permission"
import {
  KeyDecisions,
  KeyScope,
  maxGrants,
  maxKeys,
  maxNameCharacters,
  maxPerMinute,
  NewProjectKey,
  ProjectKey,
  usualPerMinute
} from "@tidegate/model/ProjectKey"
import { nameUpTo, trimmedName } from "@tidegate/resources/Members"
import { bodyOf } from "@tidegate/resources/Resource"
import { Authorization } from "../contract/Authorization.ts"
import { keyDecisions, newProjectKey, projectKey } from "./ProjectKeysExamples.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const Name = trimmedName(maxNameCharacters, nameUpTo(maxNameCharacters), "For people; need not be unique")

const Scopes = Schema.Array(KeyScope)
  .check(Schema.isMinLength(1), Schema.isUnique())
  .annotate({ description: "Each once; none implies another" })

const Grants = Schema.Array(Schema.String.check(Characters.upTo(200)))
  .check(Schema.isMaxLength(maxGrants), Schema.isUnique())
  .annotate({
    description:
      "The routes that it may execute, like POST:/v1/events/:id/retry; needs control:execute. None: it executes nothing"
  })

const PerMinute = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxPerMinute })).annotate({
  description: `Calls a minute; ${usualPerMinute} unless told`
})

const policy = {
  execute_grants: Schema.optionalKey(Grants),
  rate_limit_per_minute: Schema.optionalKey(PerMinute)
}

export const created = bodyOf(
  Schema.Struct({ name: Name, scopes: Scopes, ...policy }).annotate({ identifier: "ProjectKeyWrite" })
)

export const changed = bodyOf(
  Schema.Struct({
    name: Schema.optionalKey(Name),
    status: Schema.optionalKey(
      Schema.Literals(["active", "disabled"]).annotate({ description: "Disabled, it is let in nowhere" })
    ),
    scopes: Schema.optionalKey(Scopes),
    ...policy
  }).annotate({ identifier: "ProjectKeyPatch" })
)

const of = <S extends Schema.Top>(data: S) => Schema.Struct({ data })

const permission = bySessions(administering)
const one = {
  params: Parameters.pathOf("key", projectKey.id),
  query: Parameters.onlyTeam,
  success: of(ProjectKey)
}

const change = {
  permission,
  summary: "Change a key",
  description:
    "What is left out stays. Taking control:execute from a key that has grants needs `execute_grants: []` beside it. It holds from the next call on, everywhere.",
  body: { status: "disabled" },
  answer: { data: { ...projectKey, status: "disabled" } },
  errors: ["INVALID_KEY_POLICY", "NOT_FOUND", "PROJECT_KEY_REVOKED", "LEGACY_POLICY_CUTOVER_INCOMPLETE"]
} as const

const revocation = {
  permission,
  summary: "Revoke a key",
  description: "For ever, from the next call on, everywhere. Repeating it changes nothing.",
  answer: { data: { ...projectKey, status: "revoked", revoked_at: projectKey.created_at } },
  errors: ["NOT_FOUND", "LEGACY_POLICY_CUTOVER_INCOMPLETE"]
} as const

/** The keys of a team. */
export class ProjectKeysApi extends HttpApiGroup.make("project-api-keys")
  .add(
    HttpApiEndpoint.get("list", "/project-api-keys", {
      query: Parameters.onlyTeam,
      success: of(Schema.Array(ProjectKey))
    }).annotateMerge(
      operation({
        id: "listProjectKeys",
        permission,
        summary: "List keys",
        description: "At most 100: those that are not revoked, newest first, then of the others the newest.",
        answer: { data: [projectKey] }
      })
    ),
    HttpApiEndpoint.post("create", "/project-api-keys", {
      query: Parameters.onlyTeam,
      payload: created.described,
      success: of(NewProjectKey).pipe(HttpApiSchema.status(201))
    }).annotateMerge(
      operation({
        id: "createProjectKey",
        permission,
        summary: "Create a key",
        description: `The key itself is in this answer and nowhere else: if it is lost, revoke it and make another. A team has at most ${maxKeys} that are not revoked.`,
        body: {
          name: "ci",
          scopes: ["control:read", "control:execute"],
          execute_grants: ["POST:/v1/events/:id/retry"],
          rate_limit_per_minute: 240
        },
        answer: { data: newProjectKey },
        errors: ["INVALID_KEY_POLICY", "PROJECT_KEY_LIMIT_REACHED"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/project-api-keys/:id", one).annotateMerge(
      operation({
        id: "getProjectKey",
        permission,
        summary: "Retrieve a key",
        description: "Never what it is recognised by.",
        answer: { data: projectKey },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.patch("update", "/project-api-keys/:id", { ...one, payload: changed.described }).annotateMerge(
      operation({ id: "updateProjectKey", ...change })
    ),
    HttpApiEndpoint.put("updateByPut", "/project-api-keys/:id", { ...one, payload: changed.described }).annotateMerge(
      operation({ id: "updateProjectKeyByPut", ...change })
    ),
    HttpApiEndpoint.delete("revoke", "/project-api-keys/:id", one).annotateMerge(
      operation({ id: "revokeProjectKey", ...revocation })
    ),
    HttpApiEndpoint.post("revokeByPost", "/project-api-keys/:id/revoke", one).annotateMerge(
      operation({ id: "revokeProjectKeyByPost", ...revocation })
    ),
    HttpApiEndpoint.get("audit", "/project-api-keys/:id/audit", {
      ...one,
      success: of(Schema.Array(KeyDecisions))
    }).annotateMerge(
      operation({
        id: "listKeyDecisions",
        permission,
        summary: "List what was decided about a key",
        description:
          "At most 100, the latest first, of the last 30 days. Decisions of one kind within five minutes are one; they are there a second later.",
        answer: { data: [keyDecisions] },
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Project keys",
      description: "Keys of a team that hold only what they were given, each revocable by itself."
    })
  ) {}
