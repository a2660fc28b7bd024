import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { administering } from "@tidegate/model/Permission"
import { ProjectSecrets, RotatedSecrets, SecretName } from "@tidegate/model/ProjectSecrets"
import { bodyOf } from "@tidegate/resources/Resource"
import { Authorization } from "../contract/Authorization.ts"
import { projectSecrets, rotatedSecrets } from "../contract/Examples.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const Value = Schema.String.check(
  Characters.between(12, 500),
  // It is sent in a header.
  Schema.isPattern(/^[\x21-\x7e]+$/, { message: "must be printable ASCII without spaces" }),
  Schema.isPattern(/^(?!ses_|pbn_|gwp_)/, { message: "must not begin with the prefix of another kind of credential" })
)

export const written = bodyOf(
  Schema.Struct({
    api_key: Schema.optionalKey(
      Value.annotate({ description: "At least 12 characters. The previous key stops working at once" })
    ),
    signing_secret: Schema.optionalKey(
      Schema.String.check(Characters.between(12, 500)).annotate({
        description: "At least 12 characters. For 24 hours, deliveries are also signed with the previous secret"
      })
    )
  })
    .check(Schema.isMinProperties(1, { message: "api_key or signing_secret is required" }))
    .annotate({ identifier: "ProjectSecretsWrite" })
)

export const rotated = bodyOf(
  Schema.Struct({
    rotate: Schema.optionalKey(
      Schema.Array(SecretName)
        .check(Schema.isMinLength(1), Schema.isMaxLength(2))
        .annotate({ description: "The secrets to replace. By default both" })
    )
  }).annotate({ identifier: "ProjectSecretsRotate" })
)

/** The API key and the signing secret of a team. */
export class ProjectSecretsApi extends HttpApiGroup.make("project-secrets")
  .add(
    HttpApiEndpoint.get("retrieve", "/project-secrets", {
      query: Parameters.onlyTeam,
      success: ProjectSecrets
    }).annotateMerge(
      operation({
        id: "getProjectSecrets",
        permission: administering,
        summary: "Retrieve the masked secrets",
        description: "Returns masked values only.",
        answer: projectSecrets
      })
    ),
    HttpApiEndpoint.put("replace", "/project-secrets", {
      query: Parameters.onlyTeam,
      payload: written.described,
      success: ProjectSecrets
    }).annotateMerge(
      operation({
        id: "replaceProjectSecrets",
        permission: administering,
        summary: "Replace the secrets with given values",
        description: "Members that are left out keep their values.",
        body: { signing_secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
        answer: projectSecrets
      })
    ),
    HttpApiEndpoint.post("rotate", "/project-secrets/rotate", {
      query: Parameters.onlyTeam,
      payload: rotated.described,
      success: RotatedSecrets
    }).annotateMerge(
      operation({
        id: "rotateProjectSecrets",
        bodyOptional: true,
        permission: administering,
        summary: "Replace the secrets with random values",
        description:
          "The new values are shown in this answer only. Without a body, or without `rotate`, both secrets are replaced. The previous API key stops working at once. For 24 hours, deliveries are also signed with the previous signing secret.",
        body: { rotate: ["signing_secret"] },
        answer: rotatedSecrets
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Project secrets",
      description: "The team's API key, and the secret that signs its deliveries."
    })
  ) {}
