import type { ReactNode } from "react"
import type { Row } from "../gateway.ts"
import { Time } from "./Time.tsx"

/** The counts of messages by their result, in one line. */
const messagesOf = ({ duplicate_count, rejected_count, stored_count }: NonNullable<State>): string =>
  `${stored_count} stored, ${duplicate_count} delivered again, ${rejected_count} rejected`

type State = Row<"Source">["subscription_state"]

/** The state of a source's subscription, as facts of the source's page. Empty for a source without a subscription. */
export const subscriptionFacts = (state: State): ReadonlyArray<readonly [name: string, value: ReactNode]> => {
  if (state === undefined) return []
  const { connected_at, last_error, last_error_at, last_message_at, last_rejection, status } = state
  return [
    ["Subscription", status],
    ["Connected since", connected_at === null ? undefined : <Time key="connected" at={connected_at} precise />],
    ["Last error", last_error ?? undefined],
    ["Last error at", last_error_at === null ? undefined : <Time key="failed" at={last_error_at} precise />],
    ["Messages", messagesOf(state)],
    ["Last message", last_message_at === null ? undefined : <Time key="message" at={last_message_at} precise />],
    ["Last rejection", last_rejection ?? undefined]
  ]
}
