import { countOf } from "./processes/Count.ts"
import { processVariable } from "./processes/Supervised.ts"

/*
 * What `npm start` and `tidegate start` run: one process, or with TIDEGATE_PROCESSES a supervisor of several. The supervisor loads nothing of
 * the gateway, so that it takes little memory.
 */

const isSupervised = process.send !== undefined && process.env[processVariable] !== undefined
const count = countOf(process.env["TIDEGATE_PROCESSES"])

const supervise = async (processes: number): Promise<void> => {
  const { Supervisor } = await import("./processes/Supervisor.ts")
  let postgres: { readonly close: () => Promise<void> } | null = null
  // As of every setting, an empty value is none.
  if ((process.env["DATABASE_URL"] ?? "") === "") {
    const { holdPostgres } = await import("./processes/HeldPostgres.ts")
    postgres = await holdPostgres()
    if (postgres === null) process.exit(1)
  }
  const supervisor = new Supervisor({ count: processes, env: process.env, postgres })
  const isAtTerminal = [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY)
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void supervisor.end())
  // The signal also means that the terminal was closed.
  process.on("SIGHUP", () => void (isAtTerminal ? supervisor.end() : supervisor.restart()))
  await supervisor.start()
}

if (typeof count === "string") {
  process.stderr.write(`tidegate: ${count}\n`)
  process.exit(1)
}
if (isSupervised || count === 1) await import("./main.ts")
else await supervise(count)
