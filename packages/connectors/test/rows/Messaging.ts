import type { ConformanceRow, Failing } from "./Row.ts"

/** It says in a number of its own what is wrong. */
const said = (status: number, number: number, code: Failing["code"], final: boolean): Failing => ({
  status,
  body: JSON.stringify({ code: number, message: "no", status }),
  code,
  final
})

const messaging: Omit<ConformanceRow, "type"> = {
  mock: () => ({ config: {} }),
  accepted: { status: 201, body: '{"sid":"SM1","status":"queued"}' },
  failures: {
    credentials: [
      said(401, 20_003, "AUTH_REJECTED", false),
      said(403, 20_403, "AUTH_REJECTED", false),
      said(404, 20_404, "AUTH_REJECTED", false)
    ],
    tooMuch: [said(429, 20_429, "BAD_RESPONSE", false), said(400, 21_611, "BAD_RESPONSE", false)],
    refused: [
      said(400, 21_211, "BAD_RESPONSE", true),
      { status: 201, body: '{"sid":"SM1","status":"failed","error_code":30007}', code: "BAD_RESPONSE", final: true }
    ],
    trouble: [said(500, 20_500, "BAD_RESPONSE", false), said(503, 20_503, "BAD_RESPONSE", false)]
  },
  addresses: {},
  triedWith: "a mock server that the twilio client also calls"
}

export const messagingChat: ConformanceRow = {
  ...messaging,
  type: "MESSAGING_CHAT",
  beside: { content_variables: { content_sid: "HX1", messaging_service_sid: "MG1" } }
}
export const messagingSms: ConformanceRow = { ...messaging, type: "MESSAGING_SMS" }
export const messagingMms: ConformanceRow = {
  ...messaging,
  type: "MESSAGING_MMS",
  // The API fetches them: from the public network alone.
  addresses: { media_urls: ({ url }) => ({ config: { media_urls: [url] } }) }
}
