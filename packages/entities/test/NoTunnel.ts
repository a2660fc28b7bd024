import { Effect } from "effect"

const unused = () => Effect.die("not part of this suite")

/** A destination that no tunnel leads to, nor any workflow. */
export const noTunnel = {
  Attach: () => Effect.succeed(null),
  Listen: () => Effect.succeed({ jobs: [], ended: "gone" as const }),
  Answer: unused,
  Send: unused,
  Leave: () => Effect.void
}
