import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { administering, bySessions } from "@tidegate/model/Permission"
import {
  KeyDecisions,
  KeyScope,
  maxExpiryDays,
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
  .annotate({ description: "Each scope once. No scope includes another" })

const Grants = Schema.Array(Schema.String.check(Characters.upTo(200)))
  .check(Schema.isMaxLength(maxGrants), Schema.isUnique())
  .annotate({
    description:
      "The routes that the key may execute, such as POST:/v1/events/:id/retry. With an id in the place of :id, a route is granted for that object alone. Requires control:execute. Without grants it can execute nothing"
  })

const PerMinute = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxPerMinute })).annotate({
  description: `Calls per minute. Default: ${usualPerMinute}`
})

const ExpiresAt = Schema.NullOr(
  Schema.String.check(Characters.upTo(40)).annotate({
    format: "date-time",
    description: `From then on the key is refused: ISO 8601, in the future, at most ${maxExpiryDays} days ahead. Null: it does not expire`
  })
)

const policy = {
  execute_grants: Schema.optionalKey(Grants),
  rate_limit_per_minute: Schema.optionalKey(PerMinute),
  expires_at: Schema.optionalKey(ExpiresAt)
}

export const created = bodyOf(
  Schema.Struct({ name: Name, scopes: Scopes, ...policy }).annotate({ identifier: "ProjectKeyWrite" })
)

export const changed = bodyOf(
  Schema.Struct({
    name: Schema.optionalKey(Name),
    status: Schema.optionalKey(
      Schema.Literals(["active", "disabled"]).annotate({ description: "A disabled key is refused everywhere" })
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
    "Members that are left out keep their values. To remove control:execute from a key with grants, send `execute_grants: []` too. The change applies from the next call on.",
  body: { status: "disabled" },
  answer: { data: { ...projectKey, status: "disabled" } },
  errors: ["INVALID_KEY_POLICY", "NOT_FOUND", "PROJECT_KEY_REVOKED", "LEGACY_POLICY_CUTOVER_INCOMPLETE"]
} as const

const revocation = {
  permission,
  summary: "Revoke a key",
  description: "The key is refused from the next call on, and cannot be used again. A repeated call changes nothing.",
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
        description:
          "Returns at most 100 keys: first those that are not revoked, then the revoked ones, the newest first.",
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
        description: `The key is shown in this answer only. If it is lost, revoke it and create another. A team can have at most ${maxKeys} keys that are not revoked.`,
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
        description: "Returns the key without its secret value.",
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
        summary: "List the decisions about a key",
        description:
          "Returns at most 100 decisions of the last 30 days, the latest first. Decisions of one kind within five minutes are counted as one. They are listed a second after they were made.",
        answer: { data: [keyDecisions] },
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Project keys",
      description: "Keys of a team with limited scopes. Each can be revoked separately."
    })
  ) {}
