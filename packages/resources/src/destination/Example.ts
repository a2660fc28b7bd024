import { ids, times } from "../ExampleIds.ts"

export const example = {
  body: {
    name: "orders-api",
    type: "HTTP",
    config: {
      url: "https://api.example.com/hooks",
      rate_limit: 10,
      rate_limit_period: "second",
      auth_type: "CUSTOM_HEADER",
      auth: { header_name: "x-token", value: "known-to-the-api" }
    }
  },
  record: {
    id: ids.destination,
    team_id: ids.team,
    name: "orders-api",
    description: null,
    type: "HTTP",
    config: {
      url: "https://api.example.com/hooks",
      http_method: null,
      path_forwarding_disabled: false,
      forward_credentials: null,
      rate_limit: 10,
      rate_limit_period: "second",
      max_concurrency: null,
      timeout_ms: null,
      client_certificate: null,
      client_key: null,
      server_ca: null,
      client_certificate_expires_at: null,
      auth_type: "CUSTOM_HEADER",
      auth: { header_name: "x-token", value: "****-api" }
    },
    disabled_at: null,
    held_until: null,
    attempts_24h_count: 42,
    attempts_24h_bins: [0, 0, 1, 4, 20, 17],
    ...times
  }
} as const
