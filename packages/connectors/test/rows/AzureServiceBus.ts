import { authOf, tokenAddresses, tokenNotReached } from "./Auths.ts"
import type { Answered, ConformanceRow } from "./Row.ts"

/** As the service says it: the detail begins with a code of its own. */
const no = (status: number, detail: string): Answered => ({
  status,
  headers: { "content-type": "application/xml; charset=utf-8" },
  body: `<Error><Code>${status}</Code><Detail>${detail}. TrackingId:1, SystemTracker:orders, Timestamp:2026-01-02T03:04:05</Detail></Error>`
})

const passing = { code: "BAD_RESPONSE", final: false } as const
const lasting = { code: "BAD_RESPONSE", final: true } as const

const tokens = tokenAddresses({ endpoint: "https://my-shop.servicebus.windows.net", entity: "orders" })

export const azureServiceBus: ConformanceRow = {
  type: "AZURE_SERVICE_BUS",
  mock: (origin) => ({ config: { endpoint: origin } }),
  accepted: { status: 201 },
  failures: {
    credentials: [
      { ...no(401, "40103: Invalid authorization token signature"), code: "AUTH_REJECTED", final: false },
      { ...no(401, "ExpiredToken: The token is expired"), code: "AUTH_REJECTED", final: false }
    ],
    tooMuch: [
      { ...no(429, "SubCode=42900. The request was terminated because the entity is being throttled"), ...passing },
      { ...no(503, "50002: The request was terminated because the namespace is being throttled"), ...passing },
      { ...no(403, "40300: The maximum entity size has been reached or exceeded"), ...passing }
    ],
    refused: [
      { ...no(403, "MessageSizeExceeded: The received message is too large"), ...lasting },
      { ...no(400, "40000: The property is not valid"), ...lasting },
      { ...no(413, "41300: Too large"), ...lasting },
      // A queue may be made while retries last.
      { ...no(404, "SubCode=40400. The messaging entity could not be found"), ...passing },
      { ...no(410, "41000: No service is hosted at the specified address"), ...passing },
      // Something else has answered: the service answers 201.
      { status: 200, body: "ok", ...passing }
    ],
    trouble: [{ ...no(500, "50000: Internal error"), ...passing }]
  },
  addresses: {
    endpoint: ({ url }) => ({ config: { endpoint: url, entity: "orders" }, auth: authOf("AZURE_SAS_KEY") }),
    "auth.token_url": tokens["auth.token_url"]!
  },
  notReached: tokenNotReached,
  triedWith: "recorded protocol: tokens that Azure's own client signed, and a mock server"
}
