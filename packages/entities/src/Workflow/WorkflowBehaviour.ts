import { Effect, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { Ingress } from "@tidegate/model/Ingress"
import { workflow } from "@tidegate/resources/Workflow"
import { Actions } from "@tidegate/storage/workflows/Actions"
import type { Database } from "@tidegate/storage/Database"
import type { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import { Sources } from "@tidegate/storage/control/Sources"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { actorOf } from "../Actor.ts"
import { carryThrough, withoutDefects } from "../CarryThrough.ts"
import { Lease } from "../Lease.ts"
import { wakeUps } from "../dispatch/WakeUps.ts"
import * as LocalEntities from "../dispatch/LocalEntities.ts"
import { shardOf } from "../Shards.ts"
import { makeArrivals } from "./Arrivals.ts"
import { makeFailureRuns } from "./FailureRuns.ts"
import { makeAlarm } from "./Alarm.ts"
import { plansOf } from "./Plans.ts"
import { answerOf } from "./RunAnswering.ts"
import { runPump } from "./RunPump.ts"
import { cancelChild, cancelRun, rerun } from "./RunSteering.ts"
import { changeOneStep, publish, save } from "./Saving.ts"
import { checkDraft } from "./DraftCheck.ts"
import { receiveCallback } from "./StepCallback.ts"
import { decideStep } from "./StepDecision.ts"
import { retryStep } from "./StepRetry.ts"
import { tryWorkflow } from "./DryRuns.ts"
import { WorkflowEntity } from "./WorkflowProtocol.ts"

/**
 * The workflow's actor. Only it writes the workflow's row and runs, with one exception: a source that is deleted removes itself
 * from the rows of its workflows. Commands run one after the other: of several changes of one version the first is made, and the
 * others get the conflict as their answer. The actor keeps only compiled plans in memory; the state of runs is in their rows. It
 * works after a wake-up notification until no work is left.
 */
export const layer = WorkflowEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sharding = yield* Sharding.Sharding
    const lease = yield* Lease
    const stored = yield* Effect.context<Database | RunJournal>()
    const shard = shardOf(sharding, id)
    const { wakeWorkflow } = yield* wakeUps
    const oneAtATime = Semaphore.makeUnsafe(1)
    const plans = plansOf(id)
    const alarm = yield* makeAlarm(Effect.suspend(() => wakeLater))
    const pump = yield* runPump(id, shard, plans, () => lease.isHeld(shard), alarm)
    const work = Effect.provideContext(pump.work, stored)
    yield* (yield* LocalEntities.Workflows).add(id, () => (pump.notify() ? true : undefined))
    const stores = yield* Effect.context<Actions | Database | Ingress | Sources | Workflows>()
    const client = yield* WorkflowEntity.client
    /** Continues the runs after a change. If this message is lost, the poller does it. */
    const wakeLater = Effect.ignore(Effect.timeout(client(id).Wake(undefined, { discard: true }), "1 second"))
    const around = <A, E>(command: Effect.Effect<A, E>) =>
      Effect.tap(Semaphore.withPermit(oneAtATime, command), () => wakeLater)
    /** The graph of a version. */
    const workflowOf = (team_id: string) => (version: number) =>
      Effect.map(plans.planOf(team_id, version), (plan) => plan?.workflow ?? null)
    const signalling = (team_id: string) => ({ planOf: workflowOf(team_id), tell: pump.tell })
    const arrivals = makeArrivals({
      workflowId: id,
      shard,
      mayGoOn: () => lease.isHeld(shard),
      signalling,
      oneAtATime,
      cancel: (team_id, run_id) => Effect.asVoid(cancelChild(id, { team_id, run_id }, pump.abort)),
      failed: makeFailureRuns({ workflowId: id, shardOf: (of) => shardOf(sharding, of), wake: wakeWorkflow }),
      signalled: () => wakeLater
    })
    const commands = yield* actorOf(workflow, yield* Workflows, { around })
    return WorkflowEntity.of({
      ...commands,
      Test: ({ payload }) => withoutDefects(Effect.provideContext(tryWorkflow(id, payload), stores)),
      Save: ({ payload }) => around(carryThrough(Effect.provideContext(save(id, payload), stores))),
      ChangeStep: ({ payload }) => around(carryThrough(Effect.provideContext(changeOneStep(id, payload), stores))),
      PublishDraft: ({ payload }) => around(carryThrough(Effect.provideContext(publish(id, payload), stores))),
      CheckDraft: ({ payload }) => withoutDefects(Effect.provideContext(checkDraft(id, payload), stores)),
      RetryStep: ({ payload }) =>
        around(carryThrough(Effect.provideContext(retryStep(id, shard, workflowOf(payload.team_id), payload), stored))),
      Answer: ({ payload }) => Effect.provideContext(answerOf(id, workflowOf(payload.team_id), payload), stored),
      CancelRun: ({ payload }) =>
        around(
          Effect.tap(carryThrough(Effect.provideContext(cancelRun(id, payload, pump.abort), stored)), () =>
            Effect.sync(() => pump.left(payload.run_id))
          )
        ),
      Rerun: ({ payload }) =>
        around(carryThrough(Effect.provideContext(rerun(id, shard, workflowOf(payload.team_id), payload), stored))),
      Decide: ({ payload }) =>
        around(carryThrough(Effect.provideContext(decideStep(id, signalling(payload.team_id), payload), stored))),
      Receive: ({ payload }) =>
        around(carryThrough(Effect.provideContext(receiveCallback(id, signalling(payload.team_id), payload), stored))),
      Arrive: () => Effect.provideContext(arrivals.work, stored),
      // While it works, this handler keeps the actor in memory.
      Wake: () => work
    })
  }),
  { concurrency: "unbounded" }
)
