import { Layer } from "effect"
import { Dispatcher } from "@tidegate/entities/dispatch/Dispatcher"
import { ProxyExchanges } from "@tidegate/storage/delivery/ProxyExchanges"
import { BinIngress } from "./BinIngress.ts"
import { Certificates } from "./Certificates.ts"
import { CalledSubscriptions } from "./channels/CalledSubscriptions.ts"
import { HandshakeSteps } from "./HandshakeSteps.ts"
import { IngestLimits } from "./IngestLimits.ts"
import { IngressHandler } from "./IngressHandler.ts"
import * as OwnRequests from "./OwnRequests.ts"
import { ProxyUpstream } from "./ProxyUpstream.ts"
import { ReceivingSteps } from "./callbacks/ReceivingSteps.ts"
import { WaitingSenders } from "./WaitingSenders.ts"
import { SourceSnapshots } from "./SourceSnapshots.ts"

/** Ingress with all its parts. */
export const layer = OwnRequests.layer.pipe(
  Layer.provideMerge(IngressHandler.layer),
  Layer.provide([
    SourceSnapshots.layer,
    Dispatcher.layer,
    HandshakeSteps.layer,
    ProxyUpstream.layer,
    ProxyExchanges.layer,
    BinIngress.layer,
    CalledSubscriptions.layer,
    WaitingSenders.layer,
    ReceivingSteps.layer
  ]),
  Layer.provide([Certificates.layer, IngestLimits.layer])
)
