import { Result, Schema } from "effect"
import { definitionOf, pairOf } from "@tidegate/channels/SourceProviders"
import { DeliveryMode } from "@tidegate/model/Channel"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import type { ProviderSettings } from "@tidegate/model/ProviderSource"
import { fieldError, type FieldErrors, judgeBody, type Members } from "./Input.ts"
import { OneOf, optional } from "./Members.ts"
import { deliveryMembers, deliveryOf } from "./source/Provider.ts"
import type { SourceChange, SourceFields } from "./Source.ts"

/** How the delivery of provider sources is changed: of one source, and of many at once. */

/** The largest number of sources that one call changes. */
export const maxBulk = 100

const Delivery = Schema.Struct({
  delivery_mode: optional(
    OneOf(DeliveryMode.literals).annotate({ description: "The definition of the same trigger with this mode is used" })
  ),
  ...deliveryMembers
})

/** For the document; the source's owner judges the body, so that an unknown source is reported first. */
export const DeliveryPatch = Delivery.annotate({
  identifier: "DeliveryPatch",
  description: "The delivery of a provider source. At least one member is required; the others stay."
})

const deliveryInvalid = <A>(result: Result.Result<A, FieldErrors>): Result.Result<A, GatewayError> =>
  Result.mapError(result, (faults) => {
    const { data, message } = invalid(faults)
    return fail("DELIVERY_INVALID", message, data)
  })

/** Other members of the body are those of a source's record, which may be sent back. */
const judge = (input: Members): Result.Result<typeof Delivery.Type, FieldErrors> => {
  const names = Object.keys(Delivery.fields)
  return names.some((name) => name in input)
    ? judgeBody(Delivery, input, Result.succeed)
    : fieldError("body", `must have at least one of ${names.join(", ")}`)
}

const withMode = (
  { definition_key, provider_key }: ProviderSettings,
  mode: DeliveryMode | undefined
): string | undefined => {
  const definition = definitionOf(provider_key, definition_key)
  if (mode === undefined) return definition_key
  if (definition === undefined) return undefined
  return definition.mode === mode ? definition.key : pairOf(definition)?.key
}

/** The source after a change of its delivery. The trigger stays, and with it the cursor: nothing is lost or repeated. */
export const changeDelivery =
  (input: Members, source_id: string) =>
  (stored: SourceFields): Result.Result<SourceChange, GatewayError> =>
    Result.flatMap(deliveryInvalid(judge(input)), (written) => {
      const { provider } = stored.config
      const definition_key = provider === undefined ? undefined : withMode(provider, written.delivery_mode)
      if (provider === undefined || definition_key === undefined) {
        const why =
          provider === undefined
            ? "the source is not of type PROVIDER"
            : `the trigger has no ${written.delivery_mode} definition`
        return Result.fail(fail("DELIVERY_DEFINITION_UNAVAILABLE", why, { source_id }))
      }
      const changed = { ...provider, definition_key, ...deliveryOf(written, provider) }
      return Result.succeed({ ...stored, config: { ...stored.config, provider: changed }, auth: "unchanged" })
    })

const actions = ["retry", "use_polling", "use_instant"] as const

const idsMessage = `must be 1 to ${maxBulk} different ids`

export const ChannelBulk = Schema.Struct({
  source_ids: Schema.Array(Schema.String.annotate({ message: idsMessage }))
    .annotate({ message: idsMessage })
    .check(
      Schema.isMinLength(1, { message: idsMessage }),
      Schema.isMaxLength(maxBulk, { message: idsMessage }),
      Schema.isUnique({ message: idsMessage })
    ),
  action: OneOf(actions),
  ...deliveryMembers
}).annotate({
  identifier: "ChannelBulk",
  description: "`retry` reconciles the channels, and takes no settings; the others change the delivery."
})

/** What is to be done with each of the sources: `delivery` null: a retry. */
export interface BulkDelivery {
  readonly sources: ReadonlyArray<string>
  readonly delivery: Schema.JsonObject | null
}

/** Checks the body of a bulk change. */
export const bulkDelivery = (input: Members): Result.Result<BulkDelivery, GatewayError> =>
  deliveryInvalid(
    judgeBody(ChannelBulk, input, ({ action, source_ids, ...settings }): Result.Result<BulkDelivery, FieldErrors> => {
      if (action !== "retry") {
        const delivery_mode = action === "use_polling" ? "polling" : "instant"
        return Result.succeed({ sources: source_ids, delivery: { delivery_mode, ...settings } })
      }
      const [first] = Object.keys(settings)
      return first === undefined
        ? Result.succeed({ sources: source_ids, delivery: null })
        : fieldError(first, "has no effect with the action retry")
    })
  )

const settings = { schedule: { interval_minutes: 15 }, auto_fallback: true, max_failures: 3, restore_after_minutes: 30 }

export const example = {
  delivery: { delivery_mode: "polling", ...settings },
  bulk: (source_id: string) => ({ source_ids: [source_id], action: "use_polling", ...settings })
} as const
