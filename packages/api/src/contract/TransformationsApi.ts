import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { EventList, ResourceList } from "@tidegate/model/Envelope"
import { Execution, ExecutionDetail } from "@tidegate/model/Execution"
import { Transformation } from "@tidegate/model/Transformation"
import { TransformationRun } from "@tidegate/model/TransformationRun"
import { Authorization } from "./Authorization.ts"
import { Deleted } from "./Deleted.ts"
import * as Parameters from "./Parameters.ts"
import { TransformationPatch, TransformationRunInput, TransformationWrite } from "./WriteBodies.ts"

const one = { params: Parameters.path, query: Parameters.onlyTeam, success: Transformation }
const patch = { ...one, payload: TransformationPatch }
const write = { query: Parameters.onlyTeam, payload: TransformationWrite, success: Transformation }
const run = { query: Parameters.onlyTeam, payload: TransformationRunInput, success: TransformationRun }
const about = (summary: string) => OpenApi.annotations({ summary })

/** Code that reshapes requests on their way. */
export class TransformationsApi extends HttpApiGroup.make("transformations")
  .add(
    HttpApiEndpoint.get("list", "/transformations", {
      query: Parameters.transformations,
      success: ResourceList(Transformation)
    }).annotateMerge(about("List transformations")),
    HttpApiEndpoint.post("create", "/transformations", write).annotateMerge(about("Create a transformation")),
    HttpApiEndpoint.put("upsert", "/transformations", write).annotateMerge(
      about("Create a transformation, or replace the one of its name")
    ),
    HttpApiEndpoint.post("run", "/transformations/run", run).annotateMerge(
      about("Run a transformation, or code, against a sample")
    ),
    HttpApiEndpoint.put("runByPut", "/transformations/run", run).annotateMerge(
      about("Run a transformation, or code, against a sample")
    ),
    HttpApiEndpoint.get("retrieve", "/transformations/:id", one).annotateMerge(about("Retrieve a transformation")),
    HttpApiEndpoint.patch("update", "/transformations/:id", patch).annotateMerge(
      about("Update a transformation in part")
    ),
    HttpApiEndpoint.put("updateByPut", "/transformations/:id", patch).annotateMerge(
      about("Update a transformation in part")
    ),
    HttpApiEndpoint.delete("delete", "/transformations/:id", { ...one, success: Deleted }).annotateMerge(
      about("Delete a transformation that no connection uses")
    ),
    HttpApiEndpoint.get("executions", "/transformations/:id/executions", {
      params: Parameters.path,
      query: Parameters.executions,
      success: EventList(Execution)
    }).annotateMerge(about("List what it ran for, newest first")),
    HttpApiEndpoint.get("execution", "/transformations/:id/executions/:executionId", {
      params: Parameters.executionPath,
      query: Parameters.execution,
      success: ExecutionDetail
    }).annotateMerge(about("Retrieve an execution with what the code was given and made of it"))
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Transformations", description: "Code that reshapes requests before delivery." })
  ) {}
