import { Effect } from "effect"
import type { DestinationTest } from "@tidegate/model/DestinationTest"

const unused = () => Effect.die("not part of this suite")

/** The result of a test delivery to a target that is away. */
const away: DestinationTest = {
  successful: false,
  error_code: "CONNECTION_REFUSED",
  error_message: "nobody is there",
  response_status: null,
  response_headers: null,
  body: null,
  body_encoding: "text",
  body_truncated: false,
  requested_url: "https://api.example.com/hooks",
  http_method: "POST",
  duration_ms: 1
}

/** A destination that no tunnel leads to, nor any workflow, that no consumer asks, and whose target is away. */
export const noTunnel = {
  Attach: () => Effect.succeed(null),
  Listen: () => Effect.succeed({ jobs: [], ended: "gone" as const }),
  Answer: unused,
  Pull: unused,
  Settle: unused,
  Send: unused,
  Test: () => Effect.succeed(away),
  Leave: () => Effect.void
}
