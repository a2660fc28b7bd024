import type { Row } from "../gateway.ts"

type Status = Row<"Event">["status"]

/** Events that are not finished: the name that the URL of their list has for all of their statuses, and these. */
export const waiting = { name: "WAITING", statuses: ["QUEUED", "SCHEDULED", "HOLD"] } as const

const isWaiting = new Set<string>([waiting.name, ...waiting.statuses])

/** Whether a status, or what the URL has for several, is one of events that wait. */
export const isOfWaiting = (status: string): boolean => isWaiting.has(status)

/** The statuses for what the URL has. */
export const statusesOf = (status: string): Array<Status> =>
  status === waiting.name ? [...waiting.statuses] : [status as Status]
