import type { Row } from "../gateway.ts"

/**
 * Whether the URL of a source accepts requests. The items of a provider source come by its channel, a schedule makes its own requests, and
 * messages come from a broker.
 */
export const isPosted = ({ delivery_mode, next_due_at, subscription_state }: Row<"Source">): boolean =>
  delivery_mode === undefined && next_due_at === undefined && subscription_state === undefined
