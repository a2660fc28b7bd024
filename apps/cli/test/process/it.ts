import { Effect, Exit, Scope } from "effect"
import { bundled } from "../../../../test/support/Bundle.ts"
import { it as gatewayIt } from "../../../../test/support/it.ts"
import { temporaryFolder } from "../../../../test/temporaryFolder.ts"
import { type Ended, type Run, run, type RunOptions, start } from "./Program.ts"

/** `it` with a gateway, a folder, and the command line as somebody who is signed in by the environment. */
export const it = gatewayIt
  .extend("folder", { scope: "file" }, async ({}, { onCleanup }) => {
    const scope = Scope.makeUnsafe()
    onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    return Effect.runPromise(Scope.provide(temporaryFolder, scope))
  })
  .extend("signedIn", { scope: "file" }, ({ folder, gateway }) => ({
    TIDEGATE_URL: gateway.origin,
    TIDEGATE_API_KEY: gateway.key,
    XDG_CONFIG_HOME: folder
  }))
  .extend("program", { scope: "worker" }, async () => [process.execPath, await bundled("cli")])
  .extend(
    "tidegate",
    ({ folder, program, signedIn }) =>
      (words: ReadonlyArray<string>, options: RunOptions = {}): Promise<Ended> =>
        run(words, { cwd: folder, program, ...options, env: { ...signedIn, ...options.env } })
  )
  .extend("starting", ({ folder, program, signedIn }, { onCleanup }) => {
    const runs: Array<Run> = []
    onCleanup(() => {
      for (const { child } of runs) child.kill("SIGKILL")
    })
    return (words: ReadonlyArray<string>, options: RunOptions = {}): Run => {
      const one = start(words, { cwd: folder, program, ...options, env: { ...signedIn, ...options.env } })
      runs.push(one)
      return one
    }
  })
