import { microsoftGraphHandshake } from "../Handshakes.ts"
import type { Provider } from "../Provider.ts"
import { isJsonObject, jsonBody, sameText } from "./Presented.ts"
import { answer, apiKey } from "./settings.ts"

/**
 * https://learn.microsoft.com/graph/change-notifications-delivery-webhooks: no signature; each notification repeats the
 * `clientState` of its subscription. One batch may hold notifications of several subscriptions, so all of them must carry it: one wrong
 * notification refuses the batch.
 */
export const microsoftGraph: Provider = {
  types: ["MICROSOFT_GRAPH"],
  authType: "API_KEY",
  settings: [{ ...apiKey, aliases: ["secret", "webhook_secret_key", "client_state", "clientState"] }],
  answer: answer("2xx", 3),
  verification: {
    kind: "code",
    age: null,
    compile: ({ api_key = "" }) => {
      if (api_key === "") return null
      return ({ body }) => {
        const notifications: unknown = jsonBody(body)?.["value"]
        if (!Array.isArray(notifications) || notifications.length === 0) return false
        return notifications.every((notification: unknown) => {
          const state = isJsonObject(notification) ? notification["clientState"] : undefined
          return typeof state === "string" && sameText(state, api_key)
        })
      }
    }
  },
  handshake: microsoftGraphHandshake
}
