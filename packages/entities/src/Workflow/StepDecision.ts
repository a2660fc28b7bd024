import { Effect } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { StepDecision } from "@tidegate/model/WorkflowRun"
import type { Database } from "@tidegate/storage/Database"
import { decided, type DecidedBy, portsDecided } from "@tidegate/workflows/kinds/WaitStep"
import { type SignalledStep, type Signalling, signalStep } from "./StepSignal.ts"

export interface DecisionAsked extends SignalledStep {
  readonly approves: boolean
  readonly comment: string | null
  /** Who decides; null: an API key, or a person who uses a link. */
  readonly user_id: string | null
  /** Present for a person who uses a link, with the name that they gave. */
  readonly link?: { readonly name: string | null }
}

const whoOf = ({ link, user_id }: DecisionAsked): DecidedBy =>
  link === undefined
    ? { by: user_id === null ? "api_key" : "user", userId: user_id, name: null }
    : { by: "link", userId: null, name: link.name }

/** Ends the wait of a step by somebody's decision. */
export const decideStep = Effect.fnUntraced(function* (
  workflowId: string,
  signalling: Signalling,
  asked: DecisionAsked
): Effect.fn.Return<StepDecision, GatewayError, Database> {
  const { approves, comment, run_id, step_id } = asked
  const outputAt = (now: number) => decided(approves, comment, whoOf(asked), now)
  const at = yield* signalStep(workflowId, signalling, asked, "approval", (now) => ({
    output: outputAt(now),
    ports: portsDecided(approves)
  }))
  return { run_id, workflow_id: workflowId, step_id, ...outputAt(at) }
})
