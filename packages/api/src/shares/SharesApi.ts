import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { answeringPayloads, editing, reading } from "@tidegate/model/Permission"
import { ListedShare, PublicShare, Share } from "@tidegate/model/Share"
import { example, shareBody } from "@tidegate/resources/ShareInput"
import { ApiErrors } from "../contract/ApiError.ts"
import { Authorization } from "../contract/Authorization.ts"
import { ids, listedShare, publicShare, share } from "../contract/Examples.ts"
import { Deleted } from "../contract/Group.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Links that show one request to anyone, without its secrets. */
export class SharesApi extends HttpApiGroup.make("shares")
  .add(
    HttpApiEndpoint.post("create", "/requests/:id/share", {
      params: Parameters.pathOf("request"),
      query: Parameters.onlyTeam,
      payload: shareBody.described,
      success: Share.pipe(HttpApiSchema.status(201))
    }).annotateMerge(
      operation({
        id: "shareRequest",
        bodyOptional: true,
        permission: answeringPayloads(editing),
        summary: "Share a request",
        description:
          "Creates a link that anybody can open until it expires: after 7 days by default, and 30 days at most. Secrets are removed before the request is stored. The link is shown only once. A binary body, and JSON of more than 128 KiB, is left out.",
        body: example,
        answer: share,
        errors: ["NOT_FOUND", "PAYLOAD_UNAVAILABLE", "TEAM_LIMIT_REACHED"]
      })
    ),
    HttpApiEndpoint.get("list", "/shares", {
      query: Lists.shares.query,
      success: Lists.shares.answer(ListedShare)
    }).annotateMerge(
      operation({
        id: "listShares",
        permission: reading,
        summary: "List the shares of the team, newest first",
        description:
          "Returns shares without their links and their content. Shares that have ended are listed for 7 more days.",
        answer: Lists.shares.example(listedShare),
        errors: ["INVALID_CURSOR"]
      })
    ),
    HttpApiEndpoint.delete("revokeAll", "/requests/:id/share", {
      params: Parameters.pathOf("request"),
      query: Parameters.onlyTeam,
      success: Schema.Struct({ request_id: Schema.String, revoked: Schema.Int })
    }).annotateMerge(
      operation({
        id: "revokeShares",
        permission: editing,
        summary: "Revoke all shares of a request",
        description:
          "The links return 410 from then on. `revoked` counts the shares that had not been revoked before. Repeating it changes nothing. It works after retention has deleted the request, too.",
        answer: { request_id: ids.request, revoked: 2 },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.delete("revoke", "/requests/:id/share/:share", {
      params: {
        ...Parameters.pathOf("request"),
        share: Parameters.Id.annotate({ description: "The share's id", examples: [ids.share] })
      },
      query: Parameters.onlyTeam,
      success: Deleted
    }).annotateMerge(
      operation({
        id: "revokeShare",
        permission: editing,
        summary: "Revoke a share",
        description: "The link returns 410 from then on. Repeating it changes nothing.",
        answer: { id: ids.share, deleted: true },
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .add(
    HttpApiEndpoint.get("open", "/shares/request/:token", {
      params: {
        token: Schema.String.check(Characters.upTo(100)).annotate({
          description: "The link's token",
          examples: [ids.shareToken]
        })
      },
      success: PublicShare,
      error: ApiErrors
    }).annotateMerge(
      operation({
        id: "openShare",
        permission: "public",
        anyOrigin: true,
        summary: "Open a share",
        description:
          "Needs no credential, because the link is one. An address can make at most 120 failing calls a minute.",
        answer: publicShare,
        errors: [
          "VALIDATION_ERROR",
          "SHARE_NOT_FOUND",
          "SHARE_EXPIRED",
          "SHARE_REVOKED",
          "RATE_LIMITED",
          "INTERNAL_ERROR",
          "QUEUE_UNAVAILABLE"
        ]
      })
    )
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Shares",
      description: "Links that show one request to anybody, without its secrets."
    })
  ) {}
