import { Clock, Effect, Latch, Result, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { workflow } from "@tidegate/resources/Workflow"
import type { Database } from "@tidegate/storage/Database"
import { RunJournal } from "@tidegate/storage/RunJournal"
import { type DueRun, dueRuns, partsOf, readRunning, readVersion, type RunningWorkflow } from "@tidegate/storage/Runs"
import { catalogFor } from "@tidegate/storage/ActionCatalog"
import { Workflows } from "@tidegate/storage/Workflows"
import type { StepError } from "@tidegate/workflows/StepKind"
import { compileWorkflow, type Workflow } from "@tidegate/workflows/Workflow"
import { actorOf } from "../Actor.ts"
import { carryThrough } from "../CarryThrough.ts"
import { Lease } from "../Lease.ts"
import { shardOf } from "../Shards.ts"
import { abandoned } from "./RunRecord.ts"
import { carryOn, type Work } from "./RunWork.ts"
import { retryStep } from "./StepRetry.ts"
import { WorkflowEntity } from "./WorkflowProtocol.ts"

/** Runs that are read at once, with requests of so many bytes. */
const readAtOnce = { limit: 50, bytes: 16 * 1024 * 1024 }
/** Runs that are under way, with what they were made of: while there are so many, no more are read. */
const mostInHand = 100
/** What the runs of one workflow have outside of the process at once. */
const slotsEach = 10
/** Versions that runs are still on. */
const mostPlans = 16

interface Plan {
  readonly workflow: Workflow
  readonly name: string
}

const bytesOf = ({ body, headers }: DueRun): number => (body?.length ?? 0) + headers.length

const stopOf = ({ deleted, status }: RunningWorkflow): StepError | null => {
  if (deleted) return { code: "WORKFLOW_DELETED", message: "the workflow was deleted" }
  return status === "disabled" || status === "draft"
    ? { code: "WORKFLOW_DISABLED", message: `the workflow is ${status}` }
    : null
}

/**
 * The workflow's actor, which alone writes its row and its runs; but that a source, when it is deleted, takes itself out of the rows of its
 * workflows. Its commands take turns: of many changes of one version, the first is made and the others are told of it. Its memory is nothing
 * but the plans of versions: where runs are stands in their rows. It works while somebody has woken it.
 */
export const layer = WorkflowEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sharding = yield* Sharding.Sharding
    const lease = yield* Lease
    const stored = yield* Effect.context<Database | RunJournal>()
    const journal = yield* RunJournal
    const shard = shardOf(sharding, id)
    const turn = Semaphore.makeUnsafe(1)
    const slots = Semaphore.makeUnsafe(slotsEach)
    const plans = new Map<number, Plan>()

    const planOf = Effect.fnUntraced(function* (version: number) {
      const known = plans.get(version)
      if (known !== undefined) return known
      const definition = yield* readVersion(id, version)
      if (definition === null) return null
      const { edges, name, steps } = definition
      const compiled = compileWorkflow(steps, edges, yield* catalogFor(steps as never))
      if (Result.isFailure(compiled)) {
        yield* Effect.logError("a workflow's version does not compile any more", { workflow_id: id, version })
        return null
      }
      if (plans.size >= mostPlans) plans.delete(plans.keys().next().value!)
      const plan = { workflow: compiled.success, name }
      plans.set(version, plan)
      return plan
    })

    const inHand = new Set<string>()
    let bytesInHand = 0
    const hasRoom = (): boolean => inHand.size < mostInHand && bytesInHand < readAtOnce.bytes
    /** A run has ended, or come to a wait; or somebody has woken this. */
    const stirred = Latch.makeUnsafe()
    let woken = false
    let working = false

    const carry = (work: Work) =>
      carryOn(work).pipe(
        Effect.catchDefect((cause) =>
          Effect.logError("a run of a workflow broke down", { run_id: work.run.id, cause })
        ),
        Effect.ensuring(
          Effect.sync(() => {
            inHand.delete(work.run.id)
            bytesInHand -= bytesOf(work.run)
            stirred.openUnsafe()
          })
        )
      )

    /** Takes on what is due and not in hand; answers whether there may be more. */
    const takeOn = Effect.gen(function* () {
      const running = yield* readRunning(id)
      if (running === null || running.status === "paused" || !lease.isHeld(shard)) return false
      const now = yield* Clock.currentTimeMillis
      const runs = yield* dueRuns(shard, id, now, { ...readAtOnce, inHand: [...inHand] })
      const parts = Map.groupBy(
        yield* partsOf(runs.flatMap(({ id, parts }) => (parts > 0 ? [id] : []))),
        ({ run_id }) => run_id
      )
      const stop = stopOf(running)
      for (const run of runs) {
        const plan = yield* planOf(run.version)
        if (plan === null) {
          const error = stop ?? { code: "INTERNAL_ERROR", message: "the version that the run goes by cannot be read" }
          yield* journal.move(abandoned(run, error, now))
          continue
        }
        const about = { id, name: plan.name, version: run.version }
        inHand.add(run.id)
        bytesInHand += bytesOf(run)
        yield* Effect.forkChild(
          carry({ workflow: plan.workflow, about, run, parts: parts.get(run.id) ?? [], stop, slots })
        )
      }
      return runs.length === readAtOnce.limit
    }).pipe(
      Effect.catch((error) =>
        Effect.as(
          Effect.logWarning("a workflow's runs could not be read; the sweep comes back to them", {
            workflow_id: id,
            error
          }),
          false
        )
      )
    )

    /** While runs are in hand, those that come due go beside them: one that waits for a slow target keeps no other waiting. */
    const work = Effect.gen(function* () {
      let more = true
      while (more || woken || inHand.size > 0) {
        stirred.closeUnsafe()
        if ((more || woken) && hasRoom()) {
          woken = false
          more = yield* takeOn
        } else yield* stirred.await
      }
    }).pipe(
      Effect.provideContext(stored),
      Effect.ensuring(
        Effect.sync(() => {
          working = false
        })
      )
    )

    const client = yield* WorkflowEntity.client
    /** Goes on with the runs by what has changed; also when the message is lost, once the sweep comes by. */
    const rouse = Effect.ignore(Effect.timeout(client(id).Wake(undefined, { discard: true }), "1 second"))
    const around = <A, E>(command: Effect.Effect<A, E>) => Effect.tap(Semaphore.withPermit(turn, command), () => rouse)
    const commands = yield* actorOf(workflow, yield* Workflows, { around })
    return WorkflowEntity.of({
      ...commands,
      RetryStep: ({ payload }) => {
        const plan = (version: number) => Effect.map(planOf(version), (plan) => plan?.workflow ?? null)
        return around(carryThrough(Effect.provideContext(retryStep(id, shard, plan, payload), stored)))
      },
      // While it works its handler keeps it in memory.
      Wake: () =>
        Effect.suspend(() => {
          woken = true
          stirred.openUnsafe()
          if (working) return Effect.void
          working = true
          return work
        })
    })
  }),
  { concurrency: "unbounded" }
)
