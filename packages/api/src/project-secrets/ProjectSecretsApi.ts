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
  Schema.isPattern(/^(?!ses_|pbn_|gwp_)/, { message: "must not begin as another kind of credential does" })
)

export const written = bodyOf(
  Schema.Struct({
    api_key: Schema.optionalKey(
      Value.annotate({ description: "At least 12 characters; the former one is dead at once" })
    ),
    signing_secret: Schema.optionalKey(
      Schema.String.check(Characters.between(12, 500)).annotate({
        description: "At least 12 characters; deliveries are signed by the former one too, for 24 hours"
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
        .annotate({ description: "Which to replace; by default both" })
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
        summary: "Retrieve what may be known of the secrets",
        description: "Never their values.",
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
        summary: "Replace the secrets by values of one's own",
        description: "What is left out stays.",
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
        summary: "Replace the secrets by random values",
        description:
          "They are shown in this answer and never again. Without a body, or without `rotate`, both are replaced. The former API key is dead at once; deliveries are signed by the former signing secret too, for 24 hours.",
        body: { rotate: ["signing_secret"] },
        answer: rotatedSecrets
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Project secrets",
      description: "The team's API key, and the secret that its deliveries are signed with."
    })
  ) {}
