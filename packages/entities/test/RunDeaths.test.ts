import { expect, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Transformations } from "@tidegate/storage/control/Transformations"
import { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import { readKept } from "@tidegate/storage/workflows/WorkflowValues"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { createDestination, team, unique } from "../../storage/test/controlPlane.ts"
import { makeStoreStep } from "../src/Workflow/effects/StoreEffect.ts"
import { makeWaitStep } from "../src/Workflow/effects/WaitEffect.ts"
import { makeWorkflowStep } from "../src/Workflow/effects/WorkflowEffect.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { accept, createSource } from "./AwaitedSource.ts"
import { later } from "./LaterRuns.ts"
import { create, executors, from, processOf, receive, runOf, trim, wake, world } from "./RunsWorld.ts"

/**
 * A run with steps of each kind, whose process dies before and after each of its commits in turn. The next process goes on from the rows.
 * The run has to come to what a run comes to that nobody disturbed.
 */

/** The life of one process. From its death on, nothing of it is carried out. */
class Life {
  readonly died = Deferred.makeUnsafe<void>()
  readonly buried = Deferred.makeUnsafe<void>()
  readonly commits: Array<string> = []
  isDead = false
  private readonly diesAt: number
  private readonly when: "before" | "after"

  /** `diesAt`: at which of its commits, counted from 1. */
  constructor(diesAt = Infinity, when: "before" | "after" = "before") {
    this.diesAt = diesAt
    this.when = when
  }

  /** What is asked of a dead process never ends, until it is buried: some of it cannot be interrupted. */
  private readonly end = Effect.suspend(() => {
    this.isDead = true
    return Deferred.succeed(this.died, undefined).pipe(
      Effect.andThen(Deferred.await(this.buried)),
      Effect.andThen(Effect.interrupt)
    )
  })

  /** The places before and after a commit, or a call, at which the process may die. */
  around(name: string) {
    const index = this.isDead ? 0 : this.commits.push(name)
    const at = (when: "before" | "after") =>
      Effect.suspend(() => (this.isDead || (index === this.diesAt && when === this.when) ? this.end : Effect.void))
    return { before: at("before"), after: at("after") }
  }
}

let life = new Life()
/** The process's time is ahead, so that nobody waits for delays. */
let ahead = 0

const around = <A, E, R>(name: string, commit: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const { after, before } = life.around(name)
    return Effect.andThen(
      before,
      Effect.tap(commit, () => after)
    )
  })

const mortalJournal = Layer.effect(
  RunJournal,
  Effect.map(RunJournal, (journal) =>
    RunJournal.of({ ...journal, move: (transition) => around("journal", journal.move(transition)) })
  )
).pipe(Layer.provide(RunJournal.layer))

/** Its transactions end with the process. */
const mortalSql = Layer.effect(
  SqlClient.SqlClient,
  Effect.map(SqlClient.SqlClient, (sql) => {
    const withTransaction: SqlClient.SqlClient["withTransaction"] = (effect) =>
      Effect.suspend(() => {
        const { after, before } = life.around("transaction")
        return Effect.tap(sql.withTransaction(Effect.tap(effect, () => before)), () => after)
      })
    return new Proxy(sql, {
      get: (target, name) => (name === "withTransaction" ? withTransaction : Reflect.get(target, name))
    })
  })
)

const process = Layer.fresh(processOf(mortalJournal).pipe(Layer.provideMerge(mortalSql)))

interface Call {
  readonly step: string
  readonly key: string
  readonly inputs: unknown
}

/** What targets received. */
const calls: Array<Call> = []

const called = ({ inputs, start, step: { step } }: StepEffect, _: unknown, key: string) =>
  around(
    "call",
    Effect.sync((): Outcome => {
      calls.push({ step: step.id, key, inputs: inputs.values })
      const isRefused = step.id === "broken" || (step.id === "flaky" && start.attempt === 1)
      if (isRefused) return { kind: "failed", error: { code: "BAD_RESPONSE", message: "HTTP 503", status: 503 } }
      return { kind: "succeeded", output: { status: 200, body: `of ${step.id}` }, ports: ["out"] }
    })
  )

