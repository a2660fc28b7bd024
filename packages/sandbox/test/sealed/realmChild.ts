/** The process of `inRealms`: jobs in, results out. */
import { text } from "node:stream/consumers"
import { compare, worthMs } from "../../src/child/Compare.ts"
import { type Measured, makeIsolates } from "../../src/child/Isolates.ts"
import type { SyntaxProblem } from "../../src/Call.ts"
import type { Verdict } from "../../src/Messages.ts"
import type { RealmCall, RealmJob, RealmResult } from "./inRealms.ts"

const jobs: ReadonlyArray<RealmJob> = JSON.parse(await text(process.stdin))
const isolates = makeIsolates(64 * 1_048_576)

const inputOf = (query: string): string =>
  JSON.stringify({
    request: {
      headers: { "content-type": "application/json", "x-many": ["a", "b"] },
      query,
      parsed_query: { q: "1", r: "2" },
      path: "/orders",
      method: "POST"
    },
    context: {
      connection_id: "web_1",
      source_id: "src_1",
      destination_id: "des_1",
      request_id: "req_1",
      team_id: "tm_a",
      timestamp: "2026-01-01T00:00:00.000Z",
      env: { NAME: "value" }
    }
  })

const resultOf = (ran: Measured | SyntaxProblem, verdict: Verdict | null): RealmResult => {
  if (!("ended" in ran)) return { outcome: ["SYNTAX_ERROR", ran.message], logs: [], verdict }
  const { ended, logs } = ran
  if (ended.type === "outcome") return { outcome: ended.outcome, logs, verdict }
  return { outcome: ended.type === "rejection" ? [ended.type, ended.message] : [ended.type], logs, verdict }
}

/** Whether a call was too slow to be compared only because it waited for the processor: then it is made again. */
const isHeldUp = ({ ran, verdict }: ReturnType<typeof compare>): boolean =>
  verdict === null && "ended" in ran && ran.durationMs > worthMs && ran.cpuMs <= worthMs

const call = (key: string, { body = { a: 1 }, kind, query = "q=1&r=2", wallMs = 1_000 }: RealmCall): RealmResult => {
  const texts = [inputOf(query), JSON.stringify(body)] as const
  if (kind === "compared") {
    const attempt = () => compare(isolates, key, ...texts, wallMs)
    let compared = attempt()
    for (let again = 0; again < 50 && isHeldUp(compared); again++) compared = attempt()
    return resultOf(compared.ran, compared.verdict)
  }
  return resultOf(isolates.run(kind, key, ...texts, wallMs, { seed: "", clock: "live" }), null)
}

const results = jobs.map(({ calls, code }, index) => {
  const key = String(index)
  isolates.know(key, code)
  const answers = calls.map((one) => call(key, one))
  isolates.forget(key)
  return answers
})
process.stdout.write(JSON.stringify(results))
