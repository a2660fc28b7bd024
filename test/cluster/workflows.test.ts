import { Effect, Exit, Redacted, Scope } from "effect"
import { describe, expect } from "vitest"
import { Gateways } from "../support/Gateways.ts"
import { HeldCommits } from "../support/HeldCommits.ts"
import { it } from "../support/it.ts"
import {
  bodyOf,
  comeTo,
  countOf,
  create,
  echoing,
  keyOf,
  stepOf,
  steps,
  tokenOf,
  usual
} from "../support/SevenSteps.ts"
import { readRuns, type StoredRun } from "../support/StoredRuns.ts"
import type { Received, Target } from "../support/Target.ts"
import { eventually, now } from "../support/Waiting.ts"
import { freshDatabase } from "../postgres.ts"
import { temporaryFolder } from "../temporaryFolder.ts"

/**
 * A run whose process is killed at each of its commits, just before and just after: it comes to the same end as one that nobody disturbs,
 * what has ended is not repeated, and what is repeated says that it is the same.
 */

/** Processes that are killed beside each other: what they wait for is mostly the time, and their own start. */
const beside = 3

/** A gateway with the workflow, the target of its steps, and the database that both are seen by. */
class Place {
  readonly #gateways: Gateways<"all">
  readonly #target: Target
  readonly #source: string
  readonly #workflow: string
  readonly commits: HeldCommits
  #runs = 0

  private constructor(
    gateways: Gateways<"all">,
    target: Target,
    source: string,
    workflow: string,
    commits: HeldCommits
  ) {
    this.#gateways = gateways
    this.#target = target
    this.#source = source
    this.#workflow = workflow
    this.commits = commits
  }

  static async make(onCleanup: (close: () => Promise<void>) => void): Promise<Place> {
    const scope = Scope.makeUnsafe()
    onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const { folder, url } = await Effect.runPromise(
      Effect.all({ folder: temporaryFolder, url: freshDatabase }).pipe(Scope.provide(scope))
    )
    const target = await echoing()
    onCleanup(() => target.close())
    const gateways = await Gateways.start(folder, Redacted.value(url), { all: "all" })
    onCleanup(() => gateways.close())
    const { source, workflow } = await create(
      (list, body) => gateways.api("all", "POST", list, body) as Promise<{ id: string }>,
      "orders",
      target.origin
    )
    const commits = await HeldCommits.in(Redacted.value(url))
    onCleanup(() => commits.close())
    return new Place(gateways, target, source, workflow, commits)
  }

