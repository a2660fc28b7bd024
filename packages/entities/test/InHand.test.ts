import { expect, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { haveAlone, takeInHand } from "@tidegate/storage/delivery/WorkInHand"
import { createDestination, team } from "../../storage/test/controlPlane.ts"
import { Hand, InHand } from "../src/InHand.ts"
import { retryStep } from "../src/Workflow/StepRetry.ts"
import { plansOf } from "../src/Workflow/Plans.ts"
import { newId, prefixes } from "@tidegate/model/Ids"
import { create, from, receive, runOf, trim, wake, world } from "./RunsWorld.ts"

const run = (id: string) => ({ kind: "run", id, team_id: team, bytes: 1 }) as const
const rowOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ process: string; ends: number; alone: boolean }>`
    select process, ends, alone from work_in_hand where id = ${id}`
  return row
})

/** A process that ends while it has the work in hand. */
const dies = Effect.fnUntraced(function* (process: string, id: string, alone: boolean) {
  yield* takeInHand(process, [run(id)])
  if (alone) yield* haveAlone(process, run(id), true)
})

const heavy = { text: "x".repeat(70_000) }

layer(world, { excludeTestServices: true })("Work in progress of processes", (it) => {
  it.effect("Only heavy work is stored as in progress, until it ends", () =>
    Effect.gen(function* () {
      const hand = new InHand()
      const small = yield* hand.take([run("wfr_small")])
      expect(small(run("wfr_small"))).toBe("unrecorded")
      expect(yield* rowOf("wfr_small")).toBeUndefined()
      const work = { ...run("wfr_heavy"), bytes: 70_000 }
      const manner = (yield* hand.take([work]))(work)
      expect(manner).toBe("heavy")
      expect(yield* rowOf("wfr_heavy")).toMatchObject({ process: hand.process, ends: 0 })
      yield* hand.within(work, manner, Effect.void)
      expect(yield* rowOf("wfr_heavy")).toBeUndefined()
    })
  )

  it.effect("After a crash small work is stored as in progress, but does not wait for work that runs alone", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* dies("prc_n", "wfr_suspect", false)
      yield* sql`insert into processes (id, seen_at) values ('prc_n', now() - interval '1 day')`
      const hand = new InHand()
      yield* hand.look
      const mannerOf = yield* hand.take([run("wfr_suspect"), run("wfr_quick")])
      const begun = yield* Deferred.make<void>()
      const alone = yield* Effect.forkChild(
        hand.within(
          run("wfr_suspect"),
          mannerOf(run("wfr_suspect")),
          Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
        )
      )
      yield* Deferred.await(begun)
      expect(yield* rowOf("wfr_quick")).toMatchObject({ process: hand.process, ends: 0 })
      const quick = hand.within(run("wfr_quick"), mannerOf(run("wfr_quick")), Effect.succeed("done"))
      expect(yield* quick).toBe("done")
      yield* Fiber.interrupt(alone)
    })
  )

  it.effect("A crash is noticed by every process that checks soon, and by the next one at any time later", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const isCareful = Effect.fnUntraced(function* (hand: InHand) {
        yield* hand.look
        return !hand.isPlain(run("wfr_any"), yield* Clock.currentTimeMillis)
      })
      yield* sql`delete from processes where seen_at < now() - interval '1 second'`
      expect(yield* isCareful(new InHand())).toBe(false)
      yield* sql`insert into processes (id, seen_at) values ('prc_now', now() - interval '7 seconds')`
      expect([yield* isCareful(new InHand()), yield* isCareful(new InHand())]).toEqual([true, true])
      yield* sql`update processes set seen_at = now() - interval '3 days' where id = 'prc_now'`
      expect([yield* isCareful(new InHand()), yield* isCareful(new InHand())]).toEqual([true, false])
    })
  )

  it.effect("Concurrent work is stored with few statements, and restarted work stays stored", () =>
    Effect.gen(function* () {
      const hand = new InHand()
      const works = Array.from({ length: 50 }, (_, i) => ({ ...run(`wfr_many_${i}`), bytes: 70_000 }))
      yield* Effect.forEach(works, (work) => hand.take([work]), { concurrency: "unbounded" })
      yield* Effect.all([hand.done(works[0]!), hand.take([works[0]!]), hand.done(works[1]!)], {
        concurrency: "unbounded"
      })
      expect([yield* rowOf("wfr_many_0"), yield* rowOf("wfr_many_1")]).toMatchObject([
        { process: hand.process },
        undefined
      ])
      yield* Effect.forEach(works, hand.done, { concurrency: "unbounded" })
      expect(yield* rowOf("wfr_many_49")).toBeUndefined()
    })
  )

  it.effect("Work that a clean shutdown interrupted is not suspected", () =>
    Effect.gen(function* () {
      const hand = new InHand()
      const work = { ...run("wfr_clean"), bytes: 70_000 }
      const manner = (yield* hand.take([work]))(work)
      const going = yield* Effect.forkChild(hand.within(work, manner, Effect.never))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(going)
      expect(yield* rowOf("wfr_clean")).toBeUndefined()
    })
  )

  it.effect(
    "After a crash the stored work runs alone, and work that crashed three processes alone does not run again",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* dies("prc_a", "wfr_guilty", false)
        yield* dies("prc_a", "wfr_innocent", false)
        yield* sql`insert into processes (id, seen_at) values ('prc_a', now() - interval '1 minute')`
        const hand = new InHand()
        yield* hand.look
        const works = ["wfr_guilty", "wfr_innocent", "wfr_new"].map(run)
        const manners = yield* hand.take(works)
        expect(works.map(manners)).toEqual(["alone", "alone", "recorded"])
        // Beside others it is not the cause: what waits for its turn is not counted.
        yield* dies("prc_b", "wfr_innocent", false)
        yield* dies("prc_b", "wfr_guilty", true)
        expect(yield* rowOf("wfr_innocent")).toMatchObject({ ends: 1 })
        yield* dies("prc_c", "wfr_guilty", true)
        yield* dies("prc_c", "wfr_innocent", false)
        const next = new InHand()
        yield* next.look
        const then = yield* next.take(works)
        expect(works.map(then)).toEqual(["set aside", "alone", "alone"])
        for (const work of works) yield* next.done(work)
      })
  )

  it.effect("Stored work never runs beside work that runs alone, and continues after it", () =>
    Effect.gen(function* () {
      const hand = new InHand()
      yield* dies("prc_d", "wfr_alone", false)
      yield* hand.look
      const before = { ...run("wfr_before"), bytes: 70_000 }
      const behind = { ...run("wfr_behind"), bytes: 70_000 }
      const all = yield* hand.take([before, run("wfr_alone"), behind])
      const order: Array<string> = []
      const [beforeEnds, aloneBegun, aloneEnds] = [
        yield* Deferred.make<void>(),
        yield* Deferred.make<void>(),
        yield* Deferred.make<void>()
      ]
      const first = yield* Effect.forkChild(
        hand.within(
          before,
          all(before),
          Effect.tap(Deferred.await(beforeEnds), () => Effect.sync(() => order.push("before")))
        )
      )
      yield* Effect.yieldNow
      const alone = yield* Effect.forkChild(
        hand.within(
          run("wfr_alone"),
          all(run("wfr_alone")),
          Effect.gen(function* () {
            order.push("alone")
            yield* Deferred.succeed(aloneBegun, undefined)
            yield* Deferred.await(aloneEnds)
          })
        )
      )
      yield* Effect.yieldNow
      yield* Deferred.succeed(beforeEnds, undefined)
      yield* Fiber.join(first)
      yield* Deferred.await(aloneBegun)
      expect(yield* rowOf("wfr_alone")).toMatchObject({ alone: true })
      const last = yield* Effect.forkChild(
        hand.within(
          behind,
          all(behind),
          Effect.sync(() => order.push("behind"))
        )
      )
      yield* Effect.yieldNow
      expect(order).toEqual(["before", "alone"])
      yield* Deferred.succeed(aloneEnds, undefined)
      yield* Fiber.join(alone)
      yield* Fiber.join(last)
      expect(order).toEqual(["before", "alone", "behind"])
    })
  )

  it.effect(
    "A run that ended three processes fails with its own cause, can be retried and does not affect other runs",
    () =>
      Effect.gen(function* () {
        const destination = yield* createDestination()
        const workflow = yield* create(
          [{ id: "send", kind: "destination", resource_id: destination.id }, trim("after", "a")],
          [from(null, "send"), from("send", "after")]
        )
        const [guilty, neighbour] = [yield* receive(workflow, heavy), yield* receive(workflow, heavy)]
        yield* dies("prc_e", guilty, false)
        yield* dies("prc_e", neighbour, false)
        yield* dies("prc_f", guilty, true)
        yield* dies("prc_g", guilty, true)
        yield* (yield* Hand).look
        yield* wake(workflow.id)
        expect(yield* runOf(guilty)).toMatchObject({
          status: "failed",
          error_code: "PROCESS_ENDED",
          failed_steps: 1,
          queued: false
        })
        expect(yield* runOf(neighbour)).toMatchObject({ status: "succeeded" })
        expect([yield* rowOf(guilty), yield* rowOf(neighbour)]).toEqual([undefined, undefined])
        const plans = plansOf(workflow.id)
        const retry_id = newId(prefixes.workflowStep, Date.now())
        yield* retryStep(
          workflow.id,
          1,
          (version) => Effect.map(plans.planOf(team, version), (plan) => plan?.workflow ?? null),
          {
            team_id: team,
            run_id: guilty,
            step_id: "send",
            retry_id
          }
        )
        expect(yield* runOf(guilty)).toMatchObject({ status: "queued", queued: true })
      })
  )
})
