import type { SourceProvider } from "../src/SourceProvider.ts"

/** A row of a provider with accounts, whose services are at these addresses. */
export const providerRow = (api: string, oauth: string): SourceProvider => ({
  key: "test_provider",
  name: "Test provider",
  description: "A provider of the test.",
  icon_key: "flask",
  manifest_version: "1.0.0",
  account: {
    connections: ["oauth2", "api_key"],
    origin: api,
    selfHosted: true,
    oauth2: {
      authorizationUrl: `${oauth}/auth`,
      tokenUrl: `${oauth}/token`,
      revocationUrl: `${oauth}/token/revocation`,
      scopes: ["openid", "offline_access", "events:write"],
      parameters: { prompt: "consent" }
    },
    fields: [
      { key: "token", label: "Key", type: "secret", required: true, help: null },
      { key: "workspace", label: "Workspace", type: "text", required: false, help: null }
    ],
    headers: (token) => ({ authorization: `Bearer ${token}` }),
    identity: { path: "/me", id: ["id"], name: ["login"], email: ["email"] }
  },
  triggers: []
})
