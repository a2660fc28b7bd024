import { ids, times } from "../ExampleIds.ts"

export const example = {
  body: {
    name: "shop",
    description: "Orders of the shop",
    type: "WEBHOOK",
    config: {
      auth_type: "HMAC",
      auth: { webhook_secret_key: "shared-with-the-shop", header_key: "x-shop-signature", prefix: "sha256=" }
    }
  },
  patch: { description: "Orders of the new shop" },
  record: {
    id: ids.source,
    team_id: ids.team,
    name: "shop",
    description: "Orders of the shop",
    type: "WEBHOOK",
    input_type: "webhook",
    status: "enabled" as const,
    url: `https://hooks.example.com/e/${ids.source}`,
    config: {
      auth_type: "HMAC",
      auth: {
        webhook_secret_key: "****shop",
        header_key: "x-shop-signature",
        algorithm: "sha256",
        encoding: "hex",
        prefix: "sha256="
      },
      allowed_http_methods: ["POST", "PUT", "PATCH", "DELETE"],
      custom_response: null,
      mode: "webhook",
      proxy: null,
      chat_defer_ephemeral: false,
      rate_limit: null,
      rate_limit_period: null
    },
    disabled_at: null,
    ...times
  }
} as const
