import { Layer } from "effect"
import { Hints } from "@tidegate/entities/Hints"
import { ProxyExchanges } from "@tidegate/storage/ProxyExchanges"
import { BinDoor } from "./BinDoor.ts"
import { Certificates } from "./Certificates.ts"
import { HandshakeSteps } from "./HandshakeSteps.ts"
import { IngestLimits } from "./IngestLimits.ts"
import { IngressDoor } from "./IngressDoor.ts"
import { ProxyUpstream } from "./ProxyUpstream.ts"
import { SourceSnapshots } from "./SourceSnapshots.ts"

/** The public door with all its parts. */
export const layer = IngressDoor.layer.pipe(
  Layer.provide([
    SourceSnapshots.layer,
    Hints.layer,
    HandshakeSteps.layer,
    ProxyUpstream.layer,
    ProxyExchanges.layer,
    BinDoor.layer
  ]),
  Layer.provide([Certificates.layer, IngestLimits.layer])
)
