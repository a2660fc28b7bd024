import { Effect, Exit, Scope } from "effect"
import { DatabaseLink } from "../support/DatabaseLink.ts"
import { Gateways } from "../support/Gateways.ts"
import { Target } from "../support/Target.ts"
import { now, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { pair } from "./Standby.ts"

/**
 * The primary server is lost under load, and its standby is promoted. The link in front of the servers plays the role of an operator's TCP proxy. It
 * leads to the standby even before the promotion, as when DNS is faster than the promotion.
 */

/** A phase of the load ends after so many acknowledged requests. */
const some = 40
const senders = 6

interface Sent {
  readonly n: number
  readonly sentIn: Phase
  answeredIn: Phase | null
  status: number | null
}

/** The phases: no fault; the standby no longer follows; the primary server is lost; the standby has become the primary server. */
const phases = ["before", "alone", "lost", "after"] as const
type Phase = (typeof phases)[number]

export interface Outcome {
  readonly acknowledged: number
  /** The number of requests that were acknowledged but are not in the database afterwards, by the phase in which they were sent. */
  readonly lost: Readonly<Record<string, number>>
  /** How many of these had been delivered. */
  readonly lostAfterDelivery: number
  /** Sent and acknowledged after the standby had stopped to follow. */
  readonly acknowledgedAlone: number
  readonly statuses: ReadonlyArray<number | null>
  /** From the loss of the primary server to the promotion of the standby, and from there to an answer of a new request (ms). */
  readonly withoutPrimary: number
  readonly backAfter: number
  /** Processes of the gateway that ended by themselves. */
  readonly ended: ReadonlyArray<string>
}

const inFolder = async (isSynchronous: boolean, folder: string, scope: Scope.Scope): Promise<Outcome> => {
  const { primary, replication, standby, synchronize } = await Effect.runPromise(
    pair(folder).pipe(Scope.provide(scope))
  )
  const link = await DatabaseLink.to(primary.url)
  const target = await Target.start()
  const gateways = await Gateways.start(folder, link.url, { edge: "edge", runner: "runner" })
  const state: { phase: Phase; isOver: boolean } = { phase: "before", isOver: false }
  const sent: Array<Sent> = []
  const acknowledged = (phase: Phase) =>
    sent.filter(({ answeredIn, sentIn, status }) => sentIn === phase && answeredIn === phase && status === 200)
  const delivered = () => new Set(target.received.map(({ body }) => Number(body.toString())))
  try {
    const source = await gateways.api("edge", "POST", "/sources", { name: "shop" })
    const { id: destination_id } = await gateways.api("edge", "POST", "/destinations", {
      name: "till",
      config: { url: target.origin }
    })
    await gateways.api("edge", "POST", "/connections", { name: "web", source_id: source.id, destination_id })
    if (isSynchronous) await synchronize()
    const sending = Array.from({ length: senders }, async () => {
      while (!state.isOver) {
        const one: Sent = { n: sent.length, sentIn: state.phase, answeredIn: null, status: null }
        sent.push(one)
        const answer = gateways.call("edge", "POST", `/e/${source.id}`, { body: String(one.n) })
        // Null: no answer came, which the outcome shows.
        one.status = await answer.then(
          ({ status }) => status,
          () => null
        )
        one.answeredIn = state.phase
      }
    })
    const more = (phase: Phase) =>
      waitUntil(`requests are acknowledged ${phase} the failover`, () => acknowledged(phase).length >= some, {
        seen: () => sent.slice(-10)
      })
    await more("before")
    await waitUntil("deliveries are under way", () => target.received.length >= some)

    await replication.cut()
    state.phase = "alone"
    if (isSynchronous) {
      await waitUntil("commits wait for the standby", async () => {
        const [row] = await primary.ask(
          "select count(*)::int as waiting from pg_stat_activity where wait_event = 'SyncRep'"
        )
        return Number(row?.["waiting"]) > 0
      })
    } else await more("alone")

    state.phase = "lost"
    const lostAt = now()
    await link.cut()
    link.lead(standby.url)
    await link.mend()
    const refusedBefore = sent.filter(({ status }) => status === 503).length
    await waitUntil("the standby refuses writes", async () => {
      const { ok } = JSON.parse((await gateways.call("edge", "GET", "/readyz")).body) as { ok: boolean }
      return !ok && sent.filter(({ status }) => status === 503).length > refusedBefore
    })
    await standby.ask("select pg_promote(true)")
    const promotedAt = now()
    state.phase = "after"
    const backAt = await waitUntil("a request is acknowledged", () => acknowledged("after").length > 0)
    await more("after")
    state.isOver = true
    await Promise.all(sending)

    const bodies = await standby.ask("select convert_from(body, 'UTF8')::int as n from requests")
    const stored = new Set(bodies.map(({ n }) => Number(n)))
    await waitUntil("all that is stored is delivered", () => stored.isSubsetOf(delivered()), {
      seen: () => [...stored.difference(delivered())].slice(0, 20)
    })
    const lost = sent.filter(({ n, status }) => status === 200 && !stored.has(n))
    return {
      acknowledged: sent.filter(({ status }) => status === 200).length,
      lost: Object.fromEntries(phases.map((phase) => [phase, lost.filter(({ sentIn }) => sentIn === phase).length])),
      lostAfterDelivery: lost.filter(({ n }) => delivered().has(n)).length,
      acknowledgedAlone: acknowledged("alone").length,
      statuses: [...new Set(sent.map(({ status }) => status))].sort((a, b) => (a ?? 0) - (b ?? 0)),
      withoutPrimary: Math.round(promotedAt - lostAt),
      backAfter: Math.round(backAt - promotedAt),
      ended: gateways.names.flatMap((name) => gateways.process(name).takeEnds())
    }
  } finally {
    state.isOver = true
    await gateways.close()
    await link.close()
    await target.close()
  }
}

/** One failover with servers and processes of its own. */
export const failover = async (isSynchronous: boolean): Promise<Outcome> => {
  const scope = Scope.makeUnsafe()
  try {
    const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
    return await inFolder(isSynchronous, folder, scope)
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
