import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { EventList, ResourceList } from "@tidegate/model/Lists"
import { Execution, ExecutionDetail } from "@tidegate/model/Execution"
import { Transformation } from "@tidegate/model/Transformation"
import { TransformationRun } from "@tidegate/model/TransformationRun"
import { Authorization } from "./Authorization.ts"
import { Deleted } from "./Deleted.ts"
import {
  execution,
  executionDetail,
  ids,
  pageOf,
  resourceList,
  run as ran,
  runBody,
  transformation,
  transformationBody
} from "./Examples.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"
import { TransformationPatch, TransformationRunInput, TransformationWrite } from "./TransformationSchemas.ts"

const one = { params: Parameters.pathOf("transformation"), query: Parameters.onlyTeam, success: Transformation }
const patch = { ...one, payload: TransformationPatch }
const write = { query: Parameters.onlyTeam, payload: TransformationWrite, success: Transformation }
const run = { query: Parameters.onlyTeam, payload: TransformationRunInput, success: TransformationRun }

const trial = {
  summary: "Run a transformation, or code, against a sample",
  description: "Nothing is stored. Code that fails is answered 200 with `error`; code that does not compile 400.",
  body: runBody,
  answer: ran,
  errors: ["NOT_FOUND", "TRANSFORMATION_INVALID"]
} as const
const update = {
  summary: "Update a transformation in part",
  description: "What is given replaces what is there, `env` as a whole. Requests that wait for it get the new code.",
  body: { env: { TENANT: "acme-2" } },
  answer: { ...transformation, env: { TENANT: "acme-2" } },
  errors: ["NOT_FOUND", "RESOURCE_ALREADY_EXISTS", "TRANSFORMATION_INVALID"]
} as const

/** Code that reshapes requests on their way. */
export class TransformationsApi extends HttpApiGroup.make("transformations")
  .add(
    HttpApiEndpoint.get("list", "/transformations", {
      query: Parameters.transformations,
      success: ResourceList(Transformation)
    }).annotateMerge(
      operation({
        id: "listTransformations",
        summary: "List transformations",
        description: "One page, without a cursor: at most 255.",
        answer: resourceList(transformation)
      })
    ),
    HttpApiEndpoint.post("create", "/transformations", write).annotateMerge(
      operation({
        id: "createTransformation",
        summary: "Create a transformation",
        description: "Connections use it by a rule of type `transform`.",
        body: transformationBody,
        answer: transformation,
        errors: ["RESOURCE_ALREADY_EXISTS", "TRANSFORMATION_INVALID"]
      })
    ),
    HttpApiEndpoint.put("upsert", "/transformations", write).annotateMerge(
      operation({
        id: "upsertTransformation",
        summary: "Create a transformation, or update the one of its name",
        description: "Variables that are left out stay as they are; so do its id, and the rules that name it.",
        body: transformationBody,
        answer: transformation,
        errors: ["RESOURCE_ALREADY_EXISTS", "TRANSFORMATION_INVALID"]
      })
    ),
    HttpApiEndpoint.post("run", "/transformations/run", run).annotateMerge(
      operation({ id: "runTransformation", ...trial })
    ),
    HttpApiEndpoint.put("runByPut", "/transformations/run", run).annotateMerge(
      operation({ id: "runTransformationByPut", ...trial })
    ),
    HttpApiEndpoint.get("retrieve", "/transformations/:id", one).annotateMerge(
      operation({
        id: "getTransformation",
        summary: "Retrieve a transformation",
        description: "With its code, and what it did in the last 24 hours.",
        answer: transformation,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.patch("update", "/transformations/:id", patch).annotateMerge(
      operation({ id: "updateTransformation", ...update })
    ),
    HttpApiEndpoint.put("updateByPut", "/transformations/:id", patch).annotateMerge(
      operation({ id: "updateTransformationByPut", ...update })
    ),
    HttpApiEndpoint.delete("delete", "/transformations/:id", { ...one, success: Deleted }).annotateMerge(
      operation({
        id: "deleteTransformation",
        summary: "Delete a transformation that no connection uses",
        description: "Its name is free again; its executions are kept until retention takes them.",
        answer: { id: ids.transformation, deleted: true },
        errors: ["NOT_FOUND", "RESOURCE_IN_USE"]
      })
    ),
    HttpApiEndpoint.get("executions", "/transformations/:id/executions", {
      params: Parameters.pathOf("transformation"),
      query: Parameters.executions,
      success: EventList(Execution)
    }).annotateMerge(
      operation({
        id: "listExecutions",
        summary: "List what a transformation ran for, newest first",
        description: "Of the last 24 hours unless told; pages by cursor.",
        answer: pageOf(execution),
        errors: ["NOT_FOUND", "INVALID_CURSOR", "INVALID_TIME_RANGE"]
      })
    ),
    HttpApiEndpoint.get("execution", "/transformations/:id/executions/:executionId", {
      params: Parameters.executionPath,
      query: Parameters.execution,
      success: ExecutionDetail
    }).annotateMerge(
      operation({
        id: "getExecution",
        summary: "Retrieve an execution",
        description:
          "With what the code was given and what it made of it; null when retention took it, or the code failed.",
        answer: executionDetail,
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Transformations", description: "Code that reshapes requests before delivery." })
  ) {}
