import { spawn } from "node:child_process"
import { once } from "node:events"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import type { LogLine } from "../../src/Call.ts"
import type { Verdict } from "../../src/Messages.ts"

/** One call, straight to the isolates of a child: `compared` as the pool's children compare. */
export interface RealmCall {
  readonly kind: "fresh" | "sealed" | "compared"
  readonly query?: string
  readonly body?: unknown
  readonly wallMs?: number
}

/** Calls of one code, in this order, in a child that has run nothing else of it. */
export interface RealmJob {
  readonly code: string
  readonly calls: ReadonlyArray<RealmCall>
}

/** `outcome` begins with `ok`, or says how else it ended; the third text is the body that was returned, as JSON. */
export interface RealmResult {
  readonly outcome: ReadonlyArray<string>
  readonly logs: ReadonlyArray<LogLine>
  readonly verdict: Verdict | null
}

const program = fileURLToPath(new URL("realmChild.ts", import.meta.url))

/** Runs them in a process of their own, with the flags of the pool's children. */
export const inRealms = async (jobs: ReadonlyArray<RealmJob>): Promise<ReadonlyArray<ReadonlyArray<RealmResult>>> => {
  const child = spawn(process.execPath, ["--no-node-snapshot", "--no-turbofan", "--no-warnings", program], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { TZ: "UTC" }
  })
  const exit = once(child, "exit")
  child.stdin.end(JSON.stringify(jobs))
  const answer = await text(child.stdout)
  const [code] = await exit
  if (code !== 0) throw new Error(`the realms' process ended with ${code}`)
  const results: ReadonlyArray<ReadonlyArray<RealmResult>> = JSON.parse(answer)
  return results
}
