import * as Steps from "../../support/JoinedSteps.ts"
import type { StoredRun } from "../../support/StoredRuns.ts"
import type { Received } from "../../support/Target.ts"
import { waitUntil } from "../../support/Waiting.ts"
import { answersWithinMs, type KilledGraph, type Rig, type Seen, sharedKeys, type Verdict } from "../WorkflowKills.ts"

const workflows = 8

/** Calls the URL at the edge until the edge has answered that the callback is stored, or that there was one before. */
const callBack = async ({ gateways }: Rig, callbackUrl: string, token: string): Promise<void> => {
  const { pathname, search } = new URL(callbackUrl)
  let answered = 0
  await waitUntil(
    "a callback is taken",
    async () => {
      const headers = { "content-type": "application/json" }
      const body = JSON.stringify({ token })
      answered = (await gateways.call("edge", "POST", `${pathname}${search}`, { headers, body })).status
      return answered === 200 || answered === 410
    },
    { everyMs: 250, seen: () => answered }
  )
}

const placeOf = (step: Steps.Step): number => Steps.steps.indexOf(step)

/** The step of the run in whose time a call is made: a called workflow ends before the step that has called it. */
const stepOf = (call: string): Steps.Step => (call === "parcel" ? "ship" : (call.split("/")[0] as Steps.Step))

/** What a run comes to. */
const comeTo = ({ outcome, status, steps }: StoredRun) => {
  const { items } = (steps.get(placeOf("each"))?.output ?? {}) as {
    readonly items?: ReadonlyArray<{ readonly body: { readonly element: number } } | null>
  }
  return {
    status,
    outcome,
    steps: Steps.steps.map((step) => steps.get(placeOf(step))?.status),
    elements: items?.map((item) => item?.body.element)
  }
}

const expectedOf = (token: string) => {
  const isFailing = Steps.fails(token)
  const ends = Steps.steps.map((step) => {
    if (step === "confirm") return isFailing ? "failed" : "succeeded"
    return step === "release" || step === "refund" ? (isFailing ? "succeeded" : "skipped") : "succeeded"
  })
  return {
    status: isFailing ? "failed" : "succeeded",
    outcome: isFailing ? "failed" : "completed",
    steps: ends,
    elements: [...Steps.elements]
  }
}

const faultsOfRun = (
  run: StoredRun,
  token: string,
  requests: ReadonlyArray<Received>,
  faultsOfCalls: Seen["faultsOfCalls"]
): Array<string> => {
  const cameTo = JSON.stringify(comeTo(run))
  if (cameTo !== JSON.stringify(expectedOf(token))) return [...run.faults, `came to ${cameTo}`]
  const byCall = Map.groupBy(requests, Steps.callOf)
  const usual = Steps.usualCalls(token)
  const calls = usual.map(({ call, usual }) => ({
    what: call,
    usual,
    requests: byCall.get(call) ?? [],
    endedAt: run.ended.get(placeOf(stepOf(call)))!.at
  }))
  const others = [...byCall.keys()].filter((call) => usual.every((known) => known.call !== call))
  // The step that ended last is undone first.
  const [refund, release] = [byCall.get("refund")?.[0], byCall.get("release")?.[0]]
  const isInOrder = refund === undefined || release === undefined || refund.at <= release.at
  return [
    ...run.faults,
    ...faultsOfCalls(run, requests, calls),
    ...others.map((call) => `${call} came, and should not have`),
    ...(isInOrder ? [] : ["was undone in the wrong order"])
  ]
}

const judge = async (
  { gateways }: Rig,
  made: ReadonlyArray<{ readonly workflow: string; readonly called: string }>,
  received: ReadonlyArray<Received>,
  { faultsOfCalls, stored, tokens }: Seen
): Promise<Verdict> => {
  const byToken = Map.groupBy(received, (one) => Steps.sentIn(one).token)
  // A run whose request was not acknowledged is recognised by the calls of its steps.
  const tokenOfRun = new Map(received.map((one) => [one.headers["x-gateway-run-id"], Steps.sentIn(one).token]))
  const ofRuns = stored.flatMap((run) => {
    if (run.outcome === null) return [`${run.id}: has not ended`]
    const token = tokenOfRun.get(run.id)
    if (token === undefined) return [`${run.id}: none of its steps called`]
    const acknowledged = tokens.get(run.requestId) ?? token
    const mixed = acknowledged === token ? [] : [`called with ${token}, and its request had ${acknowledged}`]
    const faults = faultsOfRun(run, token, byToken.get(token) ?? [], faultsOfCalls)
    return [...mixed, ...faults].map((fault) => `${run.id}: ${fault}`)
  })

  const count = async (statement: string, of: ReadonlyArray<string>) =>
    Number((await gateways.query(statement, [of]))[0]!["n"])
  const [main, called] = [made.map(({ workflow }) => workflow), made.map((one) => one.called)]
  const storedValues = await count(
    "select sum((value #>> '{}')::int)::int as n from workflow_values where workflow_id = any($1) and key = 'runs'",
    main
  )
  const childRuns = await count(
    "select count(*)::int as n from workflow_runs where workflow_id = any($1) and outcome = 'completed'",
    called
  )
  const begun = await count("select count(*)::int as n from workflow_runs where workflow_id = any($1)", called)
  const callers = await count(
    "select count(distinct parent_run_id)::int as n from workflow_children where workflow_id = any($1)",
    main
  )
  const shared = sharedKeys(received, (one) => `${Steps.sentIn(one).token} ${Steps.callOf(one)}`)
  const figures = {
    usualRequests: [...byToken.keys()].flatMap(Steps.usualCalls).reduce((sum, { usual }) => sum + usual, 0),
    sharedKeys: shared.length,
    storedValues,
    childRuns,
    undoneRuns: stored.filter((run) => run.steps.get(placeOf("release"))?.status === "succeeded").length
  }
  const books = Object.entries({ storedValues, childRuns, begun, callers }).flatMap(([what, n]) =>
    n === stored.length ? [] : [`${what}: ${n} for ${stored.length} runs`]
  )
  return { faults: [...books, ...shared, ...ofRuns], figures }
}

/** A callback, a called workflow, a list in parallel, a stored value, retries, and an undo in a fifth of the runs. */
export const joined: KilledGraph = {
  name: "joined",
  rate: 8,
  bodyOf: Steps.bodyOf,
  begin: async (rig) => {
    const failures: Array<string> = []
    const target = await Steps.answering(answersWithinMs, (url, token) => {
      callBack(rig, url, token).catch((error: unknown) => failures.push(`${token}: ${String(error)}`))
    })
    const made: Array<Awaited<ReturnType<typeof Steps.create>>> = []
    for (let n = 0; n < workflows; n++) made.push(await Steps.create(rig.create, `joined-${n}`, target.origin))
    return {
      target,
      workflows: made,
      judge: async (seen) => {
        const { faults, figures } = await judge(rig, made, target.received, seen)
        return { faults: [...failures, ...faults], figures }
      }
    }
  }
}
