import * as Steps from "../../support/SevenSteps.ts"
import type { Received } from "../../support/Target.ts"
import { answersWithinMs, type KilledGraph, type Seen, sharedKeys } from "../WorkflowKills.ts"

const workflows = 8

const perRun = Object.values(Steps.usual).reduce((sum, times) => sum + times, 0)

/** Each run must have the same result as the undisturbed run. */
const judge = (received: ReadonlyArray<Received>, { faultsOfCalls, stored, tokens, undisturbed }: Seen) => {
  const expected = JSON.stringify(Steps.comeTo(undisturbed, "undisturbed"))
  const byToken = Map.groupBy(received, Steps.tokenOf)
  const faults = stored.flatMap((run) => {
    const token = tokens.get(run.requestId)
    if (token === undefined || run.outcome === null) return []
    const requests = byToken.get(token) ?? []
    const cameTo = JSON.stringify(Steps.comeTo(run, token))
    const calls = Object.entries(Steps.usual).map(([step, usual]) => ({
      what: step,
      usual,
      requests: requests.filter((one) => Steps.stepOf(one) === step),
      endedAt: run.ended.get(Steps.steps.indexOf(step as Steps.Step))!.at
    }))
    return [
      ...run.faults,
      ...(cameTo === expected ? [] : [`came to ${cameTo}`]),
      ...faultsOfCalls(run, requests, calls)
    ].map((fault) => `${run.id}: ${fault}`)
  })
  const shared = sharedKeys(received, (one) => `${Steps.tokenOf(one)} ${Steps.stepOf(one)}`)
  return {
    faults: [...faults, ...shared],
    figures: { usualRequests: stored.length * perRun, sharedKeys: shared.length }
  }
}

/** Branches, a retry, a delay, a failure that the run continues after, and a join. */
export const seven: KilledGraph = {
  name: "seven",
  rate: 15,
  bodyOf: Steps.bodyOf,
  begin: async ({ create }) => {
    const target = await Steps.echoing(answersWithinMs)
    const made: Array<{ readonly source: string; readonly workflow: string }> = []
    for (let n = 0; n < workflows; n++) made.push(await Steps.create(create, `orders-${n}`, target.origin))
    return { target, workflows: made, judge: (seen) => Promise.resolve(judge(target.received, seen)) }
  }
}
