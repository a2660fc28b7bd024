import { Effect } from "effect"
import { connectionsPerProcess } from "@tidegate/storage/Database"
import { registeredRunners } from "@tidegate/storage/diagnosis/RunnerFacts"
import { schemaVersion } from "@tidegate/storage/Migrations"
import { serverState } from "@tidegate/storage/diagnosis/ServerFacts"
import { type DatabaseCheck, type Finding, fine, notice, wrong } from "../Check.ts"

export interface Connections {
  /** What ordinary roles may have, and what is open. */
  readonly allowed: number
  readonly open: number
  readonly runners: number
}

export const judgeConnections = ({ allowed, open, runners }: Connections): Finding => {
  const wayOut = "raise max_connections (it needs a restart of PostgreSQL), or run fewer processes"
  const needed = Math.max(1, runners) * connectionsPerProcess
  const says = `${open} of ${allowed} connections are open`
  if (needed > allowed) {
    return wrong(
      `${says}; ${Math.max(1, runners)} runners open up to ${needed}, and each edge ${connectionsPerProcess} more`,
      wayOut
    )
  }
  return open > allowed * 0.9
    ? notice(says, wayOut)
    : fine(`${says}; a process of the gateway opens up to ${connectionsPerProcess}`)
}

export const connections: DatabaseCheck = {
  of: "database",
  name: "connections",
  about: "max_connections, compared with what the processes open",
  look: Effect.gen(function* () {
    const state = yield* serverState
    const runners = (yield* schemaVersion).present === 0 ? [] : yield* registeredRunners
    return judgeConnections({ ...state, runners: runners.length })
  })
}
