import { Context, Layer } from "effect"
import { metrics } from "@tidegate/telemetry/Metrics"
import { Slots } from "./Slots.ts"

/** What the destinations of one process share. */
export class DeliveryRuntime extends Context.Service<DeliveryRuntime, { readonly slots: Slots }>()(
  "@tidegate/entities/DeliveryRuntime"
) {
  /** `deliveries`: on the wire at once. `windowBytes`: what all windows may hold. */
  static readonly layer = (options: {
    readonly deliveries: number
    readonly windowBytes: number
  }): Layer.Layer<DeliveryRuntime> =>
    Layer.sync(DeliveryRuntime, () => {
      const slots = new Slots(options.deliveries, options.windowBytes)
      metrics.deliveriesUnderWay.readBy(() => slots.taken)
      return DeliveryRuntime.of({ slots })
    })
}
