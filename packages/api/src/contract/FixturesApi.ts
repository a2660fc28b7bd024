import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Fixture, FixtureReplayed, FixtureTarget } from "@tidegate/model/Fixture"
import { answeringPayloads, editing, executing, reading } from "@tidegate/model/Permission"
import { example, fixtureBody, fixturePatch, fixtureReplay } from "@tidegate/resources/FixtureInput"
import { Authorization } from "./Authorization.ts"
import { fixture, fixtureDetail, fixtureReplayed, fixtureTargets, ids } from "./Examples.ts"
import { Deleted } from "./Group.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

const one = { params: Parameters.pathOf("fixture"), query: Parameters.onlyTeam }

const listOf = <S extends Schema.Top>(model: S) => Schema.Struct({ count: Schema.Int, models: Schema.Array(model) })

const changed = {
  permission: answeringPayloads(editing),
  summary: "Rename or describe a fixture",
  description: "What is left out stays; the snapshot never changes.",
  body: example.patch,
  answer: fixtureDetail,
  errors: ["NOT_FOUND"]
} as const

/** Requests that are kept to be replayed. */
export class FixturesApi extends HttpApiGroup.make("request-fixtures")
  .add(
    HttpApiEndpoint.get("list", "/request-fixtures", {
      query: Parameters.fixtures,
      success: listOf(Fixture)
    }).annotateMerge(
      operation({
        id: "listFixtures",
        permission: reading,
        summary: "List fixtures, newest first",
        description: "One page, without a cursor: at most 255.",
        answer: { count: 1, models: [fixture] }
      })
    ),
    HttpApiEndpoint.post("create", "/request-fixtures", {
      query: Parameters.onlyTeam,
      payload: fixtureBody.described,
      success: Fixture.pipe(HttpApiSchema.status(201))
    }).annotateMerge(
      operation({
        id: "createFixture",
        permission: answeringPayloads(editing),
        summary: "Keep a request as a fixture",
        description: "A copy of what was received, which outlives the request.",
        body: example.body,
        answer: fixtureDetail,
        errors: ["NOT_FOUND", "PAYLOAD_UNAVAILABLE", "TEAM_LIMIT_REACHED"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/request-fixtures/:id", { ...one, success: Fixture }).annotateMerge(
      operation({
        id: "getFixture",
        permission: reading,
        summary: "Retrieve a fixture with its snapshot",
        description: "What was received, as it was.",
        answer: fixtureDetail,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.patch("update", "/request-fixtures/:id", {
      ...one,
      payload: fixturePatch.described,
      success: Fixture
    }).annotateMerge(operation({ id: "updateFixture", ...changed })),
    HttpApiEndpoint.put("updateByPut", "/request-fixtures/:id", {
      ...one,
      payload: fixturePatch.described,
      success: Fixture
    }).annotateMerge(operation({ id: "updateFixtureByPut", ...changed })),
    HttpApiEndpoint.delete("delete", "/request-fixtures/:id", { ...one, success: Deleted }).annotateMerge(
      operation({
        id: "deleteFixture",
        permission: editing,
        summary: "Delete a fixture",
        description: "The request that it is a copy of stays.",
        answer: { id: ids.fixture, deleted: true },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("targets", "/request-fixtures/:id/targets", {
      ...one,
      success: listOf(FixtureTarget)
    }).annotateMerge(
      operation({
        id: "listFixtureTargets",
        permission: reading,
        summary: "List the connections that a fixture can be replayed through",
        description: "The enabled ones of its source, with enabled destinations.",
        answer: fixtureTargets,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("replay", "/request-fixtures/:id/replay", {
      ...one,
      payload: fixtureReplay.described,
      success: FixtureReplayed.pipe(HttpApiSchema.status(202))
    }).annotateMerge(
      operation({
        id: "replayFixture",
        permission: executing,
        summary: "Replay a fixture through one connection",
        description: "As a new request, which only that connection sees. Its rules hold, but for deduplication.",
        body: example.replay,
        answer: fixtureReplayed,
        errors: ["NOT_FOUND", "FIXTURE_TARGET_INVALID", "CONNECTION_DISABLED", "SOURCE_DISABLED"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Fixtures", description: "Requests that are kept to be replayed." })) {}
