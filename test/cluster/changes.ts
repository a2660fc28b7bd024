/**
 * `node test/cluster/changes.ts [changes]`: two processes under load, that many configuration changes (1,000 unless
 * told), and how many requests were handled by a state older than they had to be. Ends with 1 when there was one.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { standalone } from "../faults/Postgres.ts"
import { runChanges } from "./ChangeRun.ts"
import { Gateways } from "../support/Gateways.ts"

const folder = await mkdtemp(join(tmpdir(), "tidegate-changes-"))
const postgres = await standalone(folder)
const gateways = await Gateways.start(folder, postgres.url, { a: "all", b: "all" })
try {
  const { violations, ...figures } = await runChanges(gateways, Number(process.argv[2] ?? 1_000))
  process.stdout.write(`${JSON.stringify({ ...figures, violations: violations.length })}\n`)
  for (const violation of violations.slice(0, 50)) process.stdout.write(`${violation}\n`)
  process.exitCode = violations.length === 0 ? 0 : 1
} finally {
  await gateways.close()
  await postgres.close()
  if (process.exitCode === 0) await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}
