import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Issue } from "@tidegate/model/Issue"
import { editing, reading } from "@tidegate/model/Permission"
import { at, ids } from "@tidegate/resources/ExampleIds"
import { Authorization } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const issue = {
  id: ids.issue,
  team_id: ids.team,
  destination_id: ids.destination,
  destination_name: "Orders service",
  error_code: "BAD_RESPONSE",
  response_status: 503,
  status: "open",
  count: 12,
  event_ids: [ids.event],
  first_seen_at: at,
  opened_at: at,
  last_seen_at: at,
  changed_by: null,
  resolved_at: null
} as const

const one = { params: Parameters.pathOf("issue"), query: Parameters.onlyTeam, success: Issue }

/** Deliveries that fail, by destination and error code. */
export class IssuesApi extends HttpApiGroup.make("issues")
  .add(
    HttpApiEndpoint.get("list", "/issues", {
      query: Lists.issues.query,
      success: Lists.issues.answer(Issue)
    }).annotateMerge(
      operation({
        id: "listIssues",
        permission: reading,
        summary: "List issues",
        description: "Returns issues in pages by cursor, those that were seen last first. They are kept for 90 days.",
        answer: Lists.issues.example(issue),
        errors: ["INVALID_CURSOR"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/issues/:id", one).annotateMerge(
      operation({
        id: "getIssue",
        permission: reading,
        summary: "Retrieve an issue",
        description: "An issue is a destination's deliveries that fail with an error code.",
        answer: issue,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("acknowledge", "/issues/:id/acknowledge", one).annotateMerge(
      operation({
        id: "acknowledgeIssue",
        permission: editing,
        summary: "Acknowledge an issue",
        description: "Says that somebody deals with it. A resolved issue, or a repetition, changes nothing.",
        answer: { ...issue, status: "acknowledged", changed_by: ids.user },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("dismiss", "/issues/:id/dismiss", one).annotateMerge(
      operation({
        id: "dismissIssue",
        permission: editing,
        summary: "Dismiss an issue",
        description:
          "Says that nobody has to deal with it. It opens again when deliveries have succeeded and fail again. A resolved issue, or a repetition, changes nothing.",
        answer: { ...issue, status: "dismissed", changed_by: ids.user },
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Issues", description: "Deliveries that fail, by destination and error code." })
  ) {}
