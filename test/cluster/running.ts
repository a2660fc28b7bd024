import { join } from "node:path"
import { Effect, Redacted, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import type { Role } from "../faults/GatewayProcess.ts"
import { freshDatabase } from "../postgres.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { Gateways } from "./Gateways.ts"

/** Processes on a database of their own, that end with the test. */
export const running = <Name extends string>(
  roles: Readonly<Record<Name, Role>>
): Effect.Effect<Gateways<Name>, SqlError.SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const url = Redacted.value(yield* freshDatabase)
    return yield* Effect.acquireRelease(
      Effect.promise(() => Gateways.start(join(folder, "gateways"), url, roles)),
      (gateways) => Effect.promise(() => gateways.close())
    )
  })
