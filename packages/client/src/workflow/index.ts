import { Flow, type Settings } from "./Flow.ts"
import type { Triggers } from "./Triggers.ts"

export { Flow, type Refs, type WrittenWorkflow } from "./Flow.ts"
export { or, type Ref, type Templated, text } from "./Reference.ts"

type Schedules = NonNullable<Triggers<unknown>["schedule"]>

/** The body of what a schedule begins a run with. */
export interface Scheduled {
  readonly scheduled_at: string
  readonly cron: string
  readonly timezone: string
}

/** Begins a workflow: its name, and what begins its runs. */
export const workflow = (name: string, settings: Settings = {}) => {
  const begin = <Body>(begun: object): Flow<Body, {}> =>
    new Flow({
      written: { name, ...settings, ...begun },
      steps: [],
      edges: [],
      ends: [{ step: "trigger" }],
      list: null
    })
  return {
    /**
     * Requests of a source (`src_…`) begin runs. `Body` is the type of their bodies; without it a body may have any member.
     */
    on: <Body = unknown>(source_id: string) => begin<Body>({ source_id }),
    /** Calls of the API and other workflows begin runs. `Body` is the type of the `body` that they give. */
    onCall: <Body = unknown>() => begin<Body>({ source_id: null, triggers: {} }),
    /** The times of one or more schedules begin runs. */
    onSchedule: (...schedule: Schedules) => begin<Scheduled>({ source_id: null, triggers: { schedule } })
  }
}
