import { Context, Layer } from "effect"
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
    Layer.sync(DeliveryRuntime, () => DeliveryRuntime.of({ slots: new Slots(options.deliveries, options.windowBytes) }))
}
