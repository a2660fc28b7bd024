import { deadLetterSource } from "./DeadLetterSource.ts"
import { delayedFollowUp } from "./DelayedFollowUp.ts"
import { eachLineItem } from "./EachLineItem.ts"
import { failedPaymentAlert } from "./FailedPaymentAlert.ts"
import { fallbackDestination } from "./FallbackDestination.ts"
import { fanOutAndJoin } from "./FanOutAndJoin.ts"
import { firstOfEachCustomer } from "./FirstOfEachCustomer.ts"
import { largeOrderReview } from "./LargeOrderReview.ts"
import { normalisedOrder } from "./NormalisedOrder.ts"
import { orderEnrichment } from "./OrderEnrichment.ts"
import { routeByRegion } from "./RouteByRegion.ts"
import type { Template } from "./Template.ts"

/** All templates, in the order in which they are shown. */
export const templates: ReadonlyArray<Template> = [
  failedPaymentAlert,
  normalisedOrder,
  routeByRegion,
  fallbackDestination,
  fanOutAndJoin,
  delayedFollowUp,
  eachLineItem,
  largeOrderReview,
  orderEnrichment,
  firstOfEachCustomer,
  deadLetterSource
]

export const templateOf = (key: string): Template | undefined => templates.find((template) => template.key === key)
