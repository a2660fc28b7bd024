/**
 * `npm run test:faults`: kills, freezes and starves the processes of a gateway under load, and looks whether it has kept its
 * promises: nothing that was acknowledged is lost, nothing is delivered twice without a crash, deliveries go on in time.
 *
 *   --only <text>    only rounds with this in their name (may be repeated)
 *   --rate <n>       requests a second (120)
 *   --ordered        every connection keeps an order, not just some
 *   --operations     operators read lists, counts and metrics all the time, and retry in bulk what was delivered
 *   --minutes <n>    no round begins later than this (13; with --rounds: no end)
 *   --rounds <n>     so many rounds: those chosen, again and again. Goes on after a finding, and keeps the log of every round
 *   --side-by-side <n>   so many gateways at once, each with processes, database, ports and folder of its own (1). Each has its part of the
 *                    rounds: all kinds that were chosen in an order that is drawn, then all of them in another
 *   --seed <text>    the orders that an earlier run has drawn: it prints its seed
 *   --out <folder>   where --rounds keeps them (results/faults-<time> in the folder of the tests)
 *   --slack <n>      how many times longer than promised things may take, where other programs share the machine (1)
 *   --workflows      instead of the rounds: runs of workflows whose processes are killed (five minutes); with --only seven or --only joined:
 *                    runs of that graph (three minutes)
 *   --failover       instead of the rounds: a standby of the database is promoted, with and without synchronous replication (a minute)
 *   --list           the names of the rounds
 *
 * Prints a table, and exits with 1 when a promise was broken or a round was left out. Needs nothing but this repository:
 * the PostgreSQL servers and targets are its own.
 */
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { allFaults } from "./Faults.ts"
import { render, summarize } from "./Report.ts"
import type { Outcome } from "./Round.ts"
import { RoundLogs } from "./RoundLogs.ts"
import { surroundings } from "./Rig.ts"
import { drawn, holdSideBySide, inOrder } from "./SideBySide.ts"
import { now } from "../support/Waiting.ts"

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    rate: { type: "string", default: "120" },
    ordered: { type: "boolean", default: false },
    operations: { type: "boolean", default: false },
    workflows: { type: "boolean", default: false },
    failover: { type: "boolean", default: false },
    minutes: { type: "string" },
    rounds: { type: "string" },
    "side-by-side": { type: "string", default: "1" },
    seed: { type: "string" },
    out: { type: "string" },
    slack: { type: "string", default: "1" },
    list: { type: "boolean", default: false }
  }
})

if (values.workflows) {
  await import("./workflows.ts")
  process.exit()
}

if (values.failover) {
  const { failover } = await import("./Failover.ts")
  const synchronous = await failover(true)
  const asynchronous = await failover(false)
  process.stdout.write(`${JSON.stringify({ synchronous, asynchronous }, null, 2)}\n`)
  const { after = 0, alone = 0 } = asynchronous.lost
  const asExpected =
    Object.values(synchronous.lost).every((count) => count === 0) &&
    // Without synchronous replication, what the standby did not have is lost, and nothing from after its promotion.
    alone >= asynchronous.acknowledgedAlone &&
    after === 0
  process.exit(asExpected && [...synchronous.ended, ...asynchronous.ended].length === 0 ? 0 : 1)
}

const chosen = allFaults.filter(
  ({ name }) => values.only === undefined || values.only.some((text) => name.includes(text))
)

if (values.list || chosen.length === 0) {
  process.stdout.write(`${allFaults.map(({ name }) => name).join("\n")}\n`)
  process.exit(values.list ? 0 : 1)
}

const impossible = new Map<string, string>()
for (const { topology } of chosen) {
  const why = topology === "single" ? null : await surroundings[topology].whyNot()
  if (why !== null) impossible.set(topology, why)
}
const possible = chosen.filter(({ topology }) => !impossible.has(topology))
for (const { name, topology } of chosen) {
  if (impossible.has(topology)) process.stdout.write(`Left out: ${name}: ${impossible.get(topology)}\n`)
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1))

const outcomes: Array<Outcome> = []
const minutes = values.minutes ?? (values.rounds === undefined ? 13 : Number.POSITIVE_INFINITY)
const overAt = now() + Number(minutes) * 60_000
const count = possible.length === 0 ? 0 : Number(values.rounds ?? possible.length)
const gateways = Math.min(Number(values["side-by-side"]), Math.max(1, count))
if (!(Number.isInteger(gateways) && gateways > 0)) throw new Error("--side-by-side takes a whole number from 1")
const seed = values.seed ?? randomUUID().slice(0, 8)
const series = gateways === 1 ? [inOrder(possible, count)] : drawn(possible, { count, series: gateways, seed })
const time = new Date().toISOString().slice(0, 19).replaceAll(":", "")
const roundLogs =
  values.rounds === undefined
    ? undefined
    : new RoundLogs(values.out ?? join(import.meta.dirname, `../results/faults-${time}`))
if (roundLogs !== undefined) process.stdout.write(`Logs of all rounds: ${roundLogs.folder}\n`)
if (gateways > 1) process.stdout.write(`${gateways} gateways side by side, --seed ${seed}\n`)
const logs = await holdSideBySide(series, {
  perSecond: Number(values.rate),
  allOrdered: values.ordered,
  operations: values.operations,
  slack: Number(values.slack),
  roundLogs,
  isOver: () => now() > overAt,
  onOutcome: (outcome, round) => {
    outcomes.push(outcome)
    roundLogs?.add(outcome, round)
    const lines = outcome.findings.isClean ? ["ok"] : outcome.findings.lines
    process.stdout.write(`${outcomes.length}/${count} ${outcome.fault.name}: ${lines.join("\n")}\n`)
  }
})

process.stdout.write(`\n${roundLogs === undefined ? render(outcomes) : summarize(outcomes)}`)
for (const folder of logs) process.stdout.write(`Logs of the processes: ${folder}\n`)
const leftOut = count - outcomes.length
if (leftOut > 0) process.stdout.write(`${leftOut} rounds were left out, because the time was over.\n`)
process.exit(leftOut === 0 && impossible.size === 0 && outcomes.every(({ findings }) => findings.isClean) ? 0 : 1)
