import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Attempt } from "@tidegate/model/Attempt"
import { reading } from "@tidegate/model/Permission"
import { Authorization } from "../contract/Authorization.ts"
import { attempt } from "../contract/Examples.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Attempts to deliver events, with their answers. */
export class AttemptsApi extends HttpApiGroup.make("attempts")
  .add(
    HttpApiEndpoint.get("list", "/attempts", {
      query: Lists.attempts.query,
      success: Lists.attempts.answer(Attempt)
    }).annotateMerge(
      operation({
        id: "listAttempts",
        permission: reading,
        summary: "List attempts",
        description: "Newest first by default. Cursors lead in both directions.",
        answer: Lists.attempts.example(attempt),
        errors: ["INVALID_CURSOR", "INVALID_TIME_RANGE"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/attempts/:id", {
      params: Parameters.pathOf("attempt"),
      query: Parameters.attempt,
      success: Attempt
    }).annotateMerge(
      operation({
        id: "getAttempt",
        permission: reading,
        summary: "Retrieve an attempt",
        description: "Returns the request that was sent and the response.",
        answer: attempt,
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Attempts", description: "Each attempt to deliver an event, with its response." })
  ) {}
