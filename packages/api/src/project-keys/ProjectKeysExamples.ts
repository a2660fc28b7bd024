import { at, ids, times } from "@tidegate/resources/ExampleIds"

/** The examples of project keys. */

const id = `pak_${"0123456789abcdef".repeat(2)}`

export const projectKey = {
  id,
  team_id: ids.team,
  name: "ci",
  masked_key: "gwp_7Qm2Xc9A_****",
  status: "active",
  scopes: ["control:read", "control:execute"],
  execute_grants: ["POST:/v1/events/:id/retry"],
  rate_limit_per_minute: 240,
  last_used_at: null,
  secret_last_rotated_at: at,
  revoked_at: null,
  expires_at: null,
  legacy_project_secret: false,
  created_by_user_id: "usr_demo",
  ...times
} as const

export const newProjectKey = { ...projectKey, api_key: "gwp_7Qm2Xc9A_EXAMPLEexampleEXAMPLEexample00002JcXwk" } as const

export const keyDecisions = {
  id: 1042,
  key_id: id,
  team_id: ids.team,
  route_key: "POST:/v1/events/:id/retry",
  permission: "execute",
  decision: "denied",
  reason: "grant_missing",
  count: 17,
  first_seen_at: at,
  last_seen_at: "2026-01-01T00:04:40.000Z",
  created_at: at
} as const
