import { Clock, Effect } from "effect"
import { Entity } from "effect/cluster"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { isUnwieldy } from "@tidegate/json/JsonText"
import { runtime } from "@tidegate/model/Transformation"
import type { TransformationRun, TransformationValidation } from "@tidegate/model/TransformationRun"
import { transformation } from "@tidegate/resources/Transformation"
import { type RunFields, type RunInput, runOf, type ValidationInput } from "@tidegate/resources/TransformationRun"
import { type Execution, Sandbox, type TransformRequest } from "@tidegate/sandbox/Sandbox"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { query } from "@tidegate/storage/Transaction"
import { codeHash, loadTransformation, Transformations } from "@tidegate/storage/control/Transformations"
import { actorOf } from "../Actor.ts"
import { carryThrough } from "../CarryThrough.ts"
import { available, checkCode } from "./CheckCode.ts"
import { TransformationEntity } from "./TransformationProtocol.ts"

/** A run of inline code starts an entity of its own, which is never called again. */
const maxIdleTime = "10 seconds"

/**
 * The transformation's actor. Its row is written by it alone, except for a transformation that is written inside a connection's
 * rule: that connection writes it too. The actor has no state; everything is in SQL. Its commands do not wait for each other,
 * because a run may last a second and a change is one transaction.
 */
export const layer = TransformationEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sandbox = yield* Sandbox
    const stored = yield* Effect.context<Database | Secrets>()

    const check = (code: string) => Effect.provideService(checkCode(code), Sandbox, sandbox)

    const load = Effect.fnUntraced(function* (team_id: string, fields: RunFields) {
      if (fields.code !== null) {
        yield* check(fields.code)
        return {
          code: fields.code,
          code_hash: codeHash(fields.code),
          isolation: "sealed" as const,
          env: fields.env ?? {}
        }
      }
      const found = yield* loadTransformation(team_id, id).pipe(
        Effect.catchTag("SecretUnreadable", unreadable),
        Effect.provideContext(stored),
        query
      )
      return found === null ? yield* notFound("transformation", id) : { ...found, env: fields.env ?? found.env }
    })

    const run = Effect.fnUntraced(function* (team_id: string, input: RunInput) {
      const fields = runOf(input, yield* Clock.currentTimeMillis)
      const { code, code_hash: hash, env, isolation } = yield* load(team_id, fields)
      const context = { ...fields.context, team_id }
      const { request } = fields
      const call = { teamId: team_id, code, codeHash: hash, isolation, env, request, context }
      return toRun(fields, yield* available(sandbox.run(call)))
    })

    const validate = Effect.fnUntraced(function* (team_id: string, { code, env }: ValidationInput) {
      const fields = runOf({ code }, yield* Clock.currentTimeMillis)
      const execution = yield* available(
        sandbox.run({
          teamId: team_id,
          code,
          codeHash: codeHash(code),
          isolation: "fresh",
          isLoadedOnly: true,
          env: env ?? {},
          request: fields.request,
          context: { ...fields.context, team_id }
        })
      )
      return toValidation(execution)
    })

    const commands = yield* actorOf(transformation, yield* Transformations, {
      check: ({ code }) => (code === undefined ? Effect.void : check(code))
    })
    return TransformationEntity.of({
      ...commands,
      Run: ({ payload }) => carryThrough(run(payload.team_id, payload.input)),
      Validate: ({ payload }) => carryThrough(validate(payload.team_id, payload.input))
    })
  }),
  { concurrency: "unbounded", maxIdleTime }
)

/** Fails closed: code never runs without its variables. */
const unreadable = (error: unknown): Effect.Effect<never, GatewayError> =>
  Effect.andThen(
    Effect.logError("a transformation's variables cannot be read", error),
    fail("INTERNAL_ERROR", "the transformation's variables cannot be read; write them anew")
  )

/** A request with so many headers or query values could not be sent. */
const tooManyValues = {
  code: "OUTPUT_TOO_LARGE",
  name: "Error",
  message: "there are too many headers, or too many values in the query",
  line: null
} as const

const asText = "the body has too many values or levels to be shown as what it is: this is its JSON text"

/** The result of the code, ready to show: it may be far larger than what masking may walk through in an answer. */
const shown = (request: TransformRequest, queryAsText: boolean): TransformationRun["request"] => {
  const { body, headers, method, parsed_query, path, query: written } = request
  return {
    headers,
    body: isUnwieldy(body) ? JSON.stringify(body) : body,
    query: queryAsText ? written : parsed_query,
    parsed_query,
    path,
    method
  }
}

const linesOf = ({ logs }: Execution): ReadonlyArray<string> => logs.map(({ message }) => message)

const problemOf = (error: Execution["error"]): TransformationRun["error"] =>
  error === null ? null : { code: error.code, name: error.name, message: error.message, line: error.line }

const toValidation = (execution: Execution): TransformationValidation => {
  const error = problemOf(execution.error)
  return {
    valid: error === null,
    runtime,
    handlers: error === null ? ["transform"] : [],
    console: linesOf(execution),
    error
  }
}

const toRun = (fields: RunFields, execution: Execution): TransformationRun => {
  const { durationMs, finishedAt, logLevel, memoryBytes, startedAt } = execution
  const tooMany = execution.request !== null && isUnwieldy([execution.request.headers, execution.request.parsed_query])
  const request = execution.request === null || tooMany ? null : shown(execution.request, fields.queryAsText)
  const error = tooMany ? tooManyValues : execution.error
  return {
    transformation_id: fields.transformation_id,
    runtime,
    stats: { duration_ms: durationMs, memory_bytes: memoryBytes },
    // A run has no level above error; the execution of a real request has.
    log_level: logLevel === "fatal" || tooMany ? "error" : logLevel,
    console: linesOf(execution),
    warnings:
      request === null || request.body === execution.request?.body
        ? execution.warnings
        : [...execution.warnings, asText],
    request,
    error: problemOf(error),
    transformation_run_time: {
      started_at: new Date(startedAt).toISOString(),
      finished_at: new Date(finishedAt).toISOString(),
      duration_ms: durationMs
    }
  }
}
