import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { notFound } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import type { Database } from "@tidegate/storage/Database"
import {
  cancelDeletion,
  confirmDeletion,
  listDeletions,
  readDeletion,
  requestDeletion
} from "@tidegate/storage/deletion/DataDeletions"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { dataDeletionBody } from "@tidegate/resources/DataDeletion"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { type ById, carriedThrough, read, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"

/** The calls go to the table: one process of the cluster finds there what is to be done. */
export const layer = HttpApiBuilder.group(
  Api,
  "dataDeletions",
  Effect.fnUntraced(function* (handlers) {
    const stored = yield* Effect.context<Database | Secrets>()
    /** The team, and who asks: the proof names the user, or the key. */
    const asked = Effect.map(CurrentTeam, ({ caller, id }) => ({
      team_id: id,
      by: caller.kind === "session" ? caller.signedIn.user.id : caller.key.id
    }))
    const which = Effect.fnUntraced(function* ({ params: { id } }: ById) {
      if (!isId(prefixes.dataDeletion, id)) return yield* notFound("data deletion", id)
      return { id, ...(yield* asked) }
    })

    return handlers
      .handle("list", () =>
        Effect.gen(function* () {
          const { team_id } = yield* asked
          return { data: yield* read(Effect.provideContext(listDeletions(team_id), stored)) }
        })
      )
      .handleRaw("create", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const { by, team_id } = yield* asked
          const now = yield* Clock.currentTimeMillis
          const body = yield* Effect.fromResult(dataDeletionBody.judge(yield* readJsonObject(request), now))
          const id = yield* idOfCall(prefixes.dataDeletion)
          return yield* carriedThrough(Effect.provideContext(requestDeletion({ ...body, id, team_id, by }), stored))
        })
      )
      .handle("retrieve", (call) =>
        Effect.flatMap(which(call), (one) => read(Effect.provideContext(readDeletion(one), stored)))
      )
      .handle("run", (call) =>
        Effect.flatMap(which(call), (one) =>
          carriedThrough(Effect.provideContext(confirmDeletion(one, one.by), stored))
        )
      )
      .handle("cancel", (call) =>
        Effect.flatMap(which(call), (one) => carriedThrough(Effect.provideContext(cancelDeletion(one), stored)))
      )
  })
)
