import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { capabilities } from "@tidegate/entities/Transformation/Capabilities"
import { TransformationEntity } from "@tidegate/entities/Transformation/TransformationProtocol"
import { prefixes } from "@tidegate/model/Ids"
import { maxCodeBody, maxRunBody } from "@tidegate/model/BodyLimits"
import type { Role } from "@tidegate/model/Permission"
import type { Transformation } from "@tidegate/model/Transformation"
import { transformation } from "@tidegate/resources/Transformation"
import { runBody, validationBody } from "@tidegate/resources/TransformationRun"
import { maskSecret } from "@tidegate/redaction/Masking"
import * as ExecutionReads from "@tidegate/storage/reads/ExecutionReads"
import { Transformations } from "@tidegate/storage/control/Transformations"
import { Api } from "../contract/Api.ts"
import * as Lists from "../contract/Lists.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, ownersOf, reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { listing } from "../handlers/Listing.ts"
import { logLevelsOf, pageOf, underOneName } from "../handlers/ListInput.ts"
import { handle } from "../handlers/Resource.ts"

/** The record as the caller may see it: a caller who does not own the team sees the names of variables but not their values. */
export const shownTo = (role: Role, transformation: Transformation): Transformation => {
  if (role === "owner") return transformation
  const { env, ...shown } = transformation
  return { ...shown, env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, maskSecret(value)])) }
}

/** Transformations: commands go to their actors, reads to the tables. */
export const layer = HttpApiBuilder.group(
  Api,
  "transformations",
  Effect.fnUntraced(function* (handlers) {
    const client = yield* TransformationEntity.client
    const { fresh, owner } = ownersOf(prefixes.transformation, "transformation", client)
    const reading = yield* reader
    const handled = yield* handle(handlers, transformation, Lists.transformations, yield* Transformations, client, {
      shownTo,
      // Its code has to compile.
      needsActor: () => true,
      narrowed: (query: { readonly include_counts?: boolean; readonly include_metrics?: boolean }) =>
        Effect.map(underOneName(query, "include_counts", "include_metrics"), (counts = false) => ({ counts }))
    })

    const run = Effect.fnUntraced(function* ({ request }: WithBody) {
      const { id: team_id } = yield* CurrentTeam
      const input = yield* Effect.fromResult(runBody.judge(yield* readJsonObject(request, maxRunBody)))
      const id = input.transformation_id ?? null
      const runner = id === null ? yield* fresh : yield* owner(id)
      return yield* askOwner(runner.Run({ team_id, input }))
    })

    const validate = Effect.fnUntraced(function* ({ request }: WithBody) {
      const { id: team_id } = yield* CurrentTeam
      const input = yield* Effect.fromResult(validationBody.judge(yield* readJsonObject(request, maxCodeBody)))
      return yield* askOwner((yield* fresh).Validate({ team_id, input }))
    })

    return handled
      .handleRaw("run", run)
      .handleRaw("runByPut", run)
      .handleRaw("validate", validate)
      .handle("capabilities", () => Effect.succeed(capabilities))
      .handle(
        "executions",
        listing(({ params, query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const logLevels = yield* logLevelsOf(query.log_level)
            const page = yield* pageOf(Lists.executions, query, { team, transformation: params.id, logLevels })
            return yield* reading(ExecutionReads.list(team, params.id, { logLevels }, page))
          })
        )
      )
      .handle("execution", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reading(ExecutionReads.get(team, params.id, params.executionId)))
      )
  })
)
