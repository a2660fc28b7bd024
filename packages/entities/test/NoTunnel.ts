import { Effect } from "effect"

const unused = () => Effect.die("not part of this suite")

/** A destination that no tunnel leads to, nor any workflow, and that no consumer asks. */
export const noTunnel = {
  Attach: () => Effect.succeed(null),
  Listen: () => Effect.succeed({ jobs: [], ended: "gone" as const }),
  Answer: unused,
  Pull: unused,
  Settle: unused,
  Send: unused,
  Leave: () => Effect.void
}
