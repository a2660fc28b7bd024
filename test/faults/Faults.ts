import type { Fault } from "./Fault.ts"
import { clockJump } from "./kinds/Clock.ts"
import { diskFull } from "./kinds/Disk.ts"
import { killEdge } from "./kinds/Edge.ts"
import { nothing } from "./kinds/Nothing.ts"
import { freezeAll, killAll, killAllAgainAndAgain, stopAll } from "./kinds/OnlyProcess.ts"
import { partition } from "./kinds/Partition.ts"
import { pauseAndKill } from "./kinds/PausedConnections.ts"
import {
  freezePostgres,
  killPostgres,
  postgresDown,
  slowDisk,
  terminateAndKill,
  terminateBackends
} from "./kinds/Postgres.ts"
import { promotion } from "./kinds/Promotion.ts"
import { redisAway } from "./kinds/Redis.ts"
import {
  freezeRunner,
  killBothRunners,
  killRunner,
  onlyIngress,
  pauseRunner,
  rollingRestart,
  stopRunner,
  toActive
} from "./kinds/Runners.ts"
import { badTarget, killWhileFailing } from "./kinds/Targets.ts"
import { upgrade } from "./kinds/Upgrade.ts"

/** The rounds of the full form, in order. */
export const allFaults: ReadonlyArray<Fault> = [
  nothing,
  killRunner("runner-1"),
  killRunner("runner-2"),
  stopRunner("runner-1"),
  rollingRestart,
  freezeRunner("runner-1", 7_000),
  freezeRunner("runner-2", 6_000),
  pauseRunner("runner-1", 2_000),
  toActive(killRunner("runner-1")),
  toActive(stopRunner("runner-1")),
  toActive(freezeRunner("runner-1", 7_000)),
  toActive(pauseRunner("runner-1", 2_000)),
  killPostgres("cluster"),
  postgresDown("cluster", 5_000),
  freezePostgres,
  slowDisk,
  terminateBackends,
  terminateAndKill,
  onlyIngress,
  pauseAndKill,
  killBothRunners,
  killEdge,
  badTarget("hang"),
  badTarget("reset"),
  badTarget("half"),
  badTarget("endless"),
  killWhileFailing,
  killAll,
  killAllAgainAndAgain,
  stopAll,
  freezeAll,
  killPostgres("single"),
  postgresDown("single", 5_000),
  partition(false),
  partition(true),
  clockJump(10),
  clockJump(-10),
  redisAway,
  diskFull,
  promotion,
  upgrade
]

/** A few of them, for every run of the test suites. */
export const shortForm: ReadonlyArray<Fault> = [
  killRunner("runner-1"),
  freezeRunner("runner-2", 6_000),
  killPostgres("cluster")
]
