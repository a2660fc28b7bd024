/**
 * Runs of workflows under kills: `npm run test:faults -- --workflows`, or `node test/faults/workflows.ts`, with:
 *
 *   --only <name>   only this graph: `seven` or `joined` (may be repeated)
 *   --runs <n>      so many runs of each graph (1,000)
 *   --rate <n>      requests a second (each graph has its own)
 *
 * Exits with 1 when a run is lost or ended twice, when a step that had ended was repeated, when a repetition did not say that it is one,
 * or when a graph's own books do not come out even.
 */
import { parseArgs } from "node:util"
import { joined } from "./graphs/Joined.ts"
import { seven } from "./graphs/Seven.ts"
import { underKills } from "./WorkflowKills.ts"

const graphs = [seven, joined]

const { values } = parseArgs({
  options: {
    workflows: { type: "boolean" },
    only: { type: "string", multiple: true, default: graphs.map(({ name }) => name) },
    runs: { type: "string", default: "1000" },
    rate: { type: "string" }
  }
})
const unknown = values.only.filter((name) => graphs.every((graph) => graph.name !== name))
if (unknown.length > 0) throw new Error(`no graph has the name ${unknown.join(", ")}`)

const positive = (option: string, text: string | number): number => {
  if (Number(text) > 0 && Number.isFinite(Number(text))) return Number(text)
  throw new Error(`--${option} takes a number above 0`)
}

process.exitCode = 0
for (const graph of graphs.filter(({ name }) => values.only.includes(name))) {
  const { isRight, report } = await underKills(graph, {
    runs: positive("runs", values.runs),
    rate: positive("rate", values.rate ?? graph.rate)
  })
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
  if (!isRight) process.exitCode = 1
}