  /** Sends a request that begins a run; answers the token by which its steps' requests are known. */
  async send(): Promise<string> {
    const token = `run-${++this.#runs}`
    const { body, status } = await this.#gateways.call("all", "POST", `/e/${this.#source}`, {
      headers: { "content-type": "application/json" },
      body: bodyOf(token)
    })
    expect(status, body).toBe(200)
    return token
  }

  async kill(): Promise<number> {
    await this.#gateways.process("all").end("SIGKILL")
    return now()
  }

  start(): Promise<void> {
    return this.#gateways.process("all").start()
  }

  get runs(): Promise<ReadonlyArray<StoredRun>> {
    return readRuns((statement, parameters) => this.#gateways.query(statement, parameters), this.#workflow)
  }

  /** The newest run once there are `count`, and it has ended. */
  ended(count: number): Promise<StoredRun> {
    return eventually(
      "the run has ended",
      async () => {
        const runs = await this.runs
        return runs.length === count ? runs.at(-1)! : null
      },
      ({ outcome }) => outcome !== null
    )
  }

  /** Whether there are `count` runs, and the newest has ended. */
  async hasEnded(count: number): Promise<boolean> {
    const runs = await this.runs
    return runs.length === count && runs.at(-1)!.outcome !== null
  }

  /** The token of the last that was sent. */
  get lastToken(): string {
    return `run-${this.#runs}`
  }

  received(token: string): ReadonlyArray<Received> {
    return this.#target.received.filter((received) => tokenOf(received) === token)
  }

  /** Every step's requests say by which key they are the same, and no other step's say so. */
  checkKeys(): void {
    const steps = Map.groupBy(this.#target.received, (received) => `${tokenOf(received)} ${stepOf(received)}`)
    const keys = [...steps.values()].map((requests) => new Set(requests.map(keyOf)))
    expect(keys.filter(({ size }) => size !== 1)).toEqual([])
    expect(new Set(keys.flatMap((own) => [...own])).size).toBe(keys.length)
  }
}

describe("Workflow run whose process is killed", () => {
  // A minute; five on a machine that has ten times as much to do as it can.
  it(
    "A run whose process is killed at any commit has the same result and repeats no completed step",
    { timeout: 600_000 },
    async ({ onTestFinished }) => {
      const places = await Promise.all(
        Array.from({ length: beside }, () => Place.make((close) => onTestFinished(close)))
      )

      const [undisturbed] = await Promise.all(
        places.map(async (place) => {
          const token = await place.send()
          const run = await place.ended(1)
          expect(countOf(place.received(token))).toEqual(usual)
          return run
        })
      )
      expect(undisturbed).toMatchObject({ status: "succeeded", outcome: "completed_with_errors", faults: [] })
      expect(undisturbed!.steps.size).toBe(steps.length)
      const expected = comeTo(undisturbed!, places[0]!.lastToken)

      const moments = Array.from({ length: undisturbed!.parts + 1 }, (_, part) => part).flatMap((part) =>
        (["before", "after"] as const).map((when) => ({ part, when }))
      )

      const killedAt = async (place: Place, { part, when }: (typeof moments)[number], known: number) => {
        const what = `killed ${when} commit ${part}`
        await place.commits.hold(part)
        // Of the first commit the sender hears only when it is made.
        const sent = place.send().catch(() => null)
        const isHeld = await place.commits.someoneWaits(() => place.hasEnded(known + 1))
        if (!isHeld) {
          // What comes to its end in one moment is committed as one: this run has fewer commits.
          await place.commits.release(part)
          const run = await place.ended(known + 1)
          expect(run.parts, what).toBeLessThan(part)
          expect(comeTo(run, place.lastToken), what).toEqual(expected)
          fewest = Math.min(fewest, run.parts)
          return known + 1
        }
        reached.add(part)
        const killed = await place.kill()
        if (when === "before") await place.commits.refuse()
        await place.commits.release(part)
        await place.commits.nobodyWaits()
        await sent
        const stored = (await place.runs).slice(known)
        expect(
          stored.map(({ parts }) => parts),
          what
        ).toEqual(when === "after" ? [part] : part === 0 ? [] : [part - 1])
        await place.start()
        // What was never stored was never acknowledged.
        if (stored.length === 0) {
          expect(await sent, what).toBeNull()
          return known
        }
        const run = await place.ended(known + 1)
        expect(run.faults, what).toEqual([])
        const token = place.lastToken
        expect(comeTo(run, token), what).toEqual(expected)
        const requests = place.received(token)
        const counted = countOf(requests)
        for (const [step, times] of Object.entries(usual)) {
          // What was under way may be repeated, once for the one kill.
          expect(counted[step], `${what}: ${step}`).toBeOneOf([times, times + 1])
        }
        const endedBefore = new Set([...stored[0]!.ended.keys()].map((index) => steps[index]!))
        const repeated = requests.filter((received) => received.at > killed && endedBefore.has(stepOf(received)))
        expect(repeated.map(stepOf), what).toEqual([])
        return known + 1
      }

      let fewest = undisturbed!.parts
      const reached = new Set<number>()
      const left = [...moments]
      await Promise.all(
        places.map(async (place) => {
          let known = 1
          for (let moment = left.shift(); moment !== undefined; moment = left.shift()) {
            known = await killedAt(place, moment, known)
          }
        })
      )
      for (const place of places) place.checkKeys()
      // Every commit that every run has.
      expect([...reached].filter((part) => part <= fewest).length).toBe(fewest + 1)
    }
  )
})
