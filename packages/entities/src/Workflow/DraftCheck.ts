import { Clock, Effect, Option, type Schema, Semaphore } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { WorkflowDraftCheck } from "@tidegate/model/WorkflowDraft"
import { checkDryRun } from "@tidegate/resources/workflow/DefinitionCheck"
import type { Database } from "@tidegate/storage/Database"
import { latestRequests, sampleOfRequest } from "@tidegate/storage/reads/WorkflowSamples"
import { query } from "@tidegate/storage/Transaction"
import { draftDefinition } from "@tidegate/storage/workflows/Drafts"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { rehearsalOf } from "@tidegate/workflows/Mocks"
import { queuedRun, type RunState } from "@tidegate/workflows/RunState"
import type { Workflow } from "@tidegate/workflows/Workflow"
import { conduct, type DryRunOutcome } from "./DryRun.ts"
import { oneReading, withRoom } from "./DryRuns.ts"
import { factsOf } from "./RunRecord.ts"

/** Compares a draft with the live definition: stored requests run by both as dry runs, one after the other. */

/** Limits of a check: its time, the bytes of all requests that it reads, and those of one request. */
const max = { ms: 60_000, bytes: 64 * 1_048_576, body: 4 * 1_048_576 }
const maxDifferent = 20

interface Asked {
  readonly team_id: string
  /** Made by the caller. */
  readonly run_id: string
  readonly limit: number
}

type Checked = WorkflowDraftCheck["requests"][number]

const outcomeOf = ({ state, transitions }: DryRunOutcome): Checked["live"] => {
  const error = transitions.at(-1)?.error ?? null
  return {
    status: state.status,
    outcome: state.outcome,
    error_code: error?.code ?? null,
    error_step_id: error?.stepId ?? null
  }
}

/** How each step ended, by its id. A step that was not reached is absent. */
const endsOf = ({ plan }: Workflow, { steps }: RunState): ReadonlyMap<string, string> =>
  new Map(
    plan.flatMap(({ step }, index) => {
      const of = steps[index]
      return of === undefined ? [] : [[step.id, `${of.status} ${of.ports.join(" ")}`] as const]
    })
  )

const differentSteps = (live: ReadonlyMap<string, string>, draft: ReadonlyMap<string, string>) =>
  [...new Set([...live.keys(), ...draft.keys()])].filter((id) => live.get(id) !== draft.get(id)).slice(0, maxDifferent)

export const checkDraft = (
  id: string,
  { limit, run_id, team_id }: Asked
): Effect.Effect<WorkflowDraftCheck, GatewayError, Database | Workflows> =>
  withRoom(
    team_id,
    Effect.gen(function* () {
      const workflows = yield* Workflows
      const live = yield* workflows.get(team_id, id)
      const { source_id } = live
      if (source_id === null) {
        return yield* fail("SAMPLE_UNAVAILABLE", "the workflow has no source whose requests could be tried", {
          source_id
        })
      }
      const draft = yield* query(draftDefinition(team_id, id))
      const about = { id, name: live.name, version: live.version }
      const compiled = (graph: Parameters<typeof checkDryRun>[0]) =>
        Effect.map(
          query(checkDryRun(graph, new Set(), workflows.facts(team_id))),
          (compiled) => rehearsalOf(compiled, new Map(), true).workflow
        )
      const definitions = {
        live: yield* compiled({ steps: live.steps ?? [], edges: live.edges ?? [] }),
        draft: yield* compiled(
          draft as unknown as { steps: ReadonlyArray<Schema.Json>; edges: ReadonlyArray<Schema.Json> }
        )
      }
      const found = yield* query(latestRequests(team_id, source_id, { limit, largest: max.body }))

      const checkOne = Effect.fnUntraced(function* (request_id: string) {
        const now = yield* Clock.currentTimeMillis
        const sample = yield* Effect.option(query(sampleOfRequest(team_id, request_id)))
        if (Option.isNone(sample)) return null
        const run: DueRun = {
          ...sample.value,
          id: run_id,
          team_id,
          version: live.version,
          parts: 0,
          attempts: 1,
          kept: 0,
          found: 1,
          status: "queued",
          created_at: new Date(now),
          due_at: new Date(now),
          carried: null,
          batch_id: null,
          ...(live.triggers?.batch == null ? {} : { batch: [{ ...sample.value, request_id }] })
        }
        const facts = yield* Semaphore.withPermit(yield* oneReading, factsOf(run, about))
        const tried = (workflow: Workflow) =>
          conduct({
            workflow,
            facts,
            run,
            live: false,
            previews: false,
            from: queuedRun(workflow),
            first: { type: "begun" }
          })
        const [before, after] = [yield* tried(definitions.live), yield* tried(definitions.draft)]
        const [was, is] = [outcomeOf(before), outcomeOf(after)]
        const different_steps = differentSteps(
          endsOf(definitions.live, before.state),
          endsOf(definitions.draft, after.state)
        )
        const same = different_steps.length === 0 && JSON.stringify(was) === JSON.stringify(is)
        const received_at = sample.value.ingested_at.toISOString()
        return { request_id, received_at, same, live: was, draft: is, different_steps } satisfies Checked
      })

      const requests: Array<Checked> = []
      const until = (yield* Clock.currentTimeMillis) + max.ms
      let [bytes, skipped, complete] = [0, 0, true]
      for (const request of found) {
        const left = until - (yield* Clock.currentTimeMillis)
        bytes += request.size
        // The answer has what was tried within the limits, and says that it is not all.
        const checked =
          left <= 0 || bytes > max.bytes ? Option.none() : yield* Effect.timeoutOption(checkOne(request.id), left)
        if (Option.isNone(checked)) {
          complete = false
          break
        }
        if (checked.value === null) skipped++
        else requests.push(checked.value)
        yield* Effect.yieldNow
      }
      const same = requests.filter((request) => request.same).length
      return {
        workflow_id: id,
        version: live.version,
        checked: requests.length,
        same,
        different: requests.length - same,
        skipped,
        complete,
        requests
      }
    })
  )
