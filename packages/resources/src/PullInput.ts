import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { bodyOf } from "./Resource.ts"
import { ids } from "./ExampleIds.ts"

/** The largest number of messages in an answer, and of receipts in a call. */
export const maxPulled = 100
/** How long a call may wait for a message (s). */
const maxWaitSeconds = 20

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** How many messages a consumer takes, and how long it waits. */
export const pullBody = bodyOf(
  Schema.Struct({
    max: Schema.optionalKey(between(1, maxPulled)).annotate({
      description: "The largest number of messages. Default: 10",
      default: 10
    }),
    wait_seconds: Schema.optionalKey(between(0, maxWaitSeconds)).annotate({
      description:
        "Seconds that the call waits for the first message. Default: 0, which waits half a second for what is stored",
      default: 0
    })
  }).annotate({ identifier: "PullInput" })
)

const receipts = Schema.Array(Schema.String.check(Characters.upTo(100)))
  .check(Schema.isMinLength(1), Schema.isMaxLength(maxPulled))
  .annotate({ description: "The receipts of messages" })

export const ackBody = bodyOf(Schema.Struct({ receipts }).annotate({ identifier: "AckInput" }))

export const nackBody = bodyOf(
  Schema.Struct({
    receipts,
    reason: Schema.optionalKey(Schema.String.check(Characters.upTo(200))).annotate({
      description: "The attempts have it as their failure"
    })
  }).annotate({ identifier: "NackInput" })
)

const receipt = `${ids.event}.1`

export const examples = {
  pull: { max: 10, wait_seconds: 1 },
  ack: { receipts: [receipt] },
  nack: { receipts: [receipt], reason: "the warehouse is closed" }
} as const
