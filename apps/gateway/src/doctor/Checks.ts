import type { Check } from "./Check.ts"
import { backlog } from "./checks/Backlog.ts"
import { clock } from "./checks/Clock.ts"
import { connections } from "./checks/Connections.ts"
import { disk } from "./checks/Disk.ts"
import { files } from "./checks/Files.ts"
import { keys } from "./checks/Keys.ts"
import { partitions } from "./checks/Partitions.ts"
import { redis } from "./checks/Redis.ts"
import { runners } from "./checks/Runners.ts"
import { sandbox } from "./checks/Sandbox.ts"
import { schema } from "./checks/Schema.ts"
import { server } from "./checks/Server.ts"
import { serverSettings } from "./checks/ServerSettings.ts"
import { vacuum } from "./checks/Vacuum.ts"

/** All that `tidegate doctor` looks at, in the order in which it is printed. */
export const checks: ReadonlyArray<Check> = [
  disk,
  files,
  sandbox,
  redis,
  server,
  serverSettings,
  connections,
  vacuum,
  clock,
  schema,
  keys,
  partitions,
  runners,
  backlog
]
