import { HttpApiEndpoint } from "effect/http-api"
import { answeringPayloads, executing } from "@tidegate/model/Permission"
import { filter } from "@tidegate/resources/Filter"
import { explanationExample, FilterTest, filterTestBody, filterTestExample } from "@tidegate/resources/FilterTest"
import { groupOf } from "../contract/Group.ts"
import { operation } from "../contract/Operation.ts"
import * as Lists from "../contract/Lists.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Conditions with a name. */
export class FiltersApi extends groupOf(filter, { list: Lists.filters }, [
  HttpApiEndpoint.post("test", "/filters/test", {
    query: Parameters.onlyTeam,
    payload: filterTestBody.described,
    success: FilterTest
  }).annotateMerge(
    operation({
      id: "testFilter",
      permission: answeringPayloads(executing),
      summary: "Test conditions or a stored filter with a request",
      description:
        "Nothing is stored. The answer shows for each operator whether it matched. The body has at most 256 KiB.",
      body: filterTestExample,
      answer: explanationExample,
      errors: ["EMPTY_FILTER", "RULE_INVALID", "NOT_FOUND", "PAYLOAD_UNAVAILABLE"]
    })
  )
]) {}
