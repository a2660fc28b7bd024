import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import type { ErrorCode } from "@tidegate/model/GatewayError"
import { editing } from "@tidegate/model/Permission"
import { NewPublicBin, PublicBin } from "@tidegate/model/PublicBin"
import { source } from "@tidegate/resources/Source"
import { ApiErrors } from "../contract/ApiError.ts"
import { Authorization } from "../contract/Authorization.ts"
import { claimedBin, ids, newBin, publicBin } from "../contract/Examples.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const token = {
  "x-bin-token": Schema.optionalKey(Schema.String.check(Characters.upTo(200))).annotate({
    description: "The bin's token",
    examples: [ids.binToken]
  })
}

const one = { params: Parameters.pathOf("bin", ids.source), headers: token }

const ofStrangers: ReadonlyArray<ErrorCode> = ["RATE_LIMITED", "INTERNAL_ERROR", "QUEUE_UNAVAILABLE"]

const ClaimedBin = Schema.Struct({
  claimed: Schema.Literal(true),
  id: Schema.String,
  team_id: Schema.String,
  source: source.record
}).annotate({ identifier: "ClaimedBin" })

/** Receivers for an hour that need no account. */
export class PublicBinsApi extends HttpApiGroup.make("public-bins")
  .add(
    HttpApiEndpoint.post("claim", "/public-bins/:id/claim", {
      ...one,
      query: Parameters.onlyTeam,
      success: ClaimedBin
    }).annotateMerge(
      operation({
        id: "claimPublicBin",
        permission: editing,
        summary: "Turn a bin into a source of the team",
        description:
          "The bin keeps its URL and its requests, and no longer expires. The bin's token is required in `x-bin-token`, and is not valid afterwards.",
        answer: claimedBin,
        errors: ["NOT_FOUND", "INVALID_BIN_TOKEN", "BIN_EXPIRED", "BIN_ALREADY_CLAIMED", "LIMIT_EXCEEDED"]
      })
    )
  )
  .middleware(Authorization)
  .add(
    HttpApiEndpoint.post("create", "/public-bins", {
      success: NewPublicBin.pipe(HttpApiSchema.status(201)),
      error: ApiErrors
    }).annotateMerge(
      operation({
        id: "createPublicBin",
        permission: "public",
        anyOrigin: true,
        summary: "Create a bin",
        description:
          "Needs no credential and no body. Returns a URL that receives requests for an hour, and the token to read them. At most 10 bins an hour from one address.",
        answer: newBin,
        errors: ["NOT_FOUND", ...ofStrangers]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/public-bins/:id", {
      ...one,
      query: Parameters.bin,
      success: PublicBin,
      error: ApiErrors
    }).annotateMerge(
      operation({
        id: "getPublicBin",
        permission: "public",
        anyOrigin: true,
        summary: "Retrieve a bin and its requests",
        description:
          "Returns the requests, the newest first. Send the bin's token in `x-bin-token`, or as `Authorization: Bearer <token>`. Bodies of more than 64 KiB are left out. After a bin is claimed, its requests are read like those of any source. At most 120 calls a minute from one address.",
        answer: publicBin,
        errors: ["VALIDATION_ERROR", "INVALID_CURSOR", "NOT_FOUND", "INVALID_BIN_TOKEN", "BIN_EXPIRED", ...ofStrangers]
      })
    )
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Public bins",
      description: "Temporary sources that last an hour and need no account. A team can claim one."
    })
  ) {}