const makeWorld = Effect.gen(function* () {
  const [destination, source] = [yield* createDestination(), yield* createSource()]
  const transformation = yield* (yield* Transformations).create(team, newId(prefixes.transformation, Date.now()), {
    name: unique("shape"),
    code: "addHandler('transform', (request) => request)",
    env: {}
  } as never)
  const send = (id: string, inputs: object = {}, config: object = {}) => ({
    id,
    kind: "destination",
    resource_id: destination.id,
    config,
    invocation_inputs: { body: inputs }
  })
  const child = yield* create(
    [send("in_child"), trim("result", "{{trigger.body.name}}")],
    [from(null, "in_child"), from("in_child", "result")]
  )
  const by = (source: string, port: string, target: string) => ({ ...from(source, target), source_port: port })
  const hour = { amount: 1, unit: "hours" }
  const steps = [
    trim("clean", "{{trigger.body.name}}"),
    { id: "named", kind: "filter", config: { conditions: { body: { name: { $exist: true } } } } },
    {
      id: "split",
      kind: "branch",
      config: {
        paths: [
          { key: "a", rule: "always" },
          { key: "b", rule: "conditions", conditions: { body: { name: "nobody" } } }
        ]
      }
    },
    trim("never", "x"),
    send("flaky", {}, { retry: { strategy: "linear", interval: 1_000, count: 2 } }),
    { id: "pause", kind: "delay", config: { mode: "for", amount: 1, unit: "seconds" } },
    send("broken", {}, { on_error: "branch" }),
    send("repaired", { code: "{{steps.broken.error.code}}" }),
    send("each", "{{item}}" as never, { for_each: "{{trigger.body.list}}", concurrency: 2 }),
    {
      id: "count",
      kind: "store",
      config: { operation: "increment" },
      invocation_inputs: { key: "runs" }
    },
    {
      id: "child",
      kind: "workflow",
      resource_id: child.id,
      invocation_inputs: { input: { name: "{{steps.clean.output.result}}" } }
    },
    { id: "shape", kind: "transformation", resource_id: transformation.id },
    { id: "paid", kind: "wait", resource_id: source.id, config: { for: "event", ...hour } },
    { id: "answer", kind: "wait", config: { for: "callback", ...hour } },
    send("join", {
      each: "{{steps.each.output.count}}",
      count: "{{steps.count.output.value}}",
      child: "{{steps.child.output.result.result}}",
      paid: "{{steps.paid.output.body.paid}}",
      answer: "{{steps.answer.output.body.yes}}",
      repaired: "{{steps.repaired.output.body}}",
      flaky: "{{steps.flaky.output.body}}"
    })
  ]
  const beside = ["flaky", "pause", "each", "count", "shape", "paid", "answer"]
  const workflow = yield* create(steps, [
    from(null, "clean"),
    from("clean", "named"),
    by("named", "matched", "split"),
    by("split", "path_b", "never"),
    ...beside.map((id) => by("split", "path_a", id)),
    from("pause", "broken"),
    by("broken", "error", "repaired"),
    from("count", "child"),
    ...["flaky", "repaired", "each", "child", "shape", "paid", "answer"].map((id) => from(id, "join"))
  ])
  return { workflow, child, source }
})

type World = Effect.Success<typeof makeWorld>

/** What one process does until the run is over, or it dies: what wakes it, and what comes from outside meanwhile. */
const work = Effect.fnUntraced(function* ({ child, source, workflow }: World, run: string) {
  const sql = yield* SqlClient.SqlClient
  const client = yield* WorkflowEntity.client
  const callBack = client(workflow.id).Receive({
    team_id: team,
    run_id: run,
    step_id: "answer",
    method: "POST",
    headers: { "content-type": "application/json" },
    query: "",
    body: Buffer.from('{"yes":true}').toString("base64")
  })
  const look = Effect.gen(function* () {
    ahead += 1_000
    for (const { id } of [workflow, child]) {
      yield* wake(id)
      yield* client(id).Arrive()
    }
    // The sender repeats it until it is accepted.
    yield* Effect.ignore(callBack)
    const waits = yield* sql`select from workflow_waits where source_id = ${source.id}`
    if (waits.length > 0) yield* accept(source.id, { paid: true }, yield* Clock.currentTimeMillis)
    return yield* runOf(run)
  })
  const end = yield* Effect.repeat(look, {
    until: ({ status }) => status !== "queued" && status !== "running",
    times: 2_000
  })
  expect(end["status"]).toBe("succeeded")
})

