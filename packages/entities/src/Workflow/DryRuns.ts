import { Clock, Context, Effect, Semaphore } from "effect"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { didYouMean } from "@tidegate/model/NearestName"
import type { WorkflowTest } from "@tidegate/model/WorkflowTest"
import { chainOf, isChain } from "@tidegate/resources/workflow/Chain"
import { checkDryRun } from "@tidegate/resources/workflow/DefinitionCheck"
import { mocksOf, storedSample, type WorkflowDryRunInput } from "@tidegate/resources/WorkflowDryRun"
import type { Database } from "@tidegate/storage/Database"
import { latestSample, sampleOfRequest } from "@tidegate/storage/reads/WorkflowSamples"
import { draftDefinition } from "@tidegate/storage/workflows/Drafts"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { query } from "@tidegate/storage/Transaction"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { queuedRun } from "@tidegate/workflows/RunState"
import { compileLabel, labelling } from "@tidegate/workflows/RunLabel"
import { onlyStep, rehearsalOf } from "@tidegate/workflows/Mocks"
import type { Workflow } from "@tidegate/workflows/Workflow"
import { factsOf, secretTextsOf } from "./RunRecord.ts"
import { StepLinks } from "./StepLinks.ts"
import { conduct } from "./DryRun.ts"
import { triggerOfSource } from "@tidegate/storage/channels/SourceTrigger"
import { type DryRunResult, reportOf } from "./DryRunReport.ts"

/** Tests of workflows: which workflow is run, and with which request. Nothing is stored. */

export interface Asked {
  readonly team_id: string
  /** Made by the caller. If the same request comes again, its calls are made with the same idempotency keys. */
  readonly run_id: string
  /** Whether the test uses the stored workflow of that id, or a graph in the request. */
  readonly stored: boolean
  readonly input: WorkflowDryRunInput
}

/** The tests that a process runs at once, and those of one team. The limit exists because a test holds its request in memory. */
const max = { process: 16, team: 4 }
/** How long further tests wait for a permit. */
const patience = "5 seconds"

interface TeamPermits {
  readonly permits: Semaphore.Semaphore
  /** Tests that hold a permit or wait for one. */
  tests: number
}

interface Rooms {
  readonly all: Semaphore.Semaphore
  readonly teams: Map<string, TeamPermits>
  /**
   * Only one test at a time reads its request: several in the same event-loop iteration would each use the whole event-loop
   * budget.
   */
  readonly reading: Semaphore.Semaphore
}

const Room = Context.Reference<Rooms>("@tidegate/entities/Workflow/DryRuns/Room", {
  defaultValue: () => ({
    all: Semaphore.makeUnsafe(max.process),
    teams: new Map(),
    reading: Semaphore.makeUnsafe(1)
  })
})

/** The permit to read a request. */
export const oneReading = Effect.map(Room, ({ reading }) => reading)

const taken = (permits: Semaphore.Semaphore) =>
  Effect.acquireRelease(permits.take(1), () => permits.release(1), { interruptible: true })

/** Fails closed when no permit becomes free, because all teams share the memory, and the caller can repeat the test. */
export const withRoom = <A, R>(
  team: string,
  effect: Effect.Effect<A, GatewayError, R>
): Effect.Effect<A, GatewayError, R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { all, teams } = yield* Room
      const own = teams.get(team) ?? { permits: Semaphore.makeUnsafe(max.team), tests: 0 }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          own.tests++
          teams.set(team, own)
        }),
        () =>
          Effect.sync(() => {
            if (--own.tests === 0) teams.delete(team)
          })
      )
      // A test waits for the process's permit only after it has its team's permit, so no team has more waiting tests than its
      // limit.
      yield* Effect.andThen(taken(own.permits), taken(all)).pipe(
        Effect.timeoutOrElse({
          duration: patience,
          orElse: () => fail("QUEUE_UNAVAILABLE", "too many tests are under way; repeat the request")
        })
      )
      return yield* effect
    })
  )

/** The tested graph: as stored, or as given in the request. */
const subjectOf = Effect.fnUntraced(function* (id: string, { input, stored, team_id }: Asked) {
  const { edges, source_id, steps } = input
  if (!stored) {
    return {
      about: { id, name: "test", version: 0 },
      steps: steps ?? [],
      edges: edges ?? chainOf(steps ?? []),
      run_label: null,
      source_id: source_id ?? null,
      batches: false
    }
  }
  const found = yield* (yield* Workflows).get(team_id, id)
  const batches = found.triggers?.batch != null
  if (input.draft === true) {
    const draft = yield* query(draftDefinition(team_id, id))
    return {
      about: { id, name: found.name, version: found.version },
      steps: draft.steps,
      edges: draft.edges as unknown as NonNullable<typeof edges>,
      run_label: draft.run_label,
      source_id: found.source_id,
      batches
    }
  }
  const written = { steps: steps ?? found.steps ?? [], edges: found.edges ?? [] }
  const staysChain = isChain({ steps: found.steps ?? [], edges: written.edges })
  return {
    about: { id, name: found.name, version: found.version },
    steps: written.steps,
    edges: edges ?? (staysChain ? chainOf(written.steps) : written.edges),
    run_label: found.run_label,
    source_id: found.source_id,
    batches
  }
})

