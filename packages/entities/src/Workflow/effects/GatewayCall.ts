import { Effect } from "effect"
import type { Sharding } from "effect/cluster"
import type { GatewayCall, GatewayOperation } from "@tidegate/actions/Call"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { newId, prefixes } from "@tidegate/model/Ids"
import { parseQuery, storedHeaders } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import type { Database } from "@tidegate/storage/Database"
import { lookUpRequest } from "@tidegate/storage/LookedUp"
import { exactly, original } from "@tidegate/storage/bulk/Originals"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { rememberedResult } from "@tidegate/storage/workflows/TeamValues"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Loops } from "../../Loops.ts"
import { replay } from "../../Replay.ts"
import { SourceEntity } from "../../Source/SourceProtocol.ts"
import type { Call, Carry } from "./Call.ts"
import { readBody } from "./DestinationEffect.ts"
import { unreached } from "./StoreCall.ts"

/** The largest body of a request that a step may look up. */
const maxLookedUp = 1024 * 1024

const loop: StepError = {
  code: "LOOP_DETECTED",
  message: "too many requests have come of the one that began this: the workflows that follow each other lead back",
  final: true
}

const limited: StepError = { code: "RATE_LIMITED", message: "the source takes no more in this period" }

type Operation<Name extends GatewayOperation["name"]> = Extract<GatewayOperation, { readonly name: Name }>

/**
 * Operations of the gateway itself for the run's team. An operation that makes a request makes exactly one, however often the
 * step is attempted.
 */
export const makeGatewayCall = Effect.map(
  Effect.all([Effect.context<Database | Secrets | Sharding.Sharding>(), SourceEntity.client, Loops]),
  ([services, source, loops]): Carry<GatewayCall> => {
    /**
     * The loop mark for a request that the step makes. It counts on from the request that began the run, as if the new one had
     * come through ingress.
     */
    const chained = ({ run }: Call): Effect.Effect<{ readonly [loopHeader]: string }, StepError> => {
      const header = { [loopHeader]: loops.next(storedHeaders(run), run.request_id) }
      return loops.admits(header) ? Effect.succeed(header) : Effect.fail(loop)
    }

    /** The id of the request that the step makes: the same for all of its attempts. */
    const idOf = ({ key, now, run }: Call) =>
      Effect.map(rememberedResult(run.team_id, key, newId(prefixes.request, now)), ({ result }) => result)

    const lookUp = Effect.fnUntraced(function* ({ request_id }: Operation<"lookup_request">, { run }: Call) {
      const found = yield* lookUpRequest(run.team_id, request_id, maxLookedUp)
      if (found === null) return { found: false, request: null }
      if (found.body_size > maxLookedUp) {
        return yield* Effect.fail({ code: "OUTPUT_TOO_LARGE", message: "the request has more than 1 MiB" })
      }
      const { body, id, ingested_at, method, path, query, source_id } = found
      const headers = storedHeaders(found)
      const request = {
        id,
        source_id,
        method,
        path,
        query: parseQuery(query) as Json,
        headers: headers as Json,
        body: body === null ? null : yield* readBody(headers, body),
        received_at: ingested_at.toISOString()
      }
      return { found: true, request }
    })

    const publish = Effect.fnUntraced(function* ({ message, source_id }: Operation<"publish">, call: Call) {
      const { run } = call
      const chain = yield* chained(call)
      // Each attempt counts against the source's limit, also when an earlier attempt had already arrived. So the limit is never
      // exceeded.
      const retry_after_ms = yield* source(source_id).Take({ team_id: run.team_id })
      if (retry_after_ms > 0) return yield* Effect.fail({ ...limited, retry_after_ms })
      const id = yield* idOf(call)
      yield* replay({
        team_id: run.team_id,
        source_id,
        id,
        message: { ...message, headers: { ...message.headers, ...chain } },
        presented: null,
        presentedOf: id,
        verified: true,
        original_ip: null,
        external_id: null,
        retry: null
      })
      return { request_id: id }
    })

    const again = Effect.fnUntraced(function* ({ request_id }: Operation<"replay_request">, call: Call) {
      const { run } = call
      const chain = yield* chained(call)
      const of = yield* original(run.team_id, request_id)
      const id = yield* idOf(call)
      const exact = exactly(of, id, { kind: "single", operation_id: null })
      const headers = { ...exact.message.headers, ...chain }
      yield* replay({ ...exact, message: { ...exact.message, headers } })
      return { request_id: id }
    })

    const done = (operation: GatewayOperation, call: Call) => {
      if (operation.name === "lookup_request") return lookUp(operation, call)
      return operation.name === "publish" ? publish(operation, call) : again(operation, call)
    }
    return ({ operation }, call) =>
      (done(operation, call) as Effect.Effect<Json, unknown, Database | Secrets | Sharding.Sharding>).pipe(
        Effect.mapError(errorOf),
        Effect.provideContext(services)
      )
  }
)

const errorOf = (error: unknown): StepError => {
  const { _tag, code, message } = error as { readonly _tag?: string } & Partial<StepError> & Partial<GatewayError>
  if (_tag === undefined) return error as StepError
  if (code === "NOT_FOUND") return { code: "RESOURCE_DELETED", message: message ?? "not found" }
  if (code === "SOURCE_DISABLED") return { code: "RESOURCE_DISABLED", message: "the source is disabled or deleted" }
  return code === undefined ? unreached : { code: "ACTION_FAILED", message: message ?? "the gateway could not do it" }
}
