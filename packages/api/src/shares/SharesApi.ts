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
          "A link that anybody may open until it ends: after 7 days unless told, 30 at most. What is secret is taken out before it is stored; the link is told once. A body of bytes, and JSON beyond 128 KiB, is left out.",
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
          "Without their links and without what they show. Those that have ended are listed for 7 days more.",
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
        summary: "End all shares of a request",
        description:
          "Their links answer 410 from then on; `revoked` says how many had not been revoked before. Repeating it changes nothing. Also when retention has taken the request.",
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
        summary: "End a share",
        description: "Its link answers 410 from then on. Repeating it changes nothing.",
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
        description: "Without a credential: the link is one. An address may call 120 links a minute that do not open.",
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
      description: "Links by which anybody sees one request, without its secrets."
    })
  ) {}
