import { Effect } from "effect"

const unused = () => Effect.die("not part of this suite")

/** A destination that no tunnel leads to. */
export const noTunnel = {
  Attach: () => Effect.succeed(null),
  Listen: () => Effect.succeed({ jobs: [], ended: "gone" as const }),
  Answer: unused,
  Leave: () => Effect.void
}
