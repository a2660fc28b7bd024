import { Effect, Redacted, type Schema } from "effect"
import { Entity } from "effect/cluster"
import { Ingress } from "@tidegate/model/Ingress"
import { type SourceChanged, Sources } from "@tidegate/storage/Sources"
import { Cancellations } from "../Cancellations.ts"
import { carryThrough } from "../CarryThrough.ts"
import { reloadDestinations } from "../Hints.ts"
import { createSource, updateSource } from "./SourceInput.ts"
import { rememberSecret } from "./RememberSecret.ts"
import { SourceEntity } from "./SourceProtocol.ts"

interface Command {
  readonly payload: { readonly team_id: string }
}
interface Write {
  readonly payload: { readonly team_id: string; readonly input: Schema.Json }
}

/** The source's actor: the only writer of its row. It holds nothing: what it knows is in SQL. */
export const layer = SourceEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sources = yield* Sources
    const ingress = yield* Ingress
    const cancellations = yield* Cancellations

    /** Answers once everyone whom the committed change concerns goes by it. */
    const spread = Effect.fnUntraced(function* ({ cancelled, destinations }: Omit<SourceChanged, "source">) {
      for (const connection_id of cancelled) yield* cancellations.request({ connection_id })
      yield* reloadDestinations(destinations)
    })

    const setDisabled =
      (disabled: boolean) =>
      ({ payload }: Command) =>
        carryThrough(
          sources.setDisabled(payload.team_id, id, disabled).pipe(
            Effect.tap(spread),
            Effect.map(({ source }) => source)
          )
        )

    return SourceEntity.of({
      Create: ({ payload }: Write) =>
        carryThrough(
          Effect.flatMap(Effect.fromResult(createSource(payload.input, ingress)), (fields) =>
            sources.create(payload.team_id, id, fields)
          )
        ),
      Update: ({ payload }: Write) =>
        carryThrough(
          sources.update(payload.team_id, id, updateSource(id, payload.input, ingress)).pipe(
            Effect.tap(spread),
            Effect.map(({ source }) => source)
          )
        ),
      RememberSecret: ({ payload }: Command & { readonly payload: { readonly secret: Redacted.Redacted } }) =>
        carryThrough(
          sources.update(payload.team_id, id, rememberSecret(Redacted.value(payload.secret))).pipe(
            Effect.tap(spread),
            Effect.map(({ source }) => source)
          )
        ),
      Disable: setDisabled(true),
      Enable: setDisabled(false),
      Delete: ({ payload }: Command) =>
        carryThrough(Effect.as(Effect.flatMap(sources.delete(payload.team_id, id), spread), { id }))
    })
  })
)
