import { Schema } from "effect"
import { connector, judgeStatus } from "./Connector.ts"
import { forward } from "./HttpDelivery.ts"
import { pacing, setting } from "./Settings.ts"

/** No host has this name, because nothing is sent there. In the record of an attempt, it is followed by the path and query of the message. */
const origin = "https://consumer.invalid"

const seconds = "must be a whole number from 1 to 3600"

/** A consumer without a URL: it fetches its messages from the gateway, and acknowledges them. */
export const pull = connector({
  type: "PULL",
  name: "Pull queue",
  description: "Delivers to a consumer that fetches its messages from the gateway and acknowledges them.",
  settings: {
    lease_seconds: setting(
      Schema.Number.annotate({
        message: seconds,
        description: "Seconds that a consumer has to acknowledge a message. After that the attempt has failed"
      }).check(
        Schema.isInt({ message: seconds }).abort(),
        Schema.isBetween({ minimum: 1, maximum: 3_600 }, { message: seconds })
      ),
      60,
      seconds
    ),
    ...pacing
  },
  none: {
    url: Schema.Null.annotate({ message: "has no effect on PULL destinations: consumers fetch their messages" }),
    max_concurrency: Schema.Null.annotate({
      message: "has no effect on PULL destinations: a consumer says how many messages it takes"
    })
  },
  auths: ["NO_AUTH", "SERVICE_SIGNATURE"],
  leadsTo: () => "whoever fetches its messages",
  credentials: "forward",
  carriesPath: () => true,
  isPulled: true,
  example: { name: "warehouse", type: "PULL", config: { lease_seconds: 60 } },
  open: ({ lease_seconds }, { headers, signing }) => ({
    kind: "pull",
    origin,
    leaseMs: lease_seconds * 1_000,
    prepare: forward({ url: `${origin}/`, http_method: null, path_forwarding_disabled: false }, { headers, signing }),
    judge: judgeStatus
  })
})
