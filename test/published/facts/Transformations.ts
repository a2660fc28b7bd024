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
  of("logs logs_truncated", executions("shows the first lines of a long log in lists, all of it in the detail")),
  of("code_hash", life("Changed code applies from the first request after the answer, and executions show their code"))
]

export const transformations: Section = {
  title: "Transformations",
  endpoints: [
    row("GET /transformations", api("is listed by id, name, order and limit; counted only when asked")),
    row(
      "POST,PUT /transformations; GET,PUT,PATCH,DELETE /transformations/{id}",
      api("the life of one of ${prefix}/transformations")
    ),
    row("POST,PUT /transformations/run", api("${method} runs code against a sample")),
    row("PUT /transformations/validate", api("code is looked at without running anything through it")),
    row("GET /transformations/capabilities", api("what code may use is told")),
    row(
      "GET /transformations/{id}/executions; GET /transformations/{id}/executions/{executionId}",
      api("its executions, page by page and one by one")
    )
  ],
  fields: {
    Transformation: [
      of("env", stored("its variables are stored encrypted, and run decrypted")),
      of("code_hash", stored("a change in part leaves the rest, and the hash follows the code")),
      of(
        "executions_24h_count executions_24h_successful_count executions_24h_failed_count executions_24h_successful_bins executions_24h_failed_bins connections_count",
        stored("counts its executions of the last 24 hours in six bins, when they are asked for")
      ),
      of("deleted_at", api("the life of one of ${prefix}/transformations")),
      of("isolation_reason", stored("stores a transformation and shows it"))
    ],
    "TransformationWrite TransformationPatch": [
      of("name code env", actor("creates, changes in part, upserts and deletes")),
      of("isolation", input("in part leaves the rest"))
    ],
    TransformationRunInput: [
      of(
        "transformation_id env",
        actor("runs what is stored with its variables, or with those of the call; code beside it is not used")
      ),
      of("code request", actor("runs code that is not stored, against a sample or without one")),
      of("timestamp", input("%s is refused in %j")),
      of(
        "context context.*",
        actor("runs what is stored with its variables, or with those of the call; code beside it is not used")
      )
    ],
    TransformationValidationInput: [of("code env", actor("looks at code without running anything through it"))],
    TransformationValidation: [
      of("valid runtime handlers console error error.*", actor("looks at code without running anything through it"))
    ],
    TransformationCapabilities: [
      of("runtime runtimes handlers isolations globals limits limits.*", api("what code may use is told"))
    ],
    RequestSample: [
      of("headers body query path method", actor("runs code that is not stored, against a sample or without one"))
    ],
    TransformationRun: [
      of("console log_level", api("${method} runs code against a sample")),
      of("error error.*", actor("a run that fails is an answer; code that does not compile, or finds no room, is not")),
      of("request request.*", actor("answers a query in the form it was asked in"))
    ],
    Execution: execution,
    ExecutionDetail: [
      ...execution,
      of(
        "original_event_data transformed_event_data",
        executions("shows what the code was given and made, and its log")
      )
    ]
  },
  states: [
    row("success means no error-level logs", api("its executions, page by page and one by one")),
    row(
      "counts are left out unless they are asked for",
      api("is listed by id, name, order and limit; counted only when asked")
    ),
    row("code is validated on write", life("Code that does not parse is refused everywhere with its line")),
    row("the request_id hint may be absent or stale", api("its executions, page by page and one by one")),
    row("one in use is not deleted", api("one that a connection uses is kept, and the answer names the connection"))
  ],
  limits: [row("list limit: 255 at most", api("is listed by id, name, order and limit; counted only when asked"))]
}
