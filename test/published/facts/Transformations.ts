import { of, row, type Section, tests } from "./Facts.ts"

const api = tests("packages/api/test/Transformations.test.ts")
const stored = tests("packages/storage/test/Transformations.test.ts")
const actor = tests("packages/entities/test/Transformation.test.ts")
const executions = tests("packages/storage/test/reads/Executions.test.ts")
const input = tests("packages/resources/test/Transformation.test.ts")
const life = tests("test/contract/TransformationLife.test.ts")
const running = tests("test/contract/Transformations.test.ts")

const execution = [
  of(
    "error_code error_message",
    running("Failed code ends in ${error_code}, an ignored event and no delivery: ${name}")
  ),
  of("logs logs_truncated", executions("Lists show the first lines of a long log, and the detail shows all")),
  of("code_hash", life("Changed code applies from the first request after the answer, and executions show their code"))
]

export const transformations: Section = {
  title: "Transformations",
  endpoints: [
    row(
      "GET /transformations",
      api("Transformations are listed by id, name, order and limit, and counted on request only")
    ),
    row(
      "POST,PUT /transformations; GET,PUT,PATCH,DELETE /transformations/{id}",
      api("Transformation can be created, read, changed and deleted under ${prefix}/transformations")
    ),
    row("POST,PUT /transformations/run", api("Call ${method} /transformations/run runs code on a sample")),
    row("PUT /transformations/validate", api("Validation of code reports its faults without an input")),
    row("GET /transformations/capabilities", api("Capabilities list what transformation code may use and its limits")),
    row(
      "GET /transformations/{id}/executions; GET /transformations/{id}/executions/{executionId}",
      api("Executions of a transformation are listed in pages and read one by one")
    )
  ],
  fields: {
    Transformation: [
      of("env", stored("Environment variables are stored encrypted and decrypted for a run")),
      of("code_hash", stored("A partial change of a transformation keeps the rest, and the hash follows the code")),
      of(
        "executions_24h_count executions_24h_successful_count executions_24h_failed_count executions_24h_successful_bins executions_24h_failed_bins connections_count",
        stored("Executions of the last 24 hours are counted in six bins on request")
      ),
      of("deleted_at", api("Transformation can be created, read, changed and deleted under ${prefix}/transformations")),
      of("isolation_reason", stored("A stored transformation is returned"))
    ],
    "TransformationWrite TransformationPatch": [
      of("name code env", actor("A transformation is created, partly changed, upserted and deleted by its actor")),
      of("isolation", input("A partial change of a transformation keeps the rest"))
    ],
    TransformationRunInput: [
      of("transformation_id env", actor("A stored transformation runs with its own variables or those of the call")),
      of("code request", actor("Code can run without being stored, with or without a sample request")),
      of("timestamp", input("An invalid %s of a run is rejected in %j")),
      of("context context.*", actor("A stored transformation runs with its own variables or those of the call"))
    ],
    TransformationValidationInput: [of("code env", actor("Code can be validated without running its handler"))],
    TransformationValidation: [
      of("valid runtime handlers console error error.*", actor("Code can be validated without running its handler"))
    ],
    TransformationCapabilities: [
      of(
        "runtime runtimes handlers isolations globals limits limits.*",
        api("Capabilities list what transformation code may use and its limits")
      )
    ],
    RequestSample: [
      of("headers body query path method", actor("Code can run without being stored, with or without a sample request"))
    ],
    TransformationRun: [
      of("console log_level", api("Call ${method} /transformations/run runs code on a sample")),
      of(
        "error error.*",
        actor("A failed run is an answer, but code that does not compile or a full sandbox is an error")
      ),
      of("request request.*", actor("A run returns the query in the form in which it was given"))
    ],
    Execution: execution,
    ExecutionDetail: [
      ...execution,
      of(
        "original_event_data transformed_event_data",
        executions("An execution shows its input, its result and its log")
      )
    ]
  },
  states: [
    row(
      "success means no error-level logs",
      api("Executions of a transformation are listed in pages and read one by one")
    ),
    row(
      "counts are left out unless they are asked for",
      api("Transformations are listed by id, name, order and limit, and counted on request only")
    ),
    row("code is validated on write", life("Code that does not parse is refused everywhere with its line")),
    row(
      "the request_id hint may be absent or stale",
      api("Executions of a transformation are listed in pages and read one by one")
    ),
    row(
      "one in use is not deleted",
      api("Transformation in use cannot be deleted, and the answer names the connection")
    )
  ],
  limits: [
    row(
      "list limit: 255 at most",
      api("Transformations are listed by id, name, order and limit, and counted on request only")
    )
  ]
}