/** One process after the other until the run is over. The first one dies, the others do not. Returns the first one's life. */
const carryOut = Effect.fnUntraced(function* (of: World, run: string, first: Life) {
  for (life = first; ; life = new Life()) {
    const current = life
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(process, scope)
    const real = Effect.provideContext(Effect.all([makeStoreStep, makeWaitStep, makeWorkflowStep]), context)
    const [store, wait, workflow] = yield* real
    for (const [kind, executor] of Object.entries({ store, wait, workflow })) executors.set(kind, executor)
    for (const kind of ["destination", "transformation"]) executors.set(kind, called)
    const buried = Effect.andThen(Deferred.await(current.died), Deferred.succeed(current.buried, undefined))
    yield* Effect.raceFirst(Effect.provideContext(work(of, run), context), Effect.asVoid(buried))
    yield* Scope.close(scope, Exit.void)
    if (!current.isDead) return
  }
})

/** What a run came to: its end, what its steps gave to the last one, and how many keys each step's calls had. */
const comeTo = Effect.fnUntraced(function* ({ workflow }: World, run: string, since: number) {
  const sql = yield* SqlClient.SqlClient
  const { error_code, failed_steps, outcome, queued, skipped_steps, succeeded_steps } = yield* runOf(run)
  const made = calls.slice(since)
  const keys = Map.groupBy(made, ({ step }) => step)
  const children = yield* sql`select r.outcome from workflow_children c join workflow_runs r on r.id = c.child_run_id
    where c.parent_run_id = ${run}`
  const left = yield* sql`select from workflow_queue where workflow_id = ${workflow.id}`
  return {
    end: { error_code, failed_steps, outcome, queued, skipped_steps, succeeded_steps },
    children,
    left: left.length,
    keys: Object.fromEntries([...keys].map(([step, of]) => [step, new Set(of.map(({ key }) => key)).size])),
    joined: made.filter(({ step }) => step === "join").map(({ inputs }) => inputs)[0]
  }
})

/** A shared key would let a target take two calls for one. */
const stepsOfKeys = () =>
  [...Map.groupBy(calls, ({ key }) => key).values()].map((of) => new Set(of.map(({ step }) => step)).size)

layer(Transformations.layer.pipe(Layer.provideMerge(world)), { excludeTestServices: true })(
  "Run whose process dies",
  (it) => {
    it.effect(
      "Whichever commit a process dies before or after, the run comes to the same end, and no effect has two keys",
      () =>
        Effect.gen(function* () {
          const of = yield* makeWorld
          let runs = 0
          const one = Effect.fnUntraced(function* (first: Life) {
            ahead = 0
            const run = yield* receive(of.workflow, { name: " Ada ", list: [1, 2, 3] })
            const since = calls.length
            yield* carryOut(of, run, first)
            // Each run counts once in the stored value, which goes on from run to run.
            runs++
            const { joined, ...rest } = yield* comeTo(of, run, since)
            const { body } = joined as { readonly body: { readonly count: number } }
            expect(body.count).toBe(runs)
            return { ...rest, body: { ...body, count: 1 }, made: calls.length - since }
          })
          const undisturbed = new Life()
          const { made: usual, ...expected } = yield* one(undisturbed)
          expect(expected).toMatchObject({
            end: { outcome: "completed_with_errors", queued: false, skipped_steps: 1 },
            children: [{ outcome: "completed" }],
            left: 0,
            keys: { flaky: 1, broken: 1, repaired: 1, each: 3, in_child: 1, shape: 1, join: 1 },
            body: { each: 3, child: "Ada", paid: true, answer: true, repaired: "of repaired", flaky: "of flaky" }
          })
          const died: Array<string> = []
          for (const when of ["before", "after"] as const) {
            // The order of steps beside each other is not fixed, so a first process may end with a commit less, and does not die then.
            for (let at = 1; at <= undisturbed.commits.length; at++) {
              const first = new Life(at, when)
              const { made, ...rest } = yield* one(first)
              const place = `${when} commit ${at}: ${first.commits.at(-1)}`
              expect([place, rest]).toEqual([place, expected])
              // A process has at most these calls under way: those of the steps beside each other.
              expect([place, made - usual <= 6]).toEqual([place, true])
              if (first.isDead) died.push(place)
            }
          }
          expect(new Set(stepsOfKeys())).toEqual(new Set([1]))
          expect((yield* readKept({ team_id: team, workflow_id: of.workflow.id }, "runs"))!.value).toBe(runs)
          expect(died.length).toBeGreaterThan(undisturbed.commits.length)
        }).pipe(
          Effect.provideService(
            Clock.Clock,
            later(() => ahead)
          )
        ),
      300_000
    )
  }
)
