import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { bundled } from "./Bundle.ts"
import { withoutSettings } from "./GatewayProcess.ts"

interface Ended {
  readonly code: number
  readonly said: string
  readonly complained: string
}

const run = (
  program: string,
  settings: Readonly<Record<string, string>>,
  words: ReadonlyArray<string>
): Promise<Ended> =>
  new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [program, ...words],
      { env: { ...withoutSettings(), ...settings } },
      (_, said, complained) => resolve({ code: child.exitCode ?? -1, said, complained })
    )
  })

/** Runs a command of `npm run admin` to its end, from the bundle. */
export const admin = async (
  settings: Readonly<Record<string, string>>,
  ...words: ReadonlyArray<string>
): Promise<Ended> => run(await bundled("admin"), settings, words)

const sources = fileURLToPath(new URL("../../apps/gateway/src/admin.ts", import.meta.url))

/** The same from the sources. */
export const adminFromSources = (
  settings: Readonly<Record<string, string>>,
  ...words: ReadonlyArray<string>
): Promise<Ended> => run(sources, settings, words)