/** A request with a larger body is not used as a sample, because a test cannot hold it. */
const largestSample = 10 * 1_048_576

const requestOf = Effect.fnUntraced(function* (
  { input, team_id }: Asked,
  source_id: string | null,
  now: Date
): Effect.fn.Return<Omit<DueRun, "id" | "version"> & { readonly received: boolean }, GatewayError, Database> {
  const fresh = {
    team_id,
    parts: 0,
    attempts: 1,
    kept: 0,
    found: 1,
    status: "queued" as const,
    created_at: now,
    due_at: now,
    carried: null,
    batch_id: null
  }
  const { request_id, trigger } = input
  if ((trigger ?? null) !== null) {
    return {
      ...fresh,
      ...storedSample(trigger!),
      request_id: newId(prefixes.request, now.getTime()),
      source_id: source_id ?? "",
      source_name: "test",
      ingested_at: now,
      presented: null,
      received: false
    }
  }
  if ((request_id ?? null) !== null) {
    return { ...fresh, ...(yield* query(sampleOfRequest(team_id, request_id!))), received: true }
  }
  const latest = source_id === null ? null : yield* query(latestSample(team_id, source_id, largestSample))
  if (latest !== null) return { ...fresh, ...latest, received: true }
  const message =
    source_id === null
      ? "there is no source whose last request could be taken: give trigger or request_id"
      : "the source has accepted no request whose payload is stored: give trigger or request_id"
  return yield* fail("SAMPLE_UNAVAILABLE", message, { source_id })
})

const positionOf = ({ plan }: Workflow, path: string, id: string) => {
  const ids = plan.map(({ step }) => step.id)
  const index = ids.indexOf(id)
  return index === -1
    ? Effect.fail(invalid([{ path, message: `names no step of the workflow${didYouMean(id, ids)}` }]))
    : Effect.succeed(index)
}

/** Runs a test to its end. `id`: the stored workflow; for a graph in the request, an id that no workflow has. */
export const tryWorkflow = (
  id: string,
  asked: Asked
): Effect.Effect<WorkflowTest, GatewayError, Database | Workflows> =>
  withRoom(
    asked.team_id,
    Effect.gen(function* () {
      const { input, run_id, stored, team_id } = asked
      const { about, batches, edges, run_label, source_id, steps } = yield* subjectOf(id, asked)
      const mocks = mocksOf(input)
      const { facts: factsAbout } = yield* Workflows
      const compiled = yield* query(checkDryRun({ steps, edges }, new Set(mocks.keys()), factsAbout(team_id)))
      for (const step of mocks.keys()) yield* positionOf(compiled, `mocks.${step}`.slice(0, 120), step)
      const only = (input.step_id ?? null) === null ? null : yield* positionOf(compiled, "step_id", input.step_id!)
      const now = yield* Clock.currentTimeMillis
      // The run is not stored, so its URLs lead to nothing.
      const links = (yield* StepLinks).of(compiled, { team_id: asked.team_id, workflow_id: about.id, run_id })
      const { facts, received, run } = yield* Semaphore.withPermit(
        (yield* Room).reading,
        Effect.gen(function* () {
          const { received, ...request } = yield* requestOf(asked, source_id, new Date(now))
          const whole = { ...request, id: run_id, version: about.version }
          // A test is a batch of one.
          const run: DueRun = batches ? { ...whole, batch: [whole] } : whole
          return { received, run, facts: yield* factsOf(run, about, links) }
        })
      )
      const live = input.mode === "live"
      const { simulated, workflow } = rehearsalOf(compiled, mocks, !live)
      const previews = input.include_previews !== false
      const tried = yield* conduct({
        workflow,
        facts,
        links,
        run,
        live,
        previews,
        ...(only === null
          ? { from: queuedRun(workflow), first: { type: "begun" as const } }
          : { from: onlyStep(workflow, only, mocks, now), first: { type: "recovered" as const } })
      })
      const template = compileLabel(run_label)
      const texts = yield* inSlices(secretTextsOf(facts, queuedRun(workflow), links))
      const label = template === null ? null : yield* inSlices(labelling(template, facts, texts))
      const { trigger } = yield* query(triggerOfSource(team_id, run.source_id))
      const asStored = stored && input.draft !== true && (input.steps ?? input.edges ?? null) === null
      const result: DryRunResult = {
        ...tried,
        workflow,
        simulated,
        only,
        about,
        run,
        label,
        facts,
        received,
        trigger,
        stored,
        asStored
      }
      return yield* reportOf(result, { live, previews })
    })
  )
