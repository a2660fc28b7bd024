import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Attempt } from "@tidegate/model/Attempt"
import { AttemptList } from "@tidegate/model/Envelope"
import { Authorization } from "./Authorization.ts"
import * as Parameters from "./Parameters.ts"

/** Each try to deliver an event, with its answer. */
export class AttemptsApi extends HttpApiGroup.make("attempts")
  .add(
    HttpApiEndpoint.get("list", "/attempts", {
      query: Parameters.attempts,
      success: AttemptList(Attempt)
    }).annotateMerge(OpenApi.annotations({ summary: "List attempts" })),
    HttpApiEndpoint.get("retrieve", "/attempts/:id", {
      params: Parameters.path,
      query: Parameters.attempt,
      success: Attempt
    }).annotateMerge(OpenApi.annotations({ summary: "Retrieve an attempt" }))
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Attempts", description: "Each try to deliver." })) {}
