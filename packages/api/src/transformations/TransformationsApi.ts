import { HttpApiEndpoint } from "effect/http-api"
import { Execution, ExecutionDetail } from "@tidegate/model/Execution"
import { executing, notByProjectKeys, reading } from "@tidegate/model/Permission"
import {
  TransformationCapabilities,
  TransformationRun,
  TransformationValidation
} from "@tidegate/model/TransformationRun"
import { transformation } from "@tidegate/resources/Transformation"
import { example, runBody, validationBody, validationExample } from "@tidegate/resources/TransformationRun"
import { capabilities, execution, executionDetail, run as ran, validation } from "../contract/Examples.ts"
import { groupOf } from "../contract/Group.ts"
import { operation } from "../contract/Operation.ts"
import * as Lists from "../contract/Lists.ts"
import * as Parameters from "../contract/Parameters.ts"

const run = { query: Parameters.onlyTeam, payload: runBody.described, success: TransformationRun }

const trial = {
  permission: executing,
  summary: "Run a transformation, or code, against a sample",
  description:
    "Nothing is stored. If the code fails, the answer is 200 with `error`. If it does not compile, the answer is 400.",
  body: example,
  answer: ran,
  errors: ["NOT_FOUND", "TRANSFORMATION_INVALID"]
} as const

/** Code that reshapes requests on their way. */
export class TransformationsApi extends groupOf(transformation, { list: Lists.transformations }, [
  HttpApiEndpoint.post("run", "/transformations/run", run).annotateMerge(
    operation({ id: "runTransformation", ...trial })
  ),
  HttpApiEndpoint.put("runByPut", "/transformations/run", run).annotateMerge(
    operation({ id: "runTransformationByPut", ...trial })
  ),
  HttpApiEndpoint.put("validate", "/transformations/validate", {
    query: Parameters.onlyTeam,
    payload: validationBody.described,
    success: TransformationValidation
  }).annotateMerge(
    operation({
      id: "validateTransformation",
      permission: executing,
      summary: "Validate the code of a transformation",
      description:
        "The code is compiled and loaded, but not run with a request. Faults are returned as 200, with `valid` false and `error`.",
      body: validationExample,
      answer: validation
    })
  ),
  HttpApiEndpoint.get("capabilities", "/transformations/capabilities", {
    query: Parameters.onlyTeam,
    success: TransformationCapabilities
  }).annotateMerge(
    operation({
      id: "getTransformationCapabilities",
      permission: reading,
      summary: "Retrieve the capabilities of the sandbox",
      description: "Returns the runtime, the globals beside the language, and the limits of a call.",
      answer: capabilities
    })
  ),
  HttpApiEndpoint.get("executions", "/transformations/:id/executions", {
    params: Parameters.pathOf("transformation"),
    query: Lists.executions.query,
    success: Lists.executions.answer(Execution)
  }).annotateMerge(
    operation({
      id: "listExecutions",
      permission: notByProjectKeys(reading),
      summary: "List the executions of a transformation, newest first",
      description: "Returns the last 24 hours by default, in pages by cursor.",
      answer: Lists.executions.example(execution),
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
      permission: notByProjectKeys(reading),
      summary: "Retrieve an execution",
      description:
        "Returns the input and the output of the code. They are null after retention has deleted them. The output is null if the code failed.",
      answer: executionDetail,
      errors: ["NOT_FOUND"]
    })
  )
]) {}
