import { versions as platform } from "node:process"
import { Clock, Effect, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { maxFormatterBody } from "@tidegate/model/Formatter"
import { fail, type FieldError, GatewayError } from "@tidegate/model/GatewayError"
import { cpuMillis, inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { TestFailure, TestInvalid } from "@tidegate/formatter/OperationTest"
import { Workshops } from "@tidegate/entities/Formatting/Workshop"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import type { WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { tagged } from "../handlers/Tagged.ts"

/** The engine is loaded by the first call: a gateway that does not use it does not have it in memory. */
const engine = Effect.promise(async () => {
  const [{ catalog }, { dataVersions }, { testOperation }, { isCostlyTest }] = await Promise.all([
    import("@tidegate/formatter/Catalog"),
    import("@tidegate/formatter/Versions"),
    import("@tidegate/formatter/OperationTest"),
    import("@tidegate/formatter/Task")
  ])
  const versions = dataVersions(platform)
  const shown = catalog(versions)
  return { shown, etag: JSON.stringify(shown["catalog_hash"]), testOperation, isCostlyTest, versions }
})

const envelope = (message: string, fields: ReadonlyArray<FieldError>): GatewayError =>
  fail("FORMATTER_ENVELOPE_INVALID", message, { fields: fields.map(({ message, path }) => ({ path, message })) })

/** Replaces the code of a body's error by the formatter's own. */
const ownCode = (error: GatewayError): GatewayError => {
  if (error.code === "PAYLOAD_TOO_LARGE") {
    return fail("FORMATTER_BODY_TOO_LARGE", error.message, { limit_bytes: maxFormatterBody })
  }
  const isOwn = error.code === "INVALID_JSON" || error.code === "VALIDATION_ERROR"
  return isOwn ? envelope(error.message, [{ path: "body", message: error.message }]) : error
}

const toError = (failure: TestInvalid | TestFailure): GatewayError => {
  if ("fields" in failure) {
    const [first] = failure.fields
    return fail(failure.code, `${first?.path} ${first?.message}`, {
      fields: failure.fields.map(({ message, path }) => ({ path, message }))
    })
  }
  const { code, details, engine_version, message, operation, resolved_input, stage } = failure
  return fail(code, message, { stage, operation, engine_version, ...details, resolved_input })
}

export const layer = HttpApiBuilder.group(Api, "formatter", (handlers) =>
  handlers
    .handleRaw("catalog", ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
      Effect.map(engine, ({ etag, shown }) => tagged(request, etag, shown))
    )
    .handleRaw("test", ({ request }: WithBody) =>
      Effect.gen(function* () {
        // Requests may contain text that cannot be stored, and runs use it as it is: so a test accepts it too.
        const body = yield* Effect.mapError(readJsonObject(request, maxFormatterBody, undefined, false), ownCode)
        const { isCostlyTest, testOperation, versions } = yield* engine
        const now = yield* Clock.currentTimeMillis
        const begun = performance.now()
        const tried = isCostlyTest(body)
          ? yield* Effect.mapError(
              (yield* Workshops).testOperation((yield* CurrentTeam).id, { kind: "test", body, now, versions }),
              ({ message }) => fail("QUEUE_UNAVAILABLE", message)
            )
          : yield* inSlices(testOperation(body, { clock: cpuMillis, now, versions }))
        if (Result.isFailure(tried)) return yield* toError(tried.failure)
        return { ...tried.success, duration_ms: Math.round((performance.now() - begun) * 1000) / 1000 }
      })
    )
)
