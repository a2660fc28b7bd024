import { Context, Layer } from "effect"
import type { Connector } from "@tidegate/connectors/Connector"
import * as Connectors from "@tidegate/connectors/Connectors"
import { metrics } from "@tidegate/telemetry/Metrics"
import { Slots } from "./Slots.ts"

/** What the destinations of one process share. */
export class DeliveryRuntime extends Context.Service<
  DeliveryRuntime,
  {
    readonly slots: Slots
    readonly connectorOf: (type: string) => Connector | undefined
  }
>()("@tidegate/entities/DeliveryRuntime") {
  /** `deliveries`: on the wire at once. `windowBytes`: what all windows may hold. */
  static readonly layer = ({
    connectorOf = Connectors.connectorOf,
    deliveries,
    windowBytes
  }: {
    readonly deliveries: number
    readonly windowBytes: number
    readonly connectorOf?: (type: string) => Connector | undefined
  }): Layer.Layer<DeliveryRuntime> =>
    Layer.sync(DeliveryRuntime, () => {
      const slots = new Slots(deliveries, windowBytes)
      metrics.deliveriesUnderWay.readBy(() => slots.taken)
      return DeliveryRuntime.of({ slots, connectorOf })
    })
}
