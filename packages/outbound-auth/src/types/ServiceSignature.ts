import { authType } from "./OutboundAuthType.ts"

/** Deliveries are signed with the team's secret (`DeliverySignature.ts`). */
export const serviceSignature = authType({
  type: "SERVICE_SIGNATURE",
  description: "Signed with the team's secret: webhook-id, webhook-timestamp, webhook-signature",
  settings: {},
  aliases: {},
  readable: [],
  compile: () => ({ headers: {}, signs: true })
})
